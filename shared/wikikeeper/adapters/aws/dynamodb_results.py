"""The run store's results: one URL of a topic in one revision each, from found to verdict.

 add ─▶ waiting ─ send (cycle) ─ claim (fence+1) ─▶ judging ─ begin_call ─ finish ─▶ kept, discarded, folded
           ▲                                          │ │
           ├──────────── put_back (fence holds) ──────┘ │      settle: waiting ─▶ waiting, discarded, parked
           └──────────── free (lease ran out, fence+1) ─┘      retry: parked ─▶ waiting   withdraw: both ─▶ withdrawn

Whoever lost the claim holds an old fence, and no write of theirs changes anything.

A URL of a topic in a revision *is* its id, so that one item says all: a result that is put under another id would be
another result. Revisions are numbered without a gap, since each is opened on the one before.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime

from wikikeeper.adapters.aws.dynamodb_calls import HELD, Calls, claimed, held
from wikikeeper.adapters.aws.dynamodb_items import (
    RESULT_SHARDS,
    failures,
    micros,
    packed,
    page_data,
    result_from,
    result_item,
    result_key,
    result_partition,
    some_micros,
)
from wikikeeper.adapters.aws.dynamodb_listing import items
from wikikeeper.adapters.aws.dynamodb_table import Key, Plus, Scalar, Table
from wikikeeper.adapters.aws.dynamodb_unfinished import Unfinished
from wikikeeper.models import Claim, Failure, Result, ResultState, Verdict
from wikikeeper.policy.identity import result_id

_UNFINISHED = frozenset({ResultState.WAITING, ResultState.JUDGING, ResultState.PARKED})
_JUDGED = frozenset({ResultState.KEPT, ResultState.DISCARDED, ResultState.FOLDED})
_SETTLED = frozenset({ResultState.WAITING, ResultState.DISCARDED, ResultState.PARKED})


class Results:
    """The part of `RunStore` about results."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.unfinished = Unfinished(table)
        self.calls = Calls(table)

    # -- reading

    def result(self, result: str) -> Result | None:
        item = self.table.get(result_key(result))
        return None if item is None else result_from(item)

    def latest(self, topic: str, canonical: str) -> Result | None:
        """One read for a URL that is new, two for one with one revision; few more for many."""
        below: Result | None = None
        reach = 1
        while (found := self.result(result_id(topic, canonical, reach))) is not None:
            below, reach = found, reach * 2
        while below is not None and reach - below.revision > 1:
            middle = (below.revision + reach) // 2
            found = self.result(result_id(topic, canonical, middle))
            if found is None:
                reach = middle
            else:
                below = found
        return below

    def results(self, *, topic: str | None = None, states: frozenset[ResultState] | None = None) -> Iterator[Result]:
        """What is unfinished is found by its lists. The rest is history, which only a person asks for: all its places
        are read, and put in order in memory, 200 bytes for each, so that no write has to pay for an index of it.
        """
        if states is not None and states <= _UNFINISHED:
            found = self.unfinished.listed(topic) if states else iter(())
        else:
            found = items(self.table, (key for _, key in self._everything(topic)))
        for result in map(result_from, found):
            if states is None or result.state in states:
                yield result

    def _everything(self, topic: str | None) -> list[tuple[str, Key]]:
        keeping, values = (None, {}) if topic is None else ("#topic = :topic", {"topic": topic})
        return sorted(
            (str(item["at"]), Key(str(item["pk"]), str(item["sk"])))
            for shard in range(RESULT_SHARDS)
            for item in self.table.query(
                "#pk = :partition",
                {"partition": result_partition(shard), **values},
                keeping=keeping,
                only=("pk", "sk", "at"),
            )
        )

    def unnoted(self, topic: str) -> Iterator[Result]:
        kept = [
            result
            for result in map(result_from, self.unfinished.listed(topic))
            if result.state is ResultState.KEPT and result.noted is None
        ]
        # A cycle keeps a few dozen at most, so they fit.
        return iter(sorted(kept, key=lambda result: (result.finished or result.found, result.id)))

    # -- on the way to a verdict

    def add_results(self, cycle: str | None, results: Sequence[Result]) -> list[Result]:
        lists = self.unfinished.name(cycle, results)
        new = [result for result in results if self.table.put_new(result_item(result))]
        self.unfinished.put(lists, new)
        return new

    def send_result(self, result: str, cycle: str, *, instead_of: str | None) -> bool:
        when, values = "#state = :waiting", {"waiting": str(ResultState.WAITING)}
        if instead_of is None:
            when += " AND attribute_not_exists(#cycle)"
        else:
            when += " AND #cycle = :instead_of"
            values["instead_of"] = instead_of
        return self.table.change(result_key(result), {"cycle": cycle}, when, values) is not None

    def claim(self, result: str, cycle: str, now: datetime, until: datetime) -> Claim | None:
        return claimed(
            self.table.change(
                result_key(result),
                {"state": ResultState.JUDGING, "fence": Plus(1), "lease_until": micros(until)},
                "#state = :waiting AND #cycle = :cycle AND (attribute_not_exists(#not_before) OR #not_before <= :now)",
                {"waiting": ResultState.WAITING, "cycle": cycle, "now": micros(now)},
            )
        )

    def begin_call(self, claim: Claim, cycle: str, now: datetime, until: datetime) -> Claim | None:
        return self.calls.begin(claim, cycle, now, until)

    def call_begun(self, result: Result) -> datetime | None:
        return self.calls.begun(result)

    def finish(
        self,
        claim: Claim,
        state: ResultState,
        at: datetime,
        *,
        verdict: Verdict | None = None,
        folded_into: str | None = None,
        title: str | None = None,
        text_hash: str | None = None,
        etag: str | None = None,
        last_modified: str | None = None,
    ) -> bool:
        """Raises ValueError for a state that is no verdict. A title, hash or validator that is not given stays as it is."""
        if state not in _JUDGED:
            raise ValueError(f"a claim is not finished as {state}")
        changes: dict[str, Scalar | Plus | None] = {
            "state": state,
            "lease_until": None,
            "not_before": None,
            "finished": micros(at),
            "verdict": packed(verdict),
            "folded_into": folded_into,
        }
        given = {"title": title, "text_hash": text_hash, "etag": etag, "last_modified": last_modified}
        if (page := page_data(claim.result, given)) is not None:
            changes["page"] = page
        if state is not ResultState.KEPT:
            changes["open"] = None
        finished = self.table.change(result_key(claim.result.id), changes, HELD, held(claim.fence))
        self.calls.ended(claim)
        return finished is not None

    def put_back(
        self,
        claim: Claim,
        *,
        stay_in_cycle: bool,
        failure: Failure | None = None,
        not_before: datetime | None = None,
    ) -> bool:
        """The newest `FAILURES_KEPT` failures are kept."""
        changes: dict[str, Scalar | Plus | None] = {
            "state": ResultState.WAITING,
            "lease_until": None,
            "not_before": some_micros(not_before),
        }
        if not stay_in_cycle:
            changes["cycle"] = None
        if claim.called is not None:
            # Where the table did not take the verdict, the next claim has it from this call's run.
            changes |= {"call_fence": claim.fence, "call_started": micros(claim.called)}
        if failure is not None:
            # Only who holds the claim adds to them, so those that it was given are all there are.
            changes |= {"failures": failures((*claim.result.failures, failure)), "nonresponses": 0}
        put_back = self.table.change(result_key(claim.result.id), changes, HELD, held(claim.fence))
        self.calls.ended(claim)
        return put_back is not None

    def free(
        self, result: str, fence: int, now: datetime, *, stay_in_cycle: bool, called: datetime | None = None
    ) -> bool:
        changes: dict[str, Scalar | Plus | None] = {
            "state": ResultState.WAITING,
            "fence": Plus(1),
            "nonresponses": Plus(1),
            "lease_until": None,
        }
        if not stay_in_cycle:
            changes["cycle"] = None
        if called is not None:
            changes |= {"call_fence": fence, "call_started": micros(called)}
        expired = held(fence) | {"now": micros(now)}
        return self.table.change(result_key(result), changes, f"{HELD} AND #lease_until <= :now", expired) is not None

    def give_up(
        self, result: str, fence: int, now: datetime, *, failure: Failure, called: datetime | None = None
    ) -> bool:
        before = self.result(result)
        if before is None:
            return False
        changes: dict[str, Scalar | Plus | None] = {
            "state": ResultState.PARKED,
            "fence": Plus(1),
            "lease_until": None,
            "cycle": None,
            # Only who holds the claim adds to them, and the fence says that nobody did.
            "failures": failures((*before.failures, failure)),
        }
        if called is not None:
            changes |= {"call_fence": fence, "call_started": micros(called)}
        expired = held(fence) | {"now": micros(now)}
        return self.table.change(result_key(result), changes, f"{HELD} AND #lease_until <= :now", expired) is not None

    # -- beside a verdict

    def settle(
        self,
        result: str,
        cycle: str,
        *,
        attempts: int,
        state: ResultState,
        verdict: Verdict | None,
        at: datetime,
    ) -> bool:
        """Raises ValueError for a state that failures cannot come to."""
        if state not in _SETTLED:
            raise ValueError(f"failures do not come to {state}")
        discarded = state is ResultState.DISCARDED
        changes: dict[str, Scalar | Plus | None] = {
            "state": state,
            "attempts": attempts,
            "verdict": packed(verdict),
            "finished": micros(at) if discarded else None,
            "settled_cycle": cycle,
        }
        if discarded:
            changes["open"] = None
        settled = self.table.change(
            result_key(result),
            changes,
            "#state = :waiting AND attribute_not_exists(#cycle)"
            " AND (attribute_not_exists(#settled_cycle) OR #settled_cycle <> :settling)",
            {"waiting": ResultState.WAITING, "settling": cycle},
        )
        return settled is not None

    def withdraw(self, result: str, at: datetime) -> bool:
        withdrawn = self.table.change(
            result_key(result),
            {"state": ResultState.WITHDRAWN, "finished": micros(at), "not_before": None, "open": None},
            "#state IN (:waiting, :parked)",
            {"waiting": ResultState.WAITING, "parked": ResultState.PARKED},
        )
        return withdrawn is not None

    def retry(self, result: str) -> bool:
        waiting = self.table.change(
            result_key(result),
            {
                "state": ResultState.WAITING,
                "cycle": None,
                "attempts": 0,
                "nonresponses": 0,
                "not_before": None,
                "verdict": None,
            },
            "#state = :parked",
            {"parked": ResultState.PARKED},
        )
        return waiting is not None

    def mark_noted(self, results: Sequence[str], key: str) -> None:
        """What is noted already keeps its note."""
        for result in results:
            self.table.change(
                result_key(result),
                {"noted": key, "open": None},
                "#state = :kept AND attribute_not_exists(#noted)",
                {"kept": ResultState.KEPT},
            )
