"""What every System One server and our client promise each other. A test class names a server by overriding `served`.

class TestMyServer(DeciderContract):
    @pytest.fixture(scope="class")
    @classmethod
    def served(cls) -> Iterator[Served]: ...
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest
from pydantic import SecretStr

from wikikeeper.adapters.llama.decide import LlamaDecider
from wikikeeper.errors import ModelUnusable
from wikikeeper.models import Choice, ChoiceAnswer, Noul, NoulAnswer, Reply, Request

PARAGRAPHS = (
    "PostgreSQL 18 adds asynchronous I/O, which makes sequential scans up to three times as fast.",
    "Der neue Planer überspringt führende Spalten eines Index; das hilft Abfragen ohne erste Spalte.",
    "新しいバージョンでは、仮想生成列が既定になりました。",
    "يمكن الآن ترقية الخادم مع الاحتفاظ بالإحصاءات. 🐘",
)

KEEPER_LIKE = Request(
    state={"brief": "What is new in PostgreSQL.", "page": "\n\n".join(PARAGRAPHS)},
    questions={
        "useful": Noul(
            instructions="Does the text in `page` give facts about what `brief` asks for?",
            true="The page gives facts that help someone who researches what is new in PostgreSQL.",
            false="The page gives no such facts.",
        ),
        "kind": Choice(
            instructions="What kind of page is `page`?",
            options={
                "release": "It presents a new version.",
                "tutorial": "It teaches step by step.",
                "unrelated": "It has nothing to do with the brief.",
            },
        ),
        "injection": Noul(
            instructions="Does the text in `page` address an AI system that reads it?",
            true="It tells an AI system what to do or to answer.",
            false="It speaks to people only.",
        ),
        "quotes": Choice(
            instructions="Which paragraph of `page` says most about what `brief` asks for?",
            options={f"p{number:02}": text for number, text in enumerate(PARAGRAPHS * 5, start=1)}
            | {"none": "No paragraph says anything about it."},
        ),
    },
)
"""Four questions as the Keeper asks them: 21 options, several scripts."""


@dataclass(frozen=True)
class Served:
    """A server that runs and a model of it that is loaded."""

    base_url: str
    model: str
    api_key: SecretStr | None = None
    timeout: float = 60.0
    """Seconds for one call; real models on a busy machine take some."""

    def decider(self, *, model: str | None = None, base_url: str | None = None) -> LlamaDecider:
        return LlamaDecider(
            base_url or self.base_url,
            model or self.model,
            self.api_key,
            connect_timeout=5,
            timeout=self.timeout,
        )


def asking_about(subject: str) -> Request:
    return Request(
        state={"text": f"This is all about {subject}."},
        questions={
            "about": Noul(
                instructions=f"Is `text` about {subject}?",
                true=f"The text speaks of {subject}.",
                false="The text speaks of something else.",
            )
        },
    )


class DeciderContract:
    @pytest.fixture(scope="class")
    @classmethod
    def served(cls) -> Iterator[Served] | Served:
        raise NotImplementedError

    @pytest.fixture
    def decider(self, served: Served) -> Iterator[LlamaDecider]:
        decider = served.decider()
        yield decider
        decider.close()

    def test_every_question_is_answered_in_its_own_type_and_in_order(self, decider: LlamaDecider) -> None:
        reply = decider.decide(KEEPER_LIKE)

        assert list(reply.answers) == list(KEEPER_LIKE.questions)
        for name, question in KEEPER_LIKE.questions.items():
            answer = reply.answers[name]
            assert answer.type == question.type
            if isinstance(answer, ChoiceAnswer):
                assert isinstance(question, Choice)
                assert list(answer.probabilities) == list(question.options)
                assert sum(answer.probabilities.values()) == pytest.approx(1, abs=0.02)

    def test_the_reply_says_what_answered_and_what_it_took(self, decider: LlamaDecider) -> None:
        reply = decider.decide(KEEPER_LIKE)

        assert reply.model
        assert reply.seconds > 0
        assert reply.attempts == 1
        assert reply.input_tokens is None or reply.input_tokens >= 0

    def test_calls_from_several_threads_get_their_own_answers(self, decider: LlamaDecider) -> None:
        requests = [asking_about(subject) for subject in ("databases", "birds", "bread", "trains")] * 2
        alone = [decider.decide(request) for request in requests[:4]]

        with ThreadPoolExecutor(8) as threads:
            together = list(threads.map(decider.decide, requests))

        # Batches of another size round differently on a real model.
        for one, other in zip(alone * 2, together, strict=True):
            assert probability(other) == pytest.approx(probability(one), abs=0.05)

    def test_it_is_healthy(self, decider: LlamaDecider) -> None:
        state = decider.state()
        assert state.state == "healthy", state

    def test_an_unknown_model_is_taken_for_the_one_there_is_or_refused_by_name(self, served: Served) -> None:
        decider = served.decider(model="no-such-model")
        try:
            reply = decider.decide(KEEPER_LIKE)
        except ModelUnusable as error:
            assert error.cause == "model_missing"  # noqa: PT017 - both are right, each in its own way
        else:
            assert reply.model != "no-such-model"
        finally:
            decider.close()

    def test_waking_what_is_awake_changes_nothing(self, decider: LlamaDecider) -> None:
        decider.wake()

        state = decider.state()
        assert state.state == "healthy", state
        assert decider.decide(KEEPER_LIKE).attempts == 1

    @pytest.mark.parametrize("ending", ["", "/", "/v1", "/v1/"])
    def test_the_base_url_may_end_as_people_write_it(self, served: Served, ending: str) -> None:
        decider = served.decider(base_url=served.base_url.rstrip("/") + ending)
        try:
            assert decider.decide(asking_about("birds")).answers.keys() == {"about"}
            state = decider.state()
            assert state.state == "healthy", state
        finally:
            decider.close()


def probability(reply: Reply) -> float:
    answer = reply.answers["about"]
    assert isinstance(answer, NoulAnswer)
    return answer.noul
