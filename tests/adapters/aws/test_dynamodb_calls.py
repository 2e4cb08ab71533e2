"""Calls on DynamoDB: the count and the mark are one write of the cycle's item."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.adapters.aws.processes import Fated, Killed, mortal
from tests.adapters.aws.schema import make_bucket, make_table
from tests.adapters.aws.units import KILOBYTE, CountingTable, size
from tests.adapters.contracts.samples import (
    CYCLE,
    HASH,
    LEASE,
    NOW,
    SECOND,
    VERDICT,
    a_cycle,
    a_failure,
    a_result,
    claimed,
    stored,
    stored_cycle,
)
from tests.workflows.world import open_world

from wikikeeper.adapters.aws.clients import Clients
from wikikeeper.adapters.aws.dynamodb_calls import AT_ONCE
from wikikeeper.adapters.aws.dynamodb_items import ESCALATIONS, call_mark, cycle_key
from wikikeeper.adapters.aws.dynamodb_store import DynamoRunStore
from wikikeeper.adapters.aws.dynamodb_table import Item, Key, Table
from wikikeeper.adapters.aws.s3_pages import S3Pages
from wikikeeper.errors import NotNow
from wikikeeper.models import (
    Claim,
    Condition,
    CycleState,
    Escalation,
    ModelSighting,
    ResultState,
    Send,
    Silence,
    StartCycle,
)

UNTIL = NOW + LEASE
LONGER = NOW + 2 * LEASE


@pytest.fixture
def table(roto: Clients) -> Table:
    return make_table(roto.dynamodb)


def process(roto: Clients, table: Table) -> DynamoRunStore:
    return DynamoRunStore(table, S3Pages(roto.s3, "none"))


@pytest.fixture
def store(roto: Clients, table: Table) -> DynamoRunStore:
    return process(roto, table)


def begun(store: DynamoRunStore, claim: Claim) -> Claim:
    call = store.begin_call(claim, CYCLE, NOW, UNTIL)
    assert call is not None
    return call


def marks(table: Table) -> set[str]:
    item = table.get(cycle_key(CYCLE))
    assert item is not None
    return {name for name in item if name.startswith("call_")}


def test_the_first_call_of_a_claim_is_one_write(roto: Clients, table: Table) -> None:
    counting = CountingTable(roto.dynamodb, table.name)
    store = process(roto, counting)
    claim = claimed(store)
    counting.written.clear()
    call = begun(store, claim)

    assert counting.written == {("cycle", "item"): 1}
    assert (call.fence, call.until, call.called) == (claim.fence, claim.until, NOW)
    assert stored(store) == claim.result
    assert stored_cycle(store).active == NOW


def test_a_claim_that_would_end_before_the_call_is_renewed_by_its_fence(store: DynamoRunStore) -> None:
    claim = claimed(store)
    call = store.begin_call(claim, CYCLE, NOW, LONGER)

    assert call is not None
    assert (call.fence, call.until) == (claim.fence + 1, LONGER)
    assert (stored(store).fence, stored(store).lease_until) == (claim.fence + 1, LONGER)


def test_marks_go_with_the_next_count_of_the_same_process(store: DynamoRunStore, table: Table) -> None:
    store.start_cycle(a_cycle(cap=10))
    first, second, third, last = (begun(store, claimed(store, a_result(number))) for number in range(4))
    store.finish(first, ResultState.DISCARDED, NOW)
    store.finish(second, ResultState.KEPT, NOW, verdict=VERDICT)
    store.put_back(third, stay_in_cycle=False, failure=a_failure())
    assert len(marks(table)) == 4

    again = begun(store, last)  # the call that it made has its run by now
    assert marks(table) == {call_mark(last.result.id, again.fence)}
    assert stored_cycle(store).calls == 5


def test_a_process_that_died_leaves_its_marks_to_the_reaper(roto: Clients, table: Table, store: DynamoRunStore) -> None:
    store.start_cycle(a_cycle(cap=10))
    dead = begun(process(roto, table), claimed(store, a_result(1)))
    store.finish(begun(store, claimed(store, a_result(2))), ResultState.DISCARDED, NOW)
    begun(store, claimed(store, a_result(3)))

    assert store.call_begun(stored(store, dead.result.id)) == NOW
    assert marks(table) == {call_mark("r0001", 1), call_mark("r0003", 1)}


def test_a_mark_is_no_other_calls(roto: Clients, table: Table, store: DynamoRunStore) -> None:
    """What this process remembers to remove is its own call's, also where another now calls for the same result."""
    store.start_cycle(a_cycle(cap=10))
    store.put_back(begun(store, claimed(store)), stay_in_cycle=True)
    other = process(roto, table)
    claim = other.claim("r0001", CYCLE, NOW, UNTIL)
    assert claim is not None
    other.begin_call(claim, CYCLE, NOW + SECOND, UNTIL)
    begun(store, claimed(store, a_result(2)))

    assert store.call_begun(stored(store)) == NOW + SECOND


def test_a_cycle_stays_small_however_many_calls_it_makes(store: DynamoRunStore, table: Table) -> None:
    store.start_cycle(a_cycle(cap=200))
    largest = 0
    for wave in range(3):
        claims = [
            begun(store, claimed(store, a_result(id=f"{wave:012x}{number:012x}", canonical=f"{wave} {number}")))
            for number in range(10)
        ]
        item = table.get(cycle_key(CYCLE))
        assert item is not None
        largest = max(largest, size(item))
        for claim in claims:
            store.finish(claim, ResultState.DISCARDED, NOW)

    assert largest <= KILOBYTE
    assert len(marks(table)) <= 10 < AT_ONCE


@pytest.mark.parametrize("request_number", range(4))
@pytest.mark.parametrize("last", [False, True])
def test_a_worker_that_dies_in_begin_call_leaves_a_mark_exactly_for_a_counted_call(
    roto: Clients, table: Table, store: DynamoRunStore, request_number: int, last: bool
) -> None:
    """Of a repeated call: look, renew, count."""
    claim = begun(store, claimed(store))
    dying = process(roto, mortal(table, request_number, last=last))
    try:
        again = dying.begin_call(claim, CYCLE, NOW + SECOND, UNTIL)
    except Killed:
        again = None
    left = stored(store)

    counted = stored_cycle(store).calls == 2
    assert counted == (request_number > 2 or (request_number == 2 and last))
    assert (store.call_begun(left) == NOW + SECOND) == counted
    if again is None:
        assert store.free("r0001", left.fence, UNTIL, stay_in_cycle=True, called=store.call_begun(left))


def test_a_call_that_is_refused_at_the_count_leaves_no_trace_on_its_result(
    roto: Clients, table: Table, store: DynamoRunStore
) -> None:
    first, late = claimed(store, a_result(1, etag='"1"')), claimed(store, a_result(2))

    def others_call() -> None:
        """Between its look at the cycle and its own count."""
        for number in range(3, 6):
            begun(store, claimed(store, a_result(number)))

    frozen = process(roto, Fated(table, 2, others_call))
    for claim in (first, late):
        assert frozen.begin_call(claim, CYCLE, NOW, LONGER) is None
        assert stored(store, claim.result.id) == claim.result
        assert store.finish(claim, ResultState.DISCARDED, NOW)
    assert stored_cycle(store).calls == 3


def test_a_worker_that_was_frozen_before_its_count_counts_a_call_that_decides_nothing(
    roto: Clients, table: Table, store: DynamoRunStore
) -> None:
    """What looking at a lease by the clock leaves open: the cap holds, and the verdict is refused."""
    claim = claimed(store)
    frozen = process(roto, Fated(table, 0, lambda: store.free("r0001", claim.fence, UNTIL, stay_in_cycle=True)))
    call = frozen.begin_call(claim, CYCLE, NOW, UNTIL)

    assert call is not None
    assert stored_cycle(store).calls == 1
    assert not frozen.finish(call, ResultState.KEPT, UNTIL, verdict=VERDICT)
    assert store.call_begun(stored(store)) is None
    assert stored(store).state is ResultState.WAITING


def test_an_id_that_no_update_can_name_is_refused(store: DynamoRunStore) -> None:
    claim = claimed(store, a_result(id="not-a-word"))

    with pytest.raises(ValueError, match="'not-a-word'"):
        store.begin_call(claim, CYCLE, NOW, UNTIL)
    assert stored_cycle(store).calls == 0


def test_what_is_known_of_a_page_and_comes_with_its_verdict_is_kept_together(store: DynamoRunStore) -> None:
    claim = begun(store, claimed(store, a_result(etag='"1"')))
    store.finish(claim, ResultState.KEPT, NOW, title="Its own", last_modified="today", verdict=VERDICT, text_hash=HASH)

    result = stored(store)
    assert (result.title, result.text_hash, result.etag, result.last_modified) == ("Its own", HASH, '"1"', "today")


def test_a_result_that_is_given_up_remembers_its_call_and_why(store: DynamoRunStore) -> None:
    store.start_cycle(a_cycle())
    call = begun(store, claimed(store))
    assert not store.give_up("r0001", call.fence, UNTIL - SECOND, failure=a_failure())
    assert store.give_up("r0001", call.fence, UNTIL, failure=a_failure(), called=call.called)

    result = stored(store)
    assert (result.state, result.cycle, result.failures) == (ResultState.PARKED, None, (a_failure(),))
    assert (result.call_fence, result.call_started, result.fence) == (1, NOW, 2)
    assert not store.give_up("r0001", call.fence, UNTIL + timedelta(hours=1), failure=a_failure())


def test_a_result_that_is_put_back_with_its_call_is_one_write_of_one_unit(roto: Clients, table: Table) -> None:
    counting = CountingTable(roto.dynamodb, table.name)
    store = process(roto, counting)
    call = begun(store, claimed(store))
    counting.written.clear()

    assert store.put_back(call, stay_in_cycle=False, failure=a_failure(detail="d" * 300))
    assert counting.written == {("result", "item"): 1}


class Throttled(Table):
    """Takes everything but verdicts."""

    throttled = True

    def change(self, key: Key, changes: Mapping[str, Any], *given: Any, **more: Any) -> Item | None:  # noqa: ANN401 - the base's
        if self.throttled and "finished" in changes:
            raise NotNow("throttled")
        return super().change(key, changes, *given, **more)


def test_a_page_is_not_asked_about_again_for_a_verdict_that_the_table_did_not_take(
    roto: Clients, table: Table, tmp_path: Path
) -> None:
    throttled = Throttled(roto.dynamodb, table.name)
    with open_world(tmp_path) as world:
        world.app = replace(world.app, store=DynamoRunStore(throttled, S3Pages(roto.s3, make_bucket(roto))))
        world.pages(a="Some text.")
        errors = world.run(Send(command=StartCycle(topic="postgres", tick="t")))
        assert [type(error) for error in errors] == [NotNow]
        assert world.states() == {"a": ResultState.WAITING}

        throttled.throttled = False
        world.cycle()

        assert world.states() == {"a": ResultState.KEPT}
        assert [run.outcome for run in world.runs()] == ["answered"]
        assert len(world.keeper.asked) == 1


def test_freezing_stands_still_before_a_request(table: Table) -> None:
    """The helper of these tests does what it says."""
    seen: list[Item | None] = []
    frozen = Fated(table, 1, lambda: seen.append(table.get(Key("a", "b"))))
    frozen.put_new({"pk": "a", "sk": "b"})
    frozen.put_new({"pk": "c", "sk": "d"})

    assert [item is not None for item in seen] == [True]


@pytest.mark.parametrize("state", [CycleState.OPEN, CycleState.STOPPED])
def test_a_call_that_cannot_be_counted_renews_no_claim_for_nothing(
    roto: Clients, table: Table, state: CycleState
) -> None:
    """Where the cap is reached, and where the cycle is over: the look costs half a unit, the writes two and more."""
    counting = CountingTable(roto.dynamodb, table.name)
    store = process(roto, counting)
    store.start_cycle(a_cycle(cap=0 if state is CycleState.OPEN else 9, state=state))
    claim = claimed(store)
    counting.written.clear()

    assert store.begin_call(claim, CYCLE, NOW, LONGER) is None
    assert not counting.written


@pytest.mark.parametrize(
    ("stored", "flags"),
    [
        ({}, {}),
        ({"fetched": True}, {"fetched": True}),
        ({"fetched": True, "refusals": 2}, {"fetched": True}),
        ({"answered": True}, {"answered": True}),
    ],
)
def test_a_flag_that_is_raised_already_costs_no_write(
    roto: Clients, table: Table, stored: dict[str, object], flags: dict[str, bool]
) -> None:
    counting = CountingTable(roto.dynamodb, table.name)
    store = process(roto, counting)
    store.start_cycle(a_cycle(**stored))
    counting.written.clear()

    store.mark_cycle(CYCLE, **flags)

    assert not counting.written


def test_hearing_of_what_was_never_silent_costs_no_write(roto: Clients, table: Table) -> None:
    counting = CountingTable(roto.dynamodb, table.name)
    store = process(roto, counting)
    store.count_silence(Silence(subject="note:t", nonresponses=0, since=NOW, counted=NOW), instead_of=None)
    counting.written.clear()

    store.heard("note:t")
    store.heard("note:unknown")

    assert not counting.written


def test_a_cycle_that_ended_is_in_no_index_of_what_is_open(roto: Clients, table: Table) -> None:
    """An entry that stays is read by every sweep, for ever."""
    store = process(roto, table)
    store.start_cycle(a_cycle())
    store.end_cycle(CYCLE, CycleState.EXPIRED, NOW, only_from=frozenset({CycleState.OPEN}))
    expired = table.get(cycle_key(CYCLE))
    store.end_cycle(CYCLE, CycleState.STOPPED, NOW, only_from=frozenset({CycleState.EXPIRED}))
    stopped = table.get(cycle_key(CYCLE))

    assert expired is not None
    assert stopped is not None
    assert ("open" in expired, "open" in stopped) == (True, False)


def test_an_escalation_that_was_delivered_is_in_no_index_of_what_is_open(roto: Clients, table: Table) -> None:
    store = process(roto, table)
    store.escalate(Escalation(id="note:t:1", subject="note:t", topic="t", detail="d", raised=NOW))
    waiting = table.get(Key(ESCALATIONS, "note:t:1"))
    store.escalation_delivered("note:t:1", NOW)
    told = table.get(Key(ESCALATIONS, "note:t:1"))

    assert waiting is not None
    assert told is not None
    assert ("open" in waiting, "open" in told) == (True, False)


def test_of_two_who_see_the_model_change_one_tells(roto: Clients, table: Table) -> None:
    def sighting(condition: Condition, seconds: int) -> ModelSighting:
        return ModelSighting(
            model="decider", condition=condition, cause="", detail="", since=NOW + timedelta(seconds=seconds)
        )

    store = process(roto, table)
    store.saw_model(sighting(Condition.HEALTHY, 0))
    told: list[bool] = []
    # It has looked, and put what was into the history.
    late = process(roto, Fated(table, 2, lambda: told.append(store.saw_model(sighting(Condition.LOADING, 2)))))
    told.append(late.saw_model(sighting(Condition.UNREACHABLE, 1)))

    assert told == [True, False]
    assert [seen.condition for seen in store.model_history()] == [Condition.LOADING, Condition.HEALTHY]
