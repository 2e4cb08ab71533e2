"""The contract against a llama-server of your own: set WIKIKEEPER_LLAMA_SERVER_URL, and _MODEL and _KEY where needed.

In router mode the model is woken first. `docs/model-server-faults.md` says what llama-server answers when.
"""

import os
import time

import pytest
from pydantic import SecretStr
from tests.adapters.decider_contract import KEEPER_LIKE, DeciderContract, Served

from wikikeeper.errors import PageRefused

URL = os.environ.get("WIKIKEEPER_LLAMA_SERVER_URL")
KEY = os.environ.get("WIKIKEEPER_LLAMA_SERVER_KEY")
LOAD_SECONDS = 120
"""For a small model from a slow disk."""

pytestmark = pytest.mark.skipif(URL is None, reason="WIKIKEEPER_LLAMA_SERVER_URL names no llama-server to try")


class TestLlamaServer(DeciderContract):
    @pytest.fixture(scope="class")
    @classmethod
    def served(cls) -> Served:
        assert URL is not None
        served = Served(
            URL,
            os.environ.get("WIKIKEEPER_LLAMA_SERVER_MODEL", "decider"),
            SecretStr(KEY) if KEY else None,
            timeout=LOAD_SECONDS,
        )
        decider = served.decider()
        ends = time.monotonic() + LOAD_SECONDS
        while (state := decider.state()).state == "waking":
            assert time.monotonic() < ends, state
            if state.cause != "loading":
                decider.wake()
            time.sleep(0.2)
        decider.close()
        assert state.state == "healthy", state
        return served

    def test_a_page_beyond_the_context_is_refused_as_too_long(self, served: Served) -> None:
        decider = served.decider()
        # About 60,000 tokens: more than any slot that is sensible for pages of 6,000 characters.
        endless = KEEPER_LIKE.model_copy(
            update={"state": {"brief": "PostgreSQL", "page": "A new page begins. " * 12000}}
        )
        try:
            with pytest.raises(PageRefused) as refused:
                decider.decide(endless)
        finally:
            decider.close()

        assert refused.value.cause == "too_long"

    def test_another_key_is_unauthorized(self, served: Served) -> None:
        if served.api_key is None:
            pytest.skip("the server wants no key")
        stranger = Served(served.base_url, served.model, SecretStr("not-the-key")).decider()
        try:
            assert (stranger.state().state, stranger.state().cause) == ("unhealthy", "unauthorized")
        finally:
            stranger.close()
