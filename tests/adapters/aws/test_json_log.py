"""What the cloud's log shows of an event, and what it never shows."""

import io
import json
import threading
from datetime import UTC, datetime

import pytest

from wikikeeper.adapters.aws.json_log import SHOWN, JsonLog


def logged(name: str, **fields: object) -> dict[str, object]:
    stream = io.StringIO()
    JsonLog(stream, function="judge_result").event(name, **fields)
    line = stream.getvalue()
    assert line.count("\n") == 1
    return {key: value for key, value in json.loads(line).items() if key not in {"timestamp", "level"}}


def test_an_event_is_one_line_of_ids_and_numbers() -> None:
    assert logged("result_judged", topic="t", result="r1", kept=True, reason=None, seconds=0.5) == {
        "event": "result_judged",
        "function": "judge_result",
        "topic": "t",
        "result": "r1",
        "kept": True,
        "seconds": 0.5,
    }


def test_text_from_outside_is_left_out_and_named() -> None:
    assert logged("alert", subject="model:m", cause="unreachable", detail="a page's\ntext", title="x") == {
        "event": "alert",
        "function": "judge_result",
        "subject": "model:m",
        "cause": "unreachable",
        "left_out": ["detail", "title"],
    }


def test_of_a_problem_only_its_closed_words_are_shown() -> None:
    def shown(problem: str) -> object:
        return logged("cycle_problem", problem=problem)["problem"]

    assert shown("search_outage:rate_limited: search 'my secret plan': wait") == "search_outage:rate_limited"
    assert shown("missed_ticks:3") == "missed_ticks:3"
    assert shown("Some Page.html is a link and was left out") == "other"


def test_a_line_says_when_in_utc_and_nothing_more_of_its_own() -> None:
    stream = io.StringIO()
    before = datetime.now(UTC).replace(microsecond=0)
    JsonLog(stream).event("x")

    line = json.loads(stream.getvalue())
    assert line.keys() == {"timestamp", "level", "event"}
    assert line["timestamp"].endswith("+00:00")
    assert before <= datetime.fromisoformat(line["timestamp"]) <= datetime.now(UTC)


def test_a_name_of_digits_is_no_number() -> None:
    assert logged("x", cause="123", reason="null") == {
        "event": "x", "function": "judge_result", "cause": "123", "reason": "null",
    }  # fmt: skip


def test_two_logs_in_one_process_keep_their_streams_and_fields_apart() -> None:
    first, second = io.StringIO(), io.StringIO()
    logs = JsonLog(first, function="judge_result"), JsonLog(second)
    for log in logs:
        log.event("x")

    assert json.loads(first.getvalue())["function"] == "judge_result"
    assert "function" not in json.loads(second.getvalue())


def test_every_field_that_is_shown_can_be() -> None:
    """Python's own logging refuses some names."""
    assert set(logged("x", **dict.fromkeys(SHOWN, "v"))) == SHOWN | {"event", "function"}


@pytest.mark.parametrize("level", ["ERROR", "DEBUG"])
def test_what_alarms_count_is_written_at_any_level_that_the_environment_asks_for(
    monkeypatch: pytest.MonkeyPatch, level: str
) -> None:
    monkeypatch.setenv("POWERTOOLS_LOG_LEVEL", level)

    assert logged("cycle_skipped")["event"] == "cycle_skipped"


def test_a_long_value_is_cut() -> None:
    assert len(str(logged("x", cause="y" * 10_000)["cause"])) == 200


def test_lines_of_threads_do_not_mix() -> None:
    stream = io.StringIO()
    log = JsonLog(stream)
    threads = [threading.Thread(target=log.event, args=("x",), kwargs={"cause": "y" * 150}) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [json.loads(line)["event"] for line in stream.getvalue().splitlines()] == ["x"] * 20
