import pytest
from tests.adapters.aws import probe
from tests.adapters.aws.faults import careless
from tests.adapters.aws.servers import clients, moto_server

from wikikeeper.adapters.aws.clients import Clients


@pytest.mark.usefixtures("_nobodys_account")
def test_a_server_that_ignores_the_conditions_of_objects_is_refused() -> None:
    with moto_server(careless) as address, pytest.raises(probe.IgnoresConditions, match="If-None-Match"):
        probe.s3(clients(address).s3)


def test_a_server_that_ignores_the_conditions_of_items_is_refused(moto: Clients) -> None:
    def without_condition(params: dict[str, object], **_: object) -> None:
        params.pop("ConditionExpression", None)

    events = moto.dynamodb.meta.events
    events.register("provide-client-params.dynamodb.PutItem", without_condition)
    try:
        with pytest.raises(probe.IgnoresConditions, match="PutItem"):
            probe.dynamodb(moto.dynamodb)
    finally:
        events.unregister("provide-client-params.dynamodb.PutItem", without_condition)
