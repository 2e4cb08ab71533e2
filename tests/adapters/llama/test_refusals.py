import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.adapters.llama.fault_table import REFUSALS, Refusal

from wikikeeper.adapters.llama.refusals import refusal
from wikikeeper.errors import ModelError

PAGE_TEXT = "the quick brown page text"


@pytest.mark.parametrize("answer", REFUSALS, ids=lambda answer: f"{answer.server} {answer.status}")
def test_an_answer_other_than_200_says_what_to_do_next(answer: Refusal) -> None:
    error = refusal(answer.status, answer.raw, "x", attempts=2)

    assert f"{type(error).__name__} {error.cause}" == answer.error
    assert (error.status, error.attempts) == (answer.status, 2)


def test_the_counts_of_a_page_that_is_too_long_are_told() -> None:
    error = refusal(400, REFUSALS[0].raw, "x", attempts=1)

    assert error.detail == "the server answered 400 exceed_context_size_error: 6033 tokens where 4096 fit"


@pytest.mark.parametrize(
    "body",
    [
        f'{{"error": "cannot read: {PAGE_TEXT}"}}',
        f'{{"error": {{"code": 400, "message": "{PAGE_TEXT}", "type": "{PAGE_TEXT}"}}}}',
        f'{{"detail": [{{"msg": "{PAGE_TEXT}", "type": "{PAGE_TEXT}", "input": "{PAGE_TEXT}", "loc": ["{PAGE_TEXT}"]}}]}}',
        f'{{"detail": "{PAGE_TEXT}"}}',
        f"<html>{PAGE_TEXT}",
    ],
)
@pytest.mark.parametrize("status", [302, 400, 401, 404, 413, 422, 500, 501, 503])
def test_what_a_server_repeats_of_the_page_is_not_passed_on(status: int, body: str) -> None:
    assert PAGE_TEXT not in str(refusal(status, body.encode(), "x", attempts=1))


@given(
    status=st.integers(min_value=201, max_value=599),
    body=st.binary(max_size=100)
    | st.sampled_from([b'{"error": 1}', b'{"detail": [1]}', b"[]", b'{"error": {"type": []}}']),
)
def test_every_answer_has_a_cause_and_a_detail(status: int, body: bytes) -> None:
    error = refusal(status, body, "x", attempts=1)

    assert isinstance(error, ModelError)
    assert error.cause
    assert error.detail
