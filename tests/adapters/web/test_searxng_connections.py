"""SearXNG over real connections."""

from collections.abc import Iterator

from tests.adapters.web.servers import StubWeb, reply

from wikikeeper.adapters.web.searxng import Hits, Searxng


def test_a_connection_that_ends_as_the_next_query_is_sent_is_no_outage() -> None:
    with StubWeb() as web:

        def answered_and_closed_later() -> Iterator[bytes]:
            yield reply(b'{"results": [], "unresponsive_engines": []}', content_type="application/json")
            web.wait(0.3)

        address = f"127.0.0.1:{web.port}"
        web.on(f"{address}/search?q=x&format=json", answered_and_closed_later)
        server = Searxng(f"http://{address}", timeout=5, user_agent="wikikeeper/test")
        try:
            hits = [server.search("x", None, 20) for _ in range(2)]
        finally:
            server.close()

    assert hits == [Hits((), ())] * 2
    assert len(web.requests) == 2
