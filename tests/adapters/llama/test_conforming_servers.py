from collections.abc import Iterator

import pytest
from pydantic import SecretStr
from tests.adapters.decider_contract import KEEPER_LIKE, DeciderContract, Served
from tests.adapters.llama.servers import mock, sparrow

from wikikeeper.models import NoulAnswer

KEY = "a-key-of-the-test"


class TestSpecificationMock(DeciderContract):
    @pytest.fixture(scope="class")
    @classmethod
    def served(cls) -> Iterator[Served]:
        with mock(key=KEY) as base_url:
            yield Served(base_url, "mock", SecretStr(KEY))

    def test_the_same_question_gets_the_same_answer(self, served: Served) -> None:
        decider = served.decider()
        try:
            assert decider.decide(KEEPER_LIKE).answers == decider.decide(KEEPER_LIKE).answers
        finally:
            decider.close()


class TestSparrow(DeciderContract):
    @pytest.fixture(scope="class")
    @classmethod
    def served(cls) -> Iterator[Served]:
        with sparrow() as base_url:
            yield Served(base_url, "any-name-will-do")

    def test_a_real_model_tells_a_page_on_the_topic_from_another(self, served: Served) -> None:
        decider = served.decider()
        elsewhere = KEEPER_LIKE.model_copy(update={"state": {"brief": "PostgreSQL", "page": "Bake the bread slowly."}})
        try:
            useful = [decider.decide(request).answers["useful"] for request in (KEEPER_LIKE, elsewhere)]
        finally:
            decider.close()

        assert all(isinstance(answer, NoulAnswer) for answer in useful)
        assert useful[0] != useful[1]
