"""One DynamoDB table: typed items, conditional writes of single items, queries page by page. No scan, no transaction.

A conditional write that is sent again after a lost answer finds its own work and would look refused:

    write ── applied ── answer lost ── sent again ── condition fails ── read: our mark? ──▶ it was us, it holds
                                                                          └ no ──▶ somebody else was first

So every write leaves a mark of its own on the item. It is read only when a request was really sent twice. Where others
write the same item all the time, a mark would not last that long: there an attribute of the change's own shows it.
"""

import random
import re
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from wikikeeper.adapters.aws.clients import code, explaining, retried
from wikikeeper.errors import NotNow

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef, QueryInputTypeDef

Scalar = str | int | bool | bytes
Item = dict[str, Scalar]

BATCH = 100
"""Most items that one BatchGetItem takes; index pages have the same size, so that each needs one."""
BATCH_TRIES = 6
"""With the pauses below some three seconds: longer than a partition needs to split, far shorter than a lease."""
BATCH_PAUSE = 0.1
"""Seconds before asking again for what was throttled; doubled each time."""

_NAME = re.compile(r"#(\w+)")
_ONCE = "(attribute_not_exists(#mark) OR #mark <> :set_mark)"


@dataclass(frozen=True, slots=True)
class Key:
    pk: str
    sk: str


@dataclass(frozen=True, slots=True)
class Plus:
    """In a change: add to a number, which counts as 0 where it is missing."""

    by: int


class Table:
    """Reads are consistent unless they go through an index. Threads may share one."""

    def __init__(self, client: "DynamoDBClient", name: str) -> None:
        self._client = client
        self.name = name

    def get(self, key: Key) -> Item | None:
        with explaining(self.name):
            answer = self._client.get_item(TableName=self.name, Key=_key(key), ConsistentRead=True)
        return _item(answer["Item"]) if "Item" in answer else None

    def put_new(self, item: Item) -> bool:
        """False: there is an item under its key."""
        key = Key(str(item["pk"]), str(item["sk"]))
        mark = _mark()
        try:
            with explaining(self.name):
                self._client.put_item(
                    TableName=self.name,
                    Item={name: _attribute(value) for name, value in {**item, "mark": mark}.items()},
                    ConditionExpression="attribute_not_exists(pk)",
                )
        except ClientError as error:
            return self._ours_after_all(error, key, "mark", mark) is not None
        return True

    def change(
        self,
        key: Key,
        changes: Mapping[str, Scalar | Plus | None],
        when: str | None = None,
        values: Mapping[str, Scalar] | None = None,
        *,
        shown_by: str | None = None,
    ) -> Item | None:
        """Set attributes, or remove those that are given as None. Makes the item if `when` allows that.

        `when` is a condition with names as `#name` and the `values` as `:name`. Returns the item as it is then.
        None: the condition did not hold. `shown_by` names one of the attributes, if no other change sets it to the same
        and `when` refuses to set it again.
        """
        if shown_by is None:
            shown_by, changes = "mark", {**changes, "mark": _mark()}
            if any(isinstance(change, Plus) for change in changes.values()):
                # Adding is the one change that a second try of a request would repeat.
                when = _ONCE if when is None else f"({when}) AND {_ONCE}"
        sets: list[str] = []
        removes: list[str] = []
        bound: dict[str, AttributeValueTypeDef] = {}
        for name, change in changes.items():
            if change is None:
                removes.append(f"#{name}")
            elif isinstance(change, Plus):
                sets.append(f"#{name} = if_not_exists(#{name}, :zero) + :set_{name}")
                bound |= {":zero": _attribute(0), f":set_{name}": _attribute(change.by)}
            else:
                sets.append(f"#{name} = :set_{name}")
                bound[f":set_{name}"] = _attribute(change)
        bound |= {f":{name}": _attribute(value) for name, value in (values or {}).items()}
        update = f"SET {', '.join(sets)}" + (f" REMOVE {', '.join(removes)}" if removes else "")
        condition: dict[str, Any] = {} if when is None else {"ConditionExpression": when}
        try:
            with explaining(self.name):
                answer = self._client.update_item(
                    TableName=self.name,
                    Key=_key(key),
                    UpdateExpression=update,
                    ExpressionAttributeNames=_names(update, when),
                    ExpressionAttributeValues=bound,
                    ReturnValues="ALL_NEW",
                    **condition,
                )
        except ClientError as error:
            return self._ours_after_all(error, key, shown_by, changes[shown_by])
        return _item(answer["Attributes"])

    def delete(self, key: Key) -> None:
        with explaining(self.name):
            self._client.delete_item(TableName=self.name, Key=_key(key))

    def query(
        self,
        where: str,
        values: Mapping[str, Scalar],
        *,
        index: str | None = None,
        keeping: str | None = None,
        only: Sequence[str] = (),
        newest_first: bool = False,
        page: int | None = None,
        heard: Callable[[Mapping[str, str]], None] | None = None,
    ) -> Iterator[Item]:
        """Items in the order of their sort keys. `keeping` filters, `only` names the attributes that are wanted.

        `heard` is given the headers of each answer.

        Of the base table the answer is consistent.
        """
        projection = ", ".join(f"#{name}" for name in only)
        asked: QueryInputTypeDef = {
            "TableName": self.name,
            "KeyConditionExpression": where,
            "ExpressionAttributeNames": _names(where, keeping, projection),
            "ExpressionAttributeValues": {f":{name}": _attribute(value) for name, value in values.items()},
            "ScanIndexForward": not newest_first,
        }
        if index is None:
            asked["ConsistentRead"] = True
        else:
            asked["IndexName"] = index
        if keeping is not None:
            asked["FilterExpression"] = keeping
        if projection:
            asked["ProjectionExpression"] = projection
        if page is not None:
            asked["Limit"] = page
        while True:
            with explaining(self.name):
                answer = self._client.query(**asked)
            if heard is not None:
                heard(answer["ResponseMetadata"]["HTTPHeaders"])
            yield from map(_item, answer["Items"])
            if "LastEvaluatedKey" not in answer:
                return
            asked["ExclusiveStartKey"] = answer["LastEvaluatedKey"]

    def read(self, keys: Sequence[Key]) -> list[Item]:
        """The items under at most `BATCH` keys, in their order; what is not there is left out.

        Raises NotNow when the table stays throttled.
        """
        found: dict[Key, Item] = {}
        left = [_key(key) for key in keys]
        for tries in range(BATCH_TRIES):
            if not left:
                break
            if tries:
                time.sleep(BATCH_PAUSE * 2 ** (tries - 1) * random.uniform(0.5, 1))  # noqa: S311 - no secret
            with explaining(self.name):
                answer = self._client.batch_get_item(RequestItems={self.name: {"Keys": left, "ConsistentRead": True}})
            for item in map(_item, answer["Responses"].get(self.name, [])):
                found[Key(str(item["pk"]), str(item["sk"]))] = item
            left = [dict(key) for key in answer["UnprocessedKeys"].get(self.name, {"Keys": []})["Keys"]]
        if left:
            raise NotNow("throttled", detail=f"table {self.name}")
        return [found[key] for key in keys if key in found]

    def _ours_after_all(self, error: ClientError, key: Key, shown_by: str, ours: Scalar | Plus | None) -> Item | None:
        """What a refused condition means. Raises the error if it is another."""
        if code(error) != "ConditionalCheckFailedException":
            raise error
        if not retried(error):
            return None
        item = self.get(key)
        return item if item is not None and item.get(shown_by) == ours else None


def _mark() -> bytes:
    return secrets.token_bytes(8)


def _key(key: Key) -> "dict[str, AttributeValueTypeDef]":
    return {"pk": {"S": key.pk}, "sk": {"S": key.sk}}


def _names(*expressions: str | None) -> dict[str, str]:
    return {f"#{name}": name for expression in expressions if expression for name in _NAME.findall(expression)}


def _attribute(value: Scalar) -> "AttributeValueTypeDef":
    match value:
        case bool():
            return {"BOOL": value}
        case int():
            return {"N": str(value)}
        case bytes():
            return {"B": value}
        case str():
            return {"S": value}


def _item(attributes: "Mapping[str, AttributeValueTypeDef]") -> Item:
    return {name: _scalar(attribute) for name, attribute in attributes.items()}


def _scalar(attribute: "AttributeValueTypeDef") -> Scalar:
    match attribute:
        case {"S": str(text)}:
            return text
        case {"N": str(number)}:
            return int(number)
        case {"BOOL": bool(flag)}:
            return flag
        case {"B": data}:
            return bytes(data)
        case _:
            raise TypeError(f"no item of ours has an attribute of type {', '.join(attribute)}")
