"""Values to items and back, and where each lies.

| item   | pk                  | sk             | open                  | listed   | at           | expires |
|--------|---------------------|----------------|-----------------------|----------|--------------|---------|
| topic  | `topics`            | slug           |                       |          |              |         |
| cycle  | `cycle#<id>`        | `cycle`        | `cycles` until ended  | `cycles` | started # id | ended + a year |
| result | `result#<shard>`    | id             | `open#<topic>` when its list is swept, until discarded, folded, withdrawn or noted | | found # id | |
| list   | `found`             | topic, token   |                       |          |              |         |
| text   | `text#<topic>`      | hash           |                       |          |              |         |
| run    | `runs#<shard>`      | started # id   |                       |          |              | a year  |
| alert  | `alerts`            | subject, cause |                       |          |              |         |
| opened | `opened`            | topic          |                       |          |              |         |
| silence | `silences`         | subject        |                       |          |              |         |
| escalation | `escalations`   | id             | `escalations` until delivered | | raised # id  |         |
| model  | `models`            | model          |                       |          |              |         |
| sighting | `sightings`       | since # model  |                       |          |              | since + a year |
| slot   | `gate`              | number         |                       |          |              |         |
| demand | `gate`              | lane, number   |                       |          |              |         |
| label  | `labels`            | result         |                       |          |              |         |
| secret | `installation`      | `secret`       |                       |          |              |         |

Indexes: `open` (open, at) and `listed` (listed, at), the keys of which stay the same until they go: a change of state
writes the item alone. Times are whole microseconds since 1970. What no condition, order or update names is packed.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any

from wikikeeper.adapters.aws.dynamodb_table import Item, Key, Scalar
from wikikeeper.adapters.aws.packing import pack, unpack
from wikikeeper.models import (
    UNFINISHED_CYCLES,
    Alert,
    Cycle,
    CycleState,
    Failure,
    Result,
    Run,
    TopicState,
    Value,
)

HISTORY = timedelta(days=365)
"""How long runs and ended cycles are kept: a year of notes can be asked why. Results are never forgotten: they are how a
page is judged only once."""
FAILURES_KEPT = 50
"""Newest failures kept with a result: more than twice the most attempts a setting allows, and an item stays far below
DynamoDB's 400 kB."""

RESULT_SHARDS = 16
"""Partitions of results. One takes 1,000 writes a second: thousands of judges at once don't fill them, and a listing of
everything that ever was asks only 16."""
RUN_SHARDS = 4
"""Partitions of runs: 4,000 calls a second, more than any model server takes. A listing merges all of them."""

CYCLE = "cycle"
TOPICS, ALERTS, OPENED, CYCLES, FOUND = "topics", "alerts", "opened", "cycles", "found"
SILENCES, ESCALATIONS, MODELS, SIGHTINGS = "silences", "escalations", "models", "sightings"
LABELS = "labels"

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_ABOUT = {"topic", "url", "canonical", "revision", "title", "origin", "published"}
_PAGE = ("text_hash", "etag", "last_modified")
BETWEEN = "\x1f"
"""Stands in no subject, cause or slug, and before every letter: so alerts sort by subject, then by cause."""
_WORD = re.compile(r"\w+", re.ASCII)


def micros(at: datetime) -> int:
    """Microseconds since 1970. Raises TypeError for a time without a zone."""
    return (at - _EPOCH) // _MICROSECOND


def moment(stored: Scalar) -> datetime:
    return _EPOCH + timedelta(microseconds=int(stored))


def some_moment(item: Item, name: str) -> datetime | None:
    return moment(item[name]) if name in item else None


def at(when: datetime, name: str) -> str:
    """A sort key: by time, then by id. 17 digits reach to the year 5138."""
    return f"{micros(when):017}#{name}"


def expiry(when: datetime) -> int:
    """What DynamoDB's TTL reads: whole seconds."""
    return int((when + HISTORY).timestamp())


def packed(value: Value | None) -> bytes | None:
    return None if value is None else pack(value.model_dump_json())


def _shard(name: str, shards: int) -> int:
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:4]) % shards


def present(item: Mapping[str, Scalar | None]) -> Item:
    return {name: value for name, value in item.items() if value is not None}


# -- keys


def topic_key(slug: str) -> Key:
    return Key(TOPICS, slug)


def cycle_key(cycle: str) -> Key:
    return Key(f"cycle#{cycle}", CYCLE)


def result_key(result: str) -> Key:
    return Key(result_partition(_shard(result, RESULT_SHARDS)), result)


def result_partition(shard: int) -> str:
    return f"result#{shard:02}"


def open_partition(topic: str) -> str:
    return f"open#{topic}"


def text_key(topic: str, text_hash: str) -> Key:
    return Key(f"text#{topic}", text_hash)


def run_key(run: str, started: datetime) -> Key:
    return Key(run_partition(run_shard(run)), at(started, run))


def run_shard(run: str) -> int:
    return _shard(result_of(run), RUN_SHARDS)


def run_partition(shard: int) -> str:
    return f"runs#{shard}"


def result_of(run: str) -> str:
    """The result that a run was about: the part of its id that says so."""
    return run.rpartition("-")[0]


def alert_key(subject: str, cause: str) -> Key:
    return Key(ALERTS, alert_prefix(subject) + cause)


def alert_prefix(subject: str) -> str:
    return subject + BETWEEN


def opened_key(topic: str) -> Key:
    return Key(OPENED, topic)


# -- topics


def topic_from(item: Item) -> TopicState:
    return TopicState(
        slug=str(item["sk"]),
        last_check=some_moment(item, "last_check"),
        last_run=some_moment(item, "last_run"),
        open_note=_some_text(item, "open_note"),
        open_note_started=bool(item.get("open_note_started", False)),
        note_due=some_moment(item, "note_due"),
        ended=date.fromisoformat(str(item["ended"])) if "ended" in item else None,
    )


# -- cycles


def cycle_item(cycle: Cycle) -> Item:
    key = cycle_key(cycle.id)
    unfinished = cycle.state in UNFINISHED_CYCLES
    return present(
        {
            "pk": key.pk,
            "sk": key.sk,
            "open": CYCLES if unfinished else None,
            "listed": CYCLES,
            "at": at(cycle.started, cycle.id),
            "expires": None if unfinished else expiry(cycle.ended or cycle.started),
            "id": cycle.id,
            "topic": cycle.topic,
            "tick": cycle.tick,
            "state": cycle.state,
            "started": micros(cycle.started),
            "lease_until": some_micros(cycle.lease_until),
            "fence": cycle.fence,
            "ended": some_micros(cycle.ended),
            "reason": cycle.reason,
            "problems": problems(cycle),
            "found": cycle.found,
            "new": cycle.new,
            "sent": cycle.sent,
            "cap": cycle.cap,
            "calls": cycle.calls,
            "active": some_micros(cycle.active),
            "cap_reached": cycle.cap_reached,
            "fetched": cycle.fetched,
            "answered": cycle.answered,
            "refusals": cycle.refusals,
        }
    )


def problems(cycle: Cycle) -> bytes | None:
    return pack(json.dumps(cycle.problems, ensure_ascii=False)) if cycle.problems else None


def call_mark(result: str, fence: int) -> str:
    """The attribute of a cycle that holds when the call under this fence began.

    Raises ValueError for an id that is no word: it could not be named in an update.
    """
    if not _WORD.fullmatch(result):
        raise ValueError(f"result id {result!r} has other characters than letters, digits and underscores")
    return f"call_{result}_{fence}"


def cycle_from(item: Item) -> Cycle:
    return Cycle(
        id=str(item["id"]),
        topic=str(item["topic"]),
        tick=str(item["tick"]),
        state=CycleState(str(item["state"])),
        started=moment(item["started"]),
        lease_until=some_moment(item, "lease_until"),
        fence=int(item["fence"]),
        ended=some_moment(item, "ended"),
        reason=_some_text(item, "reason"),
        problems=tuple(unpacked(item, "problems") or ()),
        found=int(item["found"]),
        new=int(item["new"]),
        sent=int(item["sent"]),
        cap=int(item["cap"]),
        calls=int(item["calls"]),
        active=some_moment(item, "active"),
        cap_reached=bool(item["cap_reached"]),
        fetched=bool(item["fetched"]),
        answered=bool(item["answered"]),
        refusals=int(item["refusals"]),
    )


# -- results


def result_item(result: Result) -> Item:
    """A new result, which a list names. What changes later is written by the change that changes it."""
    key = result_key(result.id)
    return present(
        {
            "pk": key.pk,
            "sk": key.sk,
            "at": at(result.found, result.id),
            "topic": result.topic,
            "state": result.state,
            "cycle": result.cycle,
            "fence": result.fence,
            "lease_until": some_micros(result.lease_until),
            "call_fence": result.call_fence,
            "call_started": some_micros(result.call_started),
            "nonresponses": result.nonresponses,
            "attempts": result.attempts,
            "not_before": some_micros(result.not_before),
            "settled_cycle": result.settled_cycle,
            "finished": some_micros(result.finished),
            "folded_into": result.folded_into,
            "noted": result.noted,
            "about": pack(result.model_dump_json(include=_ABOUT - {"topic"}, exclude_none=True)),
            "page": _known_page(result),
            "failures": failures(result.failures),
            "verdict": packed(result.verdict),
        }
    )


def _known_page(result: Result) -> bytes | None:
    """What is known of the page before a verdict: its title is still that of the find."""
    known = _known(result)
    return pack(json.dumps(known, ensure_ascii=False)) if known else None


def page_data(before: Result, given: Mapping[str, str | None]) -> bytes | None:
    """What judging learned of the page, over what was known. None: nothing new.

    Of a result that is being judged, only the one who holds the claim changes this: so it is read from the claim.
    """
    changed = {name: value for name, value in given.items() if value is not None and value != getattr(before, name)}
    return pack(json.dumps(_known(before) | changed, ensure_ascii=False)) if changed else None


def _known(result: Result) -> dict[str, str]:
    return {name: value for name in _PAGE if (value := getattr(result, name)) is not None}


def failures(kept: tuple[Failure, ...]) -> bytes | None:
    """The newest of them."""
    if not kept:
        return None
    return pack("[" + ",".join(failure.model_dump_json() for failure in kept[-FAILURES_KEPT:]) + "]")


def result_from(item: Item) -> Result:
    found, _, name = str(item["at"]).partition("#")
    return Result.model_validate(
        {
            **json.loads(unpack(_bytes(item, "about"))),
            **(unpacked(item, "page") or {}),
            "id": name,
            "topic": item["topic"],
            "found": moment(found),
            "state": item["state"],
            "cycle": item.get("cycle"),
            "fence": item["fence"],
            "lease_until": some_moment(item, "lease_until"),
            "call_fence": item.get("call_fence"),
            "call_started": some_moment(item, "call_started"),
            "nonresponses": item["nonresponses"],
            "attempts": item["attempts"],
            "not_before": some_moment(item, "not_before"),
            "settled_cycle": item.get("settled_cycle"),
            "finished": some_moment(item, "finished"),
            "folded_into": item.get("folded_into"),
            "noted": item.get("noted"),
            "failures": unpacked(item, "failures") or (),
            "verdict": unpacked(item, "verdict"),
        }
    )


# -- runs, alerts


def run_item(run: Run) -> Item:
    key = run_key(run.id, run.started)
    return {
        "pk": key.pk,
        "sk": key.sk,
        "topic": run.topic,
        "outcome": run.outcome,
        "expires": expiry(run.started),
        "body": pack(run.model_dump_json()),
    }


def run_from(item: Item) -> Run:
    return Run.model_validate_json(body_of(item))


def alert_item(alert: Alert) -> Item:
    key = alert_key(alert.subject, alert.cause)
    return {"pk": key.pk, "sk": key.sk, "body": pack(alert.model_dump_json())}


def alert_from(item: Item) -> Alert:
    return Alert.model_validate_json(body_of(item))


# -- attributes


def some_micros(when: datetime | None) -> int | None:
    return None if when is None else micros(when)


def _some_text(item: Item, name: str) -> str | None:
    return str(item[name]) if name in item else None


def body_of(item: Item) -> str:
    return unpack(_bytes(item, "body"))


def _bytes(item: Item, name: str) -> bytes:
    data = item[name]
    assert isinstance(data, bytes)
    return data


def unpacked(item: Item, name: str) -> Any:  # noqa: ANN401 - JSON, checked by the model that it goes into
    return json.loads(unpack(_bytes(item, name))) if name in item else None
