"""The tables of these tests are the one that is deployed."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.adapters.aws.schema import make_table

from wikikeeper.adapters.aws.clients import Clients

TEMPLATE = Path(__file__).resolve().parents[3] / "infra" / "template.yaml"


class Template(yaml.SafeLoader):
    """CloudFormation's own tags are read as what they stand before."""


Template.add_multi_constructor("!", lambda loader, suffix, node: f"!{suffix}")


def plain(value: Any) -> Any:  # noqa: ANN401
    """Lists in one order, so that only what they hold is compared."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return sorted(map(plain, value), key=repr) if isinstance(value, list) else value


@pytest.mark.skipif(not TEMPLATE.exists(), reason="infra/template.yaml is not there")
def test_the_table_of_these_tests_is_the_one_that_is_deployed(moto: Clients) -> None:
    (deployed,) = [
        resource["Properties"]
        for resource in yaml.load(TEMPLATE.read_text("utf-8"), Template)["Resources"].values()
        if resource["Type"] == "AWS::DynamoDB::Table"
    ]
    here = moto.dynamodb.describe_table(TableName=make_table(moto.dynamodb).name)["Table"]
    indexes = [
        {name: index[name] for name in ("IndexName", "KeySchema", "Projection")}
        for index in here["GlobalSecondaryIndexes"]
    ]

    assert plain(deployed["KeySchema"]) == plain(here["KeySchema"])
    assert plain(deployed["AttributeDefinitions"]) == plain(here["AttributeDefinitions"])
    assert plain(deployed["GlobalSecondaryIndexes"]) == plain(indexes)
    assert deployed["TimeToLiveSpecification"]["AttributeName"] == "expires"
