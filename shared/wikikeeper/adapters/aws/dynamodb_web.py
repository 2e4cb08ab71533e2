"""The run store's part for the pages: runs and cycles a page at a time, labels, and who is at the gate.

What is read is paid, whether it matches or not: so runs are matched here as they come, and a page ends where enough was
read. Labels have one partition, since people give them; they are kept for as long as results are.
"""

import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import islice

from wikikeeper.adapters.aws.dynamodb_gate import DEMAND, GATE, lane_of
from wikikeeper.adapters.aws.dynamodb_items import (
    CYCLES,
    LABELS,
    RUN_SHARDS,
    at,
    body_of,
    cycle_from,
    moment,
    run_from,
    run_partition,
)
from wikikeeper.adapters.aws.dynamodb_listing import LISTED, items, newest_first
from wikikeeper.adapters.aws.dynamodb_table import Item, Key, Scalar, Table
from wikikeeper.adapters.aws.packing import pack
from wikikeeper.models import Label, Permit
from wikikeeper.policy.gate import Demand
from wikikeeper.policy.run_filter import Cursor, CyclePage, RunFilter, RunPage

BEFORE_ALL, AFTER_ALL = "-", ":"
"""Sort keys that begin with a moment lie between them."""
SEARCHED_AT_ONCE = 100
"""Runs of one partition that are asked for at a time where not every run matches: a hundred kilobytes."""
CYCLES_SEARCHED = 2_000
"""Entries of the index that one page of a topic's cycles looks through at most: a year of some six daily topics."""
CYCLES_AT_ONCE = 500


class Pages:
    """`PageStore` in the cloud."""

    table: Table

    def run_page(self, chosen: RunFilter, *, after: Cursor | None, most: int, most_read: int) -> RunPage:
        oldest, before = _bounds(chosen, after)
        if oldest > before:  # which is no range to DynamoDB
            return RunPage(runs=(), next=None)
        every = chosen == RunFilter(since=chosen.since, until=chosen.until)
        share = -(-(most if every else most_read) // RUN_SHARDS)
        listed = newest_first(
            self.table,
            [run_partition(shard) for shard in range(RUN_SHARDS)],
            within=(oldest, before),
            page=share if every else min(share, SEARCHED_AT_ONCE),
        )
        older = (
            item for item in listed if item["sk"] != before
        )  # the range holds its ends, of which this one was shown
        runs = []
        for read, run in enumerate(map(run_from, islice(older, most_read)), start=1):
            if chosen.matches(run):
                runs.append(run)
            if len(runs) == most or read == most_read:
                last = Cursor(started=run.started, id=run.id)
                return RunPage(runs=tuple(runs), next=last, searched=len(runs) < most)
        return RunPage(runs=tuple(runs), next=None)

    def cycle_page(self, topic: str | None, *, after: Cursor | None, most: int) -> CyclePage:
        """Of a topic that has had none for long, it may hold fewer and still say where to go on."""
        listed = self.table.query(
            "#listed = :cycles AND #at < :before",
            {"cycles": CYCLES, "before": AFTER_ALL if after is None else at(after.started, after.id)},
            index=LISTED,
            newest_first=True,
            page=most if topic is None else CYCLES_AT_ONCE,
        )
        found: list[Key] = []
        last: Cursor | None = None
        for read, entry in enumerate(listed, start=1):
            if topic is None or entry["topic"] == topic:
                found.append(Key(str(entry["pk"]), str(entry["sk"])))
            if len(found) == most or read == CYCLES_SEARCHED:
                started, _, name = str(entry["at"]).partition("#")
                last = Cursor(started=moment(started), id=name)
                break
        return CyclePage(cycles=tuple(map(cycle_from, items(self.table, found))), next=last)

    def put_label(self, label: Label) -> None:
        changes: dict[str, Scalar] = {"body": pack(label.model_dump_json(exclude={"drawn"}))}
        if label.drawn:  # never taken back
            changes["drawn"] = True
        self.table.change(_label_key(label.result), changes)

    def labels_of(self, results: Sequence[str]) -> dict[str, Label]:
        keys = map(_label_key, dict.fromkeys(results))
        return {str(item["sk"]): _label(item) for item in items(self.table, keys)}

    def labels(self) -> Iterator[Label]:
        return map(_label, self.table.query("#pk = :labels", {"labels": LABELS}))

    def permits(self, now: datetime) -> list[Permit]:
        held = (item for item in self._at_the_gate(now) if "holder" in item)
        return sorted(map(_permit, held), key=lambda permit: permit.slot)

    def demands(self, now: datetime) -> list[Demand]:
        waiting = (item for item in self._at_the_gate(now) if str(item["sk"]).startswith(DEMAND))
        return sorted(map(_demand, waiting), key=lambda demand: (demand.since, demand.who))

    def _at_the_gate(self, now: datetime) -> Iterator[Item]:
        found = self.table.query("#pk = :gate", {"gate": GATE})
        return (item for item in found if moment(item["until"]) > now)


def _bounds(chosen: RunFilter, after: Cursor | None) -> tuple[str, str]:
    """Sort keys: from the first on, and before the second."""
    before = [at(chosen.until, "")] if chosen.until is not None else []
    if after is not None:
        before.append(at(after.started, after.id))
    return BEFORE_ALL if chosen.since is None else at(chosen.since, ""), min(before, default=AFTER_ALL)


def _label_key(result: str) -> Key:
    return Key(LABELS, result)


def _label(item: Item) -> Label:
    return Label.model_validate({**json.loads(body_of(item)), "drawn": "drawn" in item})


def _permit(item: Item) -> Permit:
    return Permit(
        slot=int(str(item["sk"])),
        holder=str(item["holder"]),
        lane=lane_of(item),
        fence=int(item["fence"]),
        until=moment(item["until"]),
    )


def _demand(item: Item) -> Demand:
    return Demand(lane_of(item), moment(item["since"]), str(item["who"]))
