"""The table and the bucket as infra/template.yaml makes them, for servers on loopback."""

import itertools
from typing import TYPE_CHECKING

from wikikeeper.adapters.aws.clients import Clients
from wikikeeper.adapters.aws.dynamodb_table import Table

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_sqs import SQSClient

KEYS = ("pk", "sk", "open", "listed", "at")
_numbers = itertools.count()


def make_table(client: "DynamoDBClient") -> Table:
    """A new, empty table."""
    name = f"wikikeeper-{next(_numbers)}"
    client.create_table(
        TableName=name,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": key, "AttributeType": "S"} for key in KEYS],
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
        GlobalSecondaryIndexes=[
            {
                "IndexName": "open",
                "KeySchema": [
                    {"AttributeName": "open", "KeyType": "HASH"},
                    {"AttributeName": "at", "KeyType": "RANGE"},
                ],
                "Projection": {"ProjectionType": "KEYS_ONLY"},
            },
            {
                "IndexName": "listed",
                "KeySchema": [
                    {"AttributeName": "listed", "KeyType": "HASH"},
                    {"AttributeName": "at", "KeyType": "RANGE"},
                ],
                "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["topic"]},
            },
        ],
    )
    return Table(client, name)


def make_bucket(clients: Clients) -> str:
    """A new, empty bucket."""
    name = f"wikikeeper-{next(_numbers)}"
    clients.s3.create_bucket(Bucket=name)
    return name


def make_queue(client: "SQSClient") -> str:
    """The URL of a new, empty queue."""
    return client.create_queue(QueueName=f"wikikeeper-{next(_numbers)}")["QueueUrl"]
