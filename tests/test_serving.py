"""What `wikikeeper serve` makes of commands and of the clock."""

import socket
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.workflows.world import World, open_world

from wikikeeper.errors import Unusable
from wikikeeper.models import ReapStale, StartCycle
from wikikeeper.serving import MINUTE, handle, listening, until_next_minute
from wikikeeper.settings import Web


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with open_world(tmp_path) as made:
        yield made


class Broken:
    """A store that is out."""

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - it stands for any method
        raise Unusable("the disk is full")


def test_a_tick_starts_what_is_due_and_comes_again_at_the_next_minute(world: World) -> None:
    world.topic(
        text="---\ntitle: P\nlinks: [https://example.org/]\nschedule: {cron: '* * * * *', zone: UTC}\n---\nWhat?\n"
    )
    now = world.app.clock.now()
    world.app.store.checked("postgres", now - timedelta(minutes=3), ran=False)

    *sends, again = handle(ReapStale(), world.app)
    assert [send.command.topic for send in sends if isinstance(send.command, StartCycle)] == ["postgres"]
    assert again.command == ReapStale()
    assert again.after == until_next_minute(now)


def test_a_tick_that_fails_is_reported_and_comes_again(world: World) -> None:
    app = replace(world.app, store=Broken())

    (again,) = handle(ReapStale(), app)
    assert again.command == ReapStale()
    assert world.reporter.of("command_failed")[0]["error"] == "Unusable: the disk is full"


def test_a_command_that_fails_is_reported_and_dropped(world: World) -> None:
    app = replace(world.app, store=Broken())
    world.topic()

    assert handle(StartCycle(topic="postgres", tick="manual-1"), app) == ()
    assert world.reporter.names() == ["command_failed"]


@given(st.datetimes(datetime(2026, 1, 1), datetime(2027, 1, 1), timezones=st.just(UTC)))  # noqa: DTZ001 - the zone is given beside
def test_the_next_tick_is_at_a_whole_minute_and_never_now(now: datetime) -> None:
    wait = until_next_minute(now)

    assert timedelta() < wait <= MINUTE
    assert ((now + wait).second, (now + wait).microsecond) == (0, 0)


@pytest.mark.parametrize("host", ["nas.lan", "localhost.example", "999.1.1.1"])
def test_a_name_is_no_address_to_serve_on(host: str) -> None:
    with pytest.raises(Unusable, match="not an address"), listening(Web(host=host, token="0" * 32)):
        pass


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1"])
def test_a_loopback_address_is_served_without_a_token(host: str) -> None:
    with listening(Web(host=host, port=0)) as listener:
        assert listener.getsockname()[1] > 0
        assert listener.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY), "no answer waits for its acknowledgement"
