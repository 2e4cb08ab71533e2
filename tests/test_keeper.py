"""The Keeper over any Decider: one call, and the answer by paragraph."""

import pytest

from wikikeeper.errors import AnswerTimedOut, ModelError, PageRefused
from wikikeeper.fakes import ScriptedDecider, judgement, reply
from wikikeeper.keeper import QuestioningKeeper
from wikikeeper.models import Choice, Kind, Reply, Request, Topic
from wikikeeper.policy import questions

TOPIC = Topic(slug="heronbase", title="Heronbase releases", brief="New versions of Heronbase.")
PAGE = tuple(f"Paragraph {number} tells of {'Heronbase' if number % 2 else 'geese'}." for number in range(50))


def keeper(decider: ScriptedDecider, *, quote_max_chars: int = 400) -> QuestioningKeeper:
    return QuestioningKeeper(decider, secret=b"secret", quote_max_chars=quote_max_chars)


def test_one_page_is_one_call_with_the_page_as_it_was_given() -> None:
    asked: list[Request] = []
    offered = questions.offered(TOPIC, PAGE)

    def script(request: Request) -> Reply:
        asked.append(request)
        return reply(judgement(0.8, 0.2, Kind.TUTORIAL, {offered[3]: 0.9}), offered)

    judged = keeper(ScriptedDecider(script)).judge(TOPIC, "A title", PAGE)

    [request] = asked
    assert all(paragraph in request.state["page"] for paragraph in ("A title", *PAGE))
    assert judged.offered == offered
    assert (judged.judgement.useful, judged.judgement.injection, judged.judgement.kind) == (0.8, 0.2, Kind.TUTORIAL)
    assert judged.judgement.quotes[offered[3]] == pytest.approx(0.9)
    assert judged.reply.model == "scripted-1"


def test_the_same_page_is_asked_in_the_same_words() -> None:
    asked: list[Request] = []

    def script(request: Request) -> Reply:
        asked.append(request)
        return reply(judgement(), questions.offered(TOPIC, PAGE))

    for _ in range(2):
        keeper(ScriptedDecider(script)).judge(TOPIC, "A title", PAGE)

    assert asked[0] == asked[1]


def test_options_are_cut_to_the_length_of_a_quote() -> None:
    asked: list[Request] = []

    def script(request: Request) -> Reply:
        asked.append(request)
        return reply(judgement(), (0,))

    keeper(ScriptedDecider(script), quote_max_chars=60).judge(TOPIC, "", ("A fact on Heronbase. " * 20,))

    quotes = asked[0].questions["quotes"]
    assert isinstance(quotes, Choice)
    assert quotes.options["p01"] == "A fact on Heronbase. A fact on Heronbase."


@pytest.mark.parametrize("error", [PageRefused("too_long"), AnswerTimedOut("deadline")])
def test_what_the_decider_raises_is_for_the_caller(error: ModelError) -> None:
    def script(request: Request) -> Reply:
        raise error

    with pytest.raises(type(error)):
        keeper(ScriptedDecider(script)).judge(TOPIC, "", PAGE)


def test_the_keeper_says_which_model_it_asks_and_by_which_questions() -> None:
    assert keeper(ScriptedDecider()).model == "scripted"
    assert keeper(ScriptedDecider()).question_version == questions.VERSION
