from pathlib import Path

import pytest
from jevcompat.mock import FAULTS as OFFERED
from pydantic import SecretStr
from tests.adapters.decider_contract import KEEPER_LIKE
from tests.adapters.llama.fault_table import FAULTS, FINE, Fault, page
from tests.adapters.llama.servers import mock

from wikikeeper.adapters.llama.decide import LlamaDecider
from wikikeeper.errors import ModelError

DOCS = Path(__file__).parents[3] / "docs" / "model-server-faults.md"


def test_the_table_has_every_fault_of_the_mock() -> None:
    assert [fault.name for fault in FAULTS] == list(OFFERED)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_what_a_fault_of_the_server_leads_to(fault: Fault) -> None:
    with mock(fault.name, key=fault.server_key) as base_url:
        decider = LlamaDecider(
            base_url,
            fault.model,
            SecretStr(fault.sent_key) if fault.sent_key else None,
            connect_timeout=5,
            timeout=10,
        )
        try:
            assert (outcome(decider), state(decider)) == (fault.call, fault.state)
        finally:
            decider.close()


def test_the_page_of_the_docs_is_made_from_the_table() -> None:
    assert DOCS.read_text(encoding="utf-8") == page(), "run the command at the top of fault_table.py"


def outcome(decider: LlamaDecider) -> str:
    try:
        decider.decide(KEEPER_LIKE)
    except ModelError as error:
        return f"{type(error).__name__} {error.cause}"
    return FINE


def state(decider: LlamaDecider) -> str:
    state = decider.state()
    return f"{state.state} {state.cause}".strip()
