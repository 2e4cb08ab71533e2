"""Refuses a server that takes conditional writes and ignores their conditions: every test on it would prove nothing."""

import uuid
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_s3 import S3Client


class IgnoresConditions(AssertionError):
    """The server wrote where a condition forbade it."""


def dynamodb(client: "DynamoDBClient") -> None:
    """Raises IgnoresConditions for a server whose PutItem or UpdateItem overlooks a condition."""
    table = f"probe-{uuid.uuid4().hex}"
    client.create_table(
        TableName=table,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
    )
    item = {"pk": {"S": "a"}, "fence": {"N": "1"}}
    new = "attribute_not_exists(pk)"
    client.put_item(TableName=table, Item=item, ConditionExpression=new)
    try:
        client.put_item(TableName=table, Item=item, ConditionExpression=new)
    except ClientError as error:
        _expect(error, "ConditionalCheckFailedException")
    else:
        raise IgnoresConditions("PutItem put an item that must not exist, twice")
    try:
        client.update_item(
            TableName=table,
            Key={"pk": {"S": "a"}},
            UpdateExpression="SET fence = :next",
            ConditionExpression="fence = :held",
            ExpressionAttributeValues={":next": {"N": "3"}, ":held": {"N": "2"}},
        )
    except ClientError as error:
        _expect(error, "ConditionalCheckFailedException")
    else:
        raise IgnoresConditions("UpdateItem changed an item under a fence that it does not have")


def s3(client: "S3Client") -> None:
    """Raises IgnoresConditions for a server whose PutObject or DeleteObject overlooks If-None-Match or If-Match."""
    bucket = f"probe-{uuid.uuid4().hex}"
    client.create_bucket(Bucket=bucket)
    first = client.put_object(Bucket=bucket, Key="a", Body=b"1", IfNoneMatch="*")["ETag"]
    try:
        client.put_object(Bucket=bucket, Key="a", Body=b"2", IfNoneMatch="*")
    except ClientError as error:
        _expect(error, "PreconditionFailed")
    else:
        raise IgnoresConditions("PutObject with If-None-Match wrote over an object")
    client.put_object(Bucket=bucket, Key="a", Body=b"3", IfMatch=first)
    try:
        client.put_object(Bucket=bucket, Key="a", Body=b"4", IfMatch=first)
    except ClientError as error:
        _expect(error, "PreconditionFailed")
    else:
        raise IgnoresConditions("PutObject with If-Match wrote over another version")
    try:
        client.delete_object(Bucket=bucket, Key="a", IfMatch=first)
    except ClientError as error:
        _expect(error, "PreconditionFailed")
    else:
        raise IgnoresConditions("DeleteObject with If-Match deleted another version")


def _expect(error: ClientError, code: str) -> None:
    if error.response["Error"]["Code"] != code:
        raise error
