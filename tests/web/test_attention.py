"""Attention: each thing that needs a person with what to do, for as long as it does."""

from datetime import datetime
from typing import Any

import pytest
from tests.adapters.contracts.samples import (
    CYCLE,
    LEASE,
    NOW,
    SECOND,
    TOPIC,
    VERDICT,
    a_cycle,
    a_failure,
    a_run,
    claimed,
)
from tests.web.pages import OWN, World

from wikikeeper.models import Alert, CycleState, Escalation, FailureKind, ResultState, Run, Silence
from wikikeeper.web.attention import MOST_INJECTIONS


def test_nothing_needs_a_person_in_a_new_wiki(web: World) -> None:
    assert "Nothing needs you." in web.get("/attention").text


def test_parked_work_is_brought_back_by_its_button(web: World) -> None:
    claim = claimed(web.store)
    web.store.put_back(claim, stay_in_cycle=False, failure=a_failure(cause="malformed"))
    web.store.settle("r0001", CYCLE, attempts=3, state=ResultState.PARKED, verdict=None, at=NOW)
    assert "malformed" in web.get("/attention").text

    assert web.post("/results/r0001/retry") == "/attention#parked"
    result = web.store.result("r0001")
    assert result is not None
    assert result.state is ResultState.WAITING
    assert web.client.post("/results/r0001/retry", headers=OWN).status_code == 409
    assert web.client.post("/results/nobody/retry", headers=OWN).status_code == 404


def test_alerts_and_injections_are_shown_with_what_to_do(web: World) -> None:
    web.store.raise_alert(Alert(subject="model:d", cause="unreachable", detail="start the server", raised=NOW))
    dropped = VERDICT.model_copy(update={"kept": False, "reason": "injection", "quotes": ()})
    web.store.put_run(a_run(title="Poisoned", verdict=dropped, kept=False))

    shown = web.get("/attention").text
    for said in ("start the server", "Poisoned", "addresses an AI reader"):
        assert said in shown


def injected(number: int) -> Run:
    dropped = VERDICT.model_copy(update={"kept": False, "reason": "injection", "quotes": ()})
    return a_run(number, title=f"Poisoned {number:03}", verdict=dropped, kept=False)


@pytest.mark.parametrize("should", ["kept", "discarded"])
def test_an_injection_needs_somebody_until_they_said_what_should_become_of_it(web: World, should: str) -> None:
    web.store.put_run(injected(1))
    shown = web.get("/attention")
    assert "/runs/r0001-2/label" in [a["action"] for tag, a in shown.tags if tag == "form"]
    assert {a["value"] for tag, a in shown.tags if tag == "button"} == {"kept", "discarded"}

    web.post("/runs/r0001-2/label", should=should)
    assert "Nothing needs you" in web.get("/attention").text


def test_behind_injections_that_are_done_with_older_ones_are_found(web: World) -> None:
    for number in range(MOST_INJECTIONS + 5):
        web.store.put_run(injected(number))
    for number in range(5, MOST_INJECTIONS + 5):
        web.post(f"/runs/r{number:04}-2/label", should="discarded")

    shown = web.get("/attention").text
    assert [number for number in range(MOST_INJECTIONS + 5) if f"Poisoned {number:03}" in shown] == [0, 1, 2, 3, 4]


# -- silent work


def an_escalation(subject: str, **changes: object) -> Escalation:
    values: dict[str, Any] = {
        "id": f"{subject}:1",
        "subject": subject,
        "topic": TOPIC,
        "detail": "nobody works on it; sent again 3 times. Look whether the workers run",
        "raised": NOW,
        "delivered": NOW,
    }
    return Escalation(**(values | changes))


def given_up(web: World) -> None:
    claim = claimed(web.store)
    failure = a_failure(kind=FailureKind.SILENT, cause="silent", detail="silent again after 3 recoveries")
    assert web.store.give_up("r0001", claim.fence, NOW + LEASE, failure=failure)


def test_silent_work_is_told_with_what_to_do_until_it_was_told_everywhere(web: World) -> None:
    web.store.escalate(an_escalation("cycle:one", delivered=None))
    web.store.checked(TOPIC, NOW + LEASE, ran=True)

    shown = web.get("/attention").text
    assert "Silent work: cycle:one of postgres, given up 2026-03-01 12:00:00 UTC, not delivered yet" in shown
    assert "Look whether the workers run" in shown
    assert "Nothing needs you" not in shown

    web.store.escalation_delivered("cycle:one:1", NOW)
    assert "Nothing needs you" in web.get("/attention").text, "it was told, and a later cycle took its results along"


def test_a_silent_cycle_needs_somebody_until_the_next_cycle(web: World) -> None:
    web.store.escalate(an_escalation("cycle:one"))
    web.store.checked(TOPIC, NOW - LEASE, ran=True)

    shown = web.get("/attention").text
    assert "cycle:one" in shown
    assert "not delivered yet" not in shown

    web.store.checked(TOPIC, NOW + LEASE, ran=True)
    assert "Nothing needs you" in web.get("/attention").text


def test_a_page_that_was_given_up_needs_somebody_until_it_is_brought_back(web: World) -> None:
    given_up(web)
    web.store.escalate(an_escalation("result:r0001"))

    shown = web.get("/attention").text
    assert "result:r0001" in shown
    assert "if the page itself ends its worker, leave it; else bring it back" in shown

    web.post("/results/r0001/retry")
    assert "Nothing needs you" in web.get("/attention").text


def test_a_silent_note_needs_somebody_until_it_is_written(web: World) -> None:
    silence = Silence(subject=f"note:{TOPIC}", nonresponses=3, since=NOW, counted=NOW, cooldown_until=NOW + LEASE)
    web.store.count_silence(silence, instead_of=None)
    web.store.escalate(an_escalation(silence.subject))
    assert f"note:{TOPIC}" in web.get("/attention").text

    web.store.heard(silence.subject)
    assert "Nothing needs you" in web.get("/attention").text


def given_up_note(web: World, **changes: object) -> Silence:
    values: dict[str, Any] = {"nonresponses": 3, "since": NOW, "counted": NOW, "cooldown_until": NOW + LEASE}
    silence = Silence(subject=f"note:{TOPIC}", **(values | changes))
    web.store.count_silence(silence, instead_of=web.store.silence(silence.subject))
    return silence


def test_a_note_that_was_given_up_is_brought_back_by_its_button(web: World) -> None:
    given_up_note(web)
    web.store.escalate(an_escalation(f"note:{TOPIC}"))
    back = f"/topics/{TOPIC}/note/retry"
    assert back in [attributes["action"] for tag, attributes in web.get("/attention").tags if tag == "form"]

    assert web.post(back) == "/attention"

    silence = web.store.silence(f"note:{TOPIC}")
    assert silence is not None
    assert (silence.nonresponses, silence.cooldown_until) == (0, None), "the next sweep finds it as any other"
    assert "Nothing needs you" in web.get("/attention").text
    assert web.client.post(back, headers=OWN).status_code == 409
    assert web.client.post("/topics/nobody/note/retry", headers=OWN).status_code == 409


def test_a_note_that_is_silent_anew_needs_nobody_until_it_is_given_up_anew(web: World) -> None:
    web.store.escalate(an_escalation(f"note:{TOPIC}"))
    given_up_note(web, nonresponses=1, since=NOW + LEASE, counted=NOW + LEASE)

    assert "Nothing needs you" in web.get("/attention").text
    assert web.store.escalate(an_escalation(f"note:{TOPIC}", id="again", raised=NOW + 2 * LEASE))
    assert "given up 2026-03-01 12:10:00 UTC" in web.get("/attention").text


PUSHED = "hook-pushed-1"


@pytest.mark.parametrize(
    ("started", "state", "stands"),
    [
        (NOW + LEASE, CycleState.DONE, False),
        (NOW + LEASE, CycleState.SKIPPED, True),
        (NOW + LEASE, CycleState.DRAINING, True),
        (NOW - SECOND, CycleState.DONE, True),  # what the silent one still had on its way was not its own to judge
    ],
)
def test_a_silent_cycle_is_settled_by_a_later_one_that_is_done_though_it_asked_no_source(
    web: World, started: datetime, state: CycleState, stands: bool
) -> None:
    web.store.escalate(an_escalation("cycle:one"))
    later = a_cycle(id="later", tick=PUSHED, started=started, state=state, lease_until=None)
    web.store.start_cycle(later)
    # Of another topic, and newer than all: it says nothing of this one.
    web.store.start_cycle(a_cycle(id="other", topic="heron", started=NOW + 2 * LEASE, state=CycleState.DONE))

    assert ("cycle:one" in web.get("/attention").text) is stands


def test_a_page_that_was_given_up_again_stands_there_once(web: World) -> None:
    given_up(web)
    web.store.escalate(an_escalation("result:r0001"))
    web.store.escalate(an_escalation("result:r0001", id="again", raised=NOW + LEASE, detail="the second time"))

    shown = web.get("/attention").text
    assert shown.count("Silent work") == 1
    assert "the second time" in shown


def test_an_older_record_stands_where_the_newest_of_the_same_work_is_settled(web: World) -> None:
    web.store.escalate(an_escalation("note:nobody", delivered=None, detail="never told"))
    web.store.escalate(an_escalation("note:nobody", id="again", raised=NOW + LEASE))

    assert "never told" in web.get("/attention").text


def test_the_escalations_of_work_that_is_gone_need_nobody(web: World) -> None:
    web.store.escalate(an_escalation("result:nobody"))
    web.store.escalate(an_escalation("note:nobody"))

    assert "Nothing needs you" in web.get("/attention").text
