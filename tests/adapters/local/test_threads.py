"""What the host of one machine promises to commands."""

import os
import resource
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta

import pytest

from wikikeeper.adapters.local.threads import LOOK, ThreadHost
from wikikeeper.fakes import RecordingReporter
from wikikeeper.models import CloseCycle, Command, Send, StartCycle, WriteNote
from wikikeeper.ports import Reporter

SOON = timedelta(milliseconds=150)
NEVER = timedelta(hours=1)
PATIENCE = 10
"""Seconds after which something that should have happened never will."""


def close(name: str) -> Command:
    return CloseCycle(cycle=name)


def send(name: str, after: timedelta = timedelta()) -> Send:
    return Send(command=close(name), after=after)


class Log:
    """A handler that remembers what it was given, and when. A test says how long a command takes and what follows."""

    def __init__(
        self, then: Callable[[str], Sequence[Send]] = lambda _: (), *, seconds: Mapping[str, float] | None = None
    ) -> None:
        self.names: list[str] = []
        self.at: dict[str, float] = {}
        self._then = then
        self._seconds = seconds or {}
        self._began = time.monotonic()
        self._lock = threading.Lock()

    def __call__(self, command: Command) -> Sequence[Send]:
        name = command.cycle if isinstance(command, CloseCycle) else command.kind
        with self._lock:
            self.names.append(name)
            self.at[name] = self.elapsed()
        time.sleep(self._seconds.get(name, 0))
        return self._then(name)

    def elapsed(self) -> float:
        return time.monotonic() - self._began


def host(
    log: Callable[[Command], Sequence[Send]],
    *,
    workers: int = 3,
    hurry: Callable[[Command], bool] = lambda _: False,
    reporter: Reporter | None = None,
) -> ThreadHost:
    return ThreadHost(log, reporter or RecordingReporter(), workers=workers, hurry=hurry)


def test_every_command_and_what_follows_from_it_is_carried_out_once() -> None:
    def split(name: str) -> Sequence[Send]:
        return [send(name + digit) for digit in "01"] if len(name) < 8 else ()

    log = Log(split)
    host(log, workers=8).run([send("0"), send("1")])
    assert len(log.names) == len(set(log.names)) == sum(2**length for length in range(1, 9))


def test_without_commands_nothing_is_waited_for() -> None:
    log = Log()
    host(log).run([])
    assert log.names == []


def test_commands_begin_in_the_order_in_which_they_came() -> None:
    log = Log(lambda name: [send("last")] if name == "0" else ())
    host(log, workers=1).run([send(str(number)) for number in range(20)])
    assert log.names == [*map(str, range(20)), "last"]


def test_no_more_commands_run_at_once_than_there_are_workers() -> None:
    running, most, lock = 0, 0, threading.Lock()

    def handle(_: Command) -> Sequence[Send]:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.02)
        with lock:
            running -= 1
        return ()

    host(handle, workers=3).run([send(str(number)) for number in range(12)])
    assert most == 3


def test_a_delayed_command_waits_for_its_time_and_not_for_long_after_it() -> None:
    log = Log()
    host(log).run([send("later", SOON), send("now")])
    assert log.names == ["now", "later"]
    assert SOON.total_seconds() <= log.at["later"] < PATIENCE


def test_delayed_commands_come_by_their_times_whatever_the_order_of_sending() -> None:
    log = Log()
    host(log, workers=1).run([send("third", 3 * SOON / 2), send("first", SOON / 2), send("second", SOON)])
    assert log.names == ["first", "second", "third"]


def test_a_delayed_command_whose_time_has_come_does_not_queue_behind_all_that_is_ready() -> None:
    queue = [str(number) for number in range(40)]
    log = Log(seconds=dict.fromkeys(queue, 0.02))
    host(log, workers=1).run([send("later", SOON), *map(send, queue)])
    assert log.names.index("later") < 30


def test_a_delay_holds_up_no_other_command() -> None:
    log = Log(lambda name: [send("after it")] if name == "now" else ())
    host(log, workers=1).run([send("later", SOON), send("now")])
    assert log.names == ["now", "after it", "later"]


def test_what_may_hurry_comes_as_soon_as_nothing_else_is_left() -> None:
    log = Log(seconds={"work": 0.05})
    note = Send(command=WriteNote(topic="herons"), after=NEVER)
    host(log, hurry=lambda command: command.kind == "write_note").run([note, send("work")])
    assert log.names == ["work", "write_note"]
    assert log.at["write_note"] < PATIENCE


def test_what_may_hurry_waits_while_something_runs_that_could_bring_more() -> None:
    ended: dict[str, float] = {}

    def then(name: str) -> Sequence[Send]:
        ended[name] = log.elapsed()
        return ()

    log = Log(then, seconds={"work": 0.1})
    note = Send(command=WriteNote(topic="herons"), after=NEVER)
    host(log, hurry=lambda command: command.kind == "write_note").run([note, send("work")])
    assert log.at["write_note"] >= ended["work"]


def test_of_all_that_may_hurry_what_is_due_first_comes_first() -> None:
    log = Log()
    delays = {"c": 3 * NEVER, "a": NEVER, "d": 4 * NEVER, "b": 2 * NEVER}
    host(log, workers=1, hurry=lambda _: True).run([send(name, after) for name, after in delays.items()])
    assert log.names == ["a", "b", "c", "d"]


def test_what_may_not_hurry_is_waited_for_also_when_it_is_all_that_is_left() -> None:
    log = Log()
    host(log, hurry=lambda command: command.kind == "write_note").run([send("wake again", SOON)])
    assert log.at["wake again"] >= SOON.total_seconds()


def test_a_workflow_that_raises_is_reported_and_ends_no_other() -> None:
    def then(name: str) -> Sequence[Send]:
        if name.startswith("bad"):
            raise ValueError(f"{name} is broken")
        return [send(name + "!")] if name == "good" else ()

    log, reporter = Log(then), RecordingReporter()
    ran = host(log, workers=2, reporter=reporter)
    ran.run([*(send(f"bad {number}") for number in range(5)), send("good")])
    assert {"good", "good!"} < set(log.names)
    assert sorted(map(str, ran.errors)) == [f"bad {number} is broken" for number in range(5)]
    told = reporter.of("command_failed")
    assert {(event["command"], event["error"]) for event in told} == {
        ("close_cycle", f"ValueError: bad {number} is broken") for number in range(5)
    }
    assert all("in then" in str(event["trace"]) for event in told)


def test_the_work_goes_on_when_a_fault_cannot_even_be_reported() -> None:
    class ClosedTerminal:
        def event(self, name: str, **fields: object) -> None:
            raise BrokenPipeError

    def then(name: str) -> Sequence[Send]:
        if name == "bad":
            raise ValueError
        return ()

    log = Log(then)
    ran = host(log, workers=1, reporter=ClosedTerminal())
    ran.run([send("bad"), send("good")])
    assert log.names == ["bad", "good"]
    assert [type(error) for error in ran.errors] == [ValueError, BrokenPipeError]


def test_after_a_run_the_host_can_run_again() -> None:
    log = Log()
    ran = host(log)
    ran.run([send("first")])
    ran.run([send("second")])
    assert log.names == ["first", "second"]


def test_stop_lets_what_runs_end_and_starts_nothing_more() -> None:
    def then(name: str) -> Sequence[Send]:
        ran.stop()
        ended.append(name)
        return [send("follows")]

    ended: list[str] = []
    log = Log(then)
    ran = host(log, workers=1)
    ran.run([send("first"), send("ready"), send("later", NEVER)])
    assert ended == log.names == ["first"]


def test_a_host_that_was_stopped_takes_new_work_but_not_the_old() -> None:
    def then(name: str) -> Sequence[Send]:
        if name == "first":
            ran.stop()
        return ()

    log = Log(then)
    ran = host(log, workers=1)
    ran.run([send("first"), send("dropped")])
    ran.run([send("new")])
    assert log.names == ["first", "new"]


def test_ctrl_c_that_comes_while_a_worker_starts_lets_it_end_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has its command already, and its starter does not know of it yet."""
    ended: list[str] = []
    at_work = threading.Event()
    start = threading.Thread.start

    def interrupted(thread: threading.Thread) -> None:
        start(thread)
        assert at_work.wait(30)
        raise KeyboardInterrupt

    def then(name: str) -> Sequence[Send]:
        at_work.set()
        time.sleep(LOOK)
        ended.append(name)
        return ()

    monkeypatch.setattr(threading.Thread, "start", interrupted)
    with pytest.raises(KeyboardInterrupt):
        host(Log(then), workers=2).run([send("first"), send("dropped")])

    assert ended == ["first"]


def test_ctrl_c_lets_what_runs_end_drops_the_rest_and_is_raised() -> None:
    ended: list[str] = []

    def then(name: str) -> Sequence[Send]:
        if name == "first":
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(2 * LOOK)  # by then the interrupt has come through
        ended.append(name)
        return [send("follows")]

    log = Log(then)
    ran = host(log, workers=1)
    with pytest.raises(KeyboardInterrupt):
        ran.run([send("first"), send("ready"), send("later", NEVER)])
    assert ended == log.names == ["first"]


def test_waiting_for_a_slow_command_and_for_a_delay_costs_no_cpu_time() -> None:
    def cpu_seconds() -> float:
        used = resource.getrusage(resource.RUSAGE_SELF)
        return used.ru_utime + used.ru_stime

    log = Log(seconds={"slow": 0.3})
    before = cpu_seconds()
    host(log, workers=12).run([send("slow"), send("later", timedelta(seconds=0.6))])
    # Busy waiting would take at least one core for all of it.
    assert cpu_seconds() - before < 0.2


def test_a_started_cycle_is_a_command_like_any_other() -> None:
    log = Log()
    host(log).run([Send(command=StartCycle(topic="herons", tick="manual-1"))])
    assert log.names == ["start_cycle"]


def test_what_is_added_while_it_works_is_done_by_the_same_run() -> None:
    seen: list[str] = []
    host: ThreadHost

    def handle(command: Command) -> Sequence[Send]:
        assert isinstance(command, WriteNote)
        seen.append(command.topic)
        if command.topic == "first":
            host.add([Send(command=WriteNote(topic="added"))])
        return []

    host = ThreadHost(handle, RecordingReporter(), workers=1)
    host.add([Send(command=WriteNote(topic="before"))])
    host.run([Send(command=WriteNote(topic="first"))])

    assert seen == ["before", "first", "added"]
