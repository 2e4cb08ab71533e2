"""Attention: each thing that needs a person with what to do, for as long as it does."""

from typing import Any

import pytest
from tests.adapters.contracts.samples import (
    CYCLE,
    LEASE,
    NOW,
    TOPIC,
    VERDICT,
    a_failure,
    a_run,
    claimed,
)
from tests.web.pages import OWN, World

from wikikeeper.models import Alert, Escalation, FailureKind, ResultState, Run, Silence
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


def test_the_escalations_of_work_that_is_gone_need_nobody(web: World) -> None:
    web.store.escalate(an_escalation("result:nobody"))
    web.store.escalate(an_escalation("note:nobody"))

    assert "Nothing needs you" in web.get("/attention").text
