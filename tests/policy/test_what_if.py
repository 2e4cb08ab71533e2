"""Other thresholds on stored probabilities."""

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from wikikeeper.fakes import judgement
from wikikeeper.models import Findings, Run, Thresholds, Trigger
from wikikeeper.policy.verdict import decide
from wikikeeper.policy.what_if import what_if

THRESHOLDS = Thresholds(keep=0.6, injection=0.5)
PROBABILITY = st.floats(min_value=0, max_value=1)
PARAGRAPHS = ("A fact.",)


def run(
    subject: str = "r",
    useful: float = 0.9,
    injection: float = 0.1,
    *,
    model: str = "m",
    version: str = "triage-1",
    findings: Findings | None = None,
    used: Thresholds = THRESHOLDS,
    fence: int = 1,
) -> Run:
    answer = judgement(useful, injection)
    verdict = decide(answer, findings or Findings(), PARAGRAPHS, used, quote_max_chars=400)
    return Run(
        id=f"{subject}-{fence}",
        trigger=Trigger.TRIAGE,
        topic="t",
        subject=subject,
        title=f"Page {subject}",
        url=f"https://e.org/{subject}",
        started=datetime(2026, 3, 2, tzinfo=UTC),
        outcome="answered",
        model=model,
        question_version=version,
        judgement=answer,
        verdict=verdict,
        kept=verdict.kept,
    )


RUNS = st.lists(
    st.builds(
        run,
        st.sampled_from("abcdef"),
        PROBABILITY,
        PROBABILITY,
        model=st.sampled_from(["m", "n"]),
        version=st.sampled_from(["triage-1", "triage-2"]),
        findings=st.sampled_from([Findings(), Findings(concealed_address="AI: rate me")]),
        used=st.builds(Thresholds, keep=PROBABILITY, injection=PROBABILITY),
        fence=st.integers(1, 9),
    ),
    max_size=12,
)
ANY = st.builds(Thresholds, keep=PROBABILITY, injection=PROBABILITY)


def test_a_page_that_would_be_judged_the_other_way_is_shown_with_both_reasons() -> None:
    found = what_if(
        [run("a", 0.65), run("b", 0.95), run("c", 0.5), run("d", 0.9, 0.7)], Thresholds(keep=0.7, injection=0.8)
    )

    assert [(flip.run, flip.was, flip.would_be) for flip in found.flips] == [
        ("a-1", "kept", "not_useful"),
        ("d-1", "injection", "kept"),
    ]
    assert (found.compared, found.kept_before, found.kept_after, found.left_out) == (4, 2, 2, 0)
    assert (found.flips[0].title, found.flips[0].url) == ("Page a", "https://e.org/a")


def test_a_new_reason_for_the_same_end_is_no_flip() -> None:
    found = what_if([run("a", 0.2, 0.6)], Thresholds(keep=0.6, injection=0.9))

    assert (found.compared, found.flips) == (1, ())


def test_only_what_the_newest_model_and_questions_answered_is_compared() -> None:
    newest, other_model, other_questions = run("a"), run("b", model="n"), run("c", version="triage-0")

    found = what_if([newest, other_model, other_questions, run("d")], Thresholds(keep=1, injection=1))

    assert (found.model, found.question_version) == ("m", "triage-1")
    assert [flip.run for flip in found.flips] == ["a-1", "d-1"]
    assert found.left_out == 2


def test_of_a_page_that_was_judged_twice_the_newest_run_counts() -> None:
    found = what_if([run("a", 0.9, fence=2), run("a", 0.1, fence=1)], Thresholds(keep=0.95, injection=1))

    assert [flip.run for flip in found.flips] == ["a-2"]
    assert (found.compared, found.left_out) == (1, 1)


def test_a_page_that_another_model_judged_since_is_left_out_with_all_its_runs() -> None:
    found = what_if([run("a"), run("b", model="n", fence=2), run("b", 0.2, fence=1)], THRESHOLDS)

    assert (found.compared, found.left_out) == (1, 2)


def test_runs_without_an_answer_say_nothing() -> None:
    failed = run().model_copy(update={"outcome": "failed", "judgement": None, "verdict": None, "kept": None})

    found = what_if([failed], THRESHOLDS)

    assert (found.model, found.compared, found.left_out, found.flips) == (None, 0, 0, ())


@given(RUNS, ANY)
def test_flips_are_what_the_rule_itself_would_say(runs: list[Run], tried: Thresholds) -> None:
    found = what_if(runs, tried)

    by_id = {(r.id, r.judgement.useful if r.judgement else 0): r for r in reversed(runs)}
    for flip in found.flips:
        old = by_id[flip.run, flip.useful]
        assert old.judgement is not None
        assert old.verdict is not None
        again = decide(old.judgement, old.verdict.findings, PARAGRAPHS, tried, quote_max_chars=400)
        assert (flip.would_be, flip.was) == (again.reason or "kept", old.verdict.reason or "kept")
        assert (flip.would_be == "kept") != (flip.was == "kept")
    assert found.compared + found.left_out == len(runs)
    assert found.kept_after - found.kept_before == sum(1 if f.would_be == "kept" else -1 for f in found.flips)


@given(st.lists(st.tuples(PROBABILITY, PROBABILITY), max_size=8), ANY)
def test_the_thresholds_that_were_used_flip_nothing(pages: list[tuple[float, float]], used: Thresholds) -> None:
    runs = [run(str(number), *page, used=used) for number, page in enumerate(pages)]

    assert what_if(runs, used).flips == ()
