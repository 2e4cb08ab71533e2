"""The stack as it is created: who is wired to whom, and that the names a function is given lead to what was made.

The stand-in for CloudFormation does not know EventBridge's schedules, and passes over what it does not know of tables and
buckets; those are looked at in test_template.py.
"""

import copy
import json
from collections.abc import Iterator, Mapping
from typing import Any

import boto3
import pytest
from moto import mock_aws
from tests.adapters.aws.schema import make_table
from tests.infra.conftest import REGION

UNKNOWN_TO_THE_STAND_IN = {
    "AWS::CloudWatch::Alarm",
    "AWS::Lambda::EventInvokeConfig",
    "AWS::Lambda::Permission",
    "AWS::Lambda::Url",
    "AWS::Logs::MetricFilter",
    "AWS::S3::BucketPolicy",
    "AWS::Scheduler::Schedule",
    "AWS::SNS::Subscription",
    "AWS::SNS::TopicPolicy",
    "AWS::SQS::QueuePolicy",
}
STACK = "wk-test"


@pytest.fixture(scope="module")
def stack(template: dict[str, Any]) -> Iterator[dict[str, str]]:
    """Logical id -> physical id. Made once: nothing here changes it."""
    known = copy.deepcopy(template)
    known["Resources"] = {
        name: resource
        for name, resource in known["Resources"].items()
        if resource["Type"] not in UNKNOWN_TO_THE_STAND_IN
    }
    del known["Outputs"]["Pages"]  # the address of a Url
    with pytest.MonkeyPatch.context() as patch, mock_aws():
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            patch.setenv(name, "none")
        patch.setenv("AWS_DEFAULT_REGION", REGION)
        cloudformation = boto3.client("cloudformation")
        cloudformation.create_stack(
            StackName=STACK,
            TemplateBody=json.dumps(known),
            Parameters=[{"ParameterKey": "WebToken", "ParameterValue": "0123456789abcdef"}],
            Capabilities=["CAPABILITY_IAM"],
        )
        assert cloudformation.describe_stacks(StackName=STACK)["Stacks"][0]["StackStatus"] == "CREATE_COMPLETE"
        resources = cloudformation.describe_stack_resources(StackName=STACK)["StackResources"]
        yield {resource["LogicalResourceId"]: resource["PhysicalResourceId"] for resource in resources}


def arn(queue_url: str) -> str:
    attributes = boto3.client("sqs").get_queue_attributes(QueueUrl=queue_url, AttributeNames=["QueueArn"])
    return str(attributes["Attributes"]["QueueArn"])


def environment(function: str) -> dict[str, str]:
    configuration = boto3.client("lambda").get_function_configuration(FunctionName=f"{STACK}-{function}")
    return dict(configuration["Environment"]["Variables"])


@pytest.mark.parametrize(
    ("function", "queue", "batch"),
    [
        ("schedule-cycle", "ScheduleQueue", 1),
        ("judge-result", "JudgeQueue", 10),
        ("write-note", "NoteQueue", 10),
        ("reap-stale", "ReapQueue", 1),
    ],
)
def test_each_function_is_fed_by_its_queue(stack: dict[str, str], function: str, queue: str, batch: int) -> None:
    [mapping] = boto3.client("lambda").list_event_source_mappings(FunctionName=f"{STACK}-{function}")[
        "EventSourceMappings"
    ]

    assert mapping["EventSourceArn"] == arn(stack[queue])
    assert mapping["BatchSize"] == batch
    assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"]


@pytest.mark.parametrize("name", ["Schedule", "Judge", "Note", "Reap"])
def test_each_queue_hands_its_dead_letters_on(stack: dict[str, str], name: str) -> None:
    attributes = boto3.client("sqs").get_queue_attributes(
        QueueUrl=stack[f"{name}Queue"], AttributeNames=["RedrivePolicy"]
    )

    redrive = json.loads(attributes["Attributes"]["RedrivePolicy"])
    assert redrive["deadLetterTargetArn"] == arn(stack[f"{name}DeadLetters"])
    assert int(redrive["maxReceiveCount"]) == 3


@pytest.mark.parametrize("function", ["schedule-cycle", "judge-result", "write-note", "reap-stale", "web"])
def test_a_function_is_told_queues_table_and_bucket_that_are_there(stack: dict[str, str], function: str) -> None:
    told = environment(function)
    sqs = boto3.client("sqs")

    for name in ("SCHEDULE", "JUDGE", "NOTE", "REAP"):
        url = told[f"WIKIKEEPER_AWS__{name}_QUEUE"]
        assert url.startswith("http")
        assert url == stack[f"{name.title()}Queue"]
        assert sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]
    assert (
        boto3.client("dynamodb").describe_table(TableName=told["WIKIKEEPER_AWS__TABLE"])["Table"]["TableStatus"]
        == "ACTIVE"
    )
    assert boto3.client("s3").head_bucket(Bucket=told["WIKIKEEPER_AWS__BUCKET"])


def test_the_table_is_the_one_that_the_adapters_are_tested_with(stack: dict[str, str]) -> None:
    client = boto3.client("dynamodb")
    made, tested = (
        client.describe_table(TableName=name)["Table"] for name in (stack["Table"], make_table(client).name)
    )

    assert made["KeySchema"] == tested["KeySchema"]
    assert shape_of_indexes(made) == shape_of_indexes(tested)


def shape_of_indexes(table: Mapping[str, Any]) -> dict[str, Any]:
    return {index["IndexName"]: (index["KeySchema"], index["Projection"]) for index in table["GlobalSecondaryIndexes"]}
