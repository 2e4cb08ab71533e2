"""What every store of slots promises: each write of a slot changes it only for who holds it just now. A test class names one:

class TestMySlots(SlotsContract):
    @pytest.fixture
    def slots(self, clock: SettableClock) -> Slots: ...
"""

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
from tests.adapters.contracts.gate_callers import TTL
from tests.adapters.contracts.samples import NOW, SECOND

from wikikeeper.adapters.gate_slots import Slots
from wikikeeper.fakes import SettableClock
from wikikeeper.models import Lane

Write = Callable[[Slots, int, int], bool]
MOMENT = timedelta(microseconds=1)


def extend(slots: Slots, slot: int, fence: int) -> bool:
    return slots.extend(slot, fence, NOW + 2 * TTL)


def give_back(slots: Slots, slot: int, fence: int) -> bool:
    return slots.give_back(slot, fence)


def live(slots: Slots) -> dict[int, datetime]:
    return dict(slots.look("nobody").live)


class SlotsContract:
    @pytest.fixture
    def clock(self) -> SettableClock:
        return SettableClock(NOW)

    @pytest.fixture
    def slots(self, clock: SettableClock) -> Slots:
        raise NotImplementedError

    @pytest.mark.parametrize("write", [extend, give_back])
    def test_who_holds_a_slot_changes_that_one_alone(self, slots: Slots, write: Write) -> None:
        mine = slots.take(0, "a", Lane.PLEB, NOW + TTL, 10)
        assert mine == slots.take(1, "b", Lane.PLEB, NOW + TTL, 10)
        before = live(slots)

        assert mine is not None
        assert write(slots, 0, mine)
        assert live(slots)[1] == before[1]
        assert live(slots).get(0) != before[0]

    @pytest.mark.parametrize("write", [extend, give_back])
    def test_an_old_fence_changes_nothing(self, slots: Slots, write: Write) -> None:
        mine = slots.take(0, "a", Lane.PLEB, NOW + TTL, 10)
        before = live(slots)

        assert mine is not None
        assert not write(slots, 0, mine - 1)
        assert not write(slots, 1, mine)
        assert live(slots) == before

    @pytest.mark.parametrize("write", [extend, give_back])
    def test_a_lease_that_has_ended_is_over(self, slots: Slots, clock: SettableClock, write: Write) -> None:
        mine = slots.take(0, "a", Lane.PLEB, NOW + TTL, 10)
        other = slots.take(1, "b", Lane.PLEB, NOW + TTL, 20)
        assert mine is not None
        assert other is not None
        clock.advance(TTL - MOMENT)
        assert write(slots, 1, other)
        clock.advance(MOMENT)

        assert not write(slots, 0, mine)

    @pytest.mark.parametrize("write", [extend, give_back])
    def test_what_was_given_back_or_freed_is_nobodys(self, slots: Slots, write: Write) -> None:
        mine = slots.take(0, "a", Lane.PLEB, NOW + TTL, 10)
        assert mine is not None
        assert slots.give_back(0, mine)
        assert not write(slots, 0, mine)

        again = slots.take(0, "a", Lane.PLEB, NOW + TTL, 10)
        assert again is not None
        slots.free_all()
        assert not write(slots, 0, again)
        assert live(slots) == {}

    def test_a_slot_is_taken_when_its_lease_has_ended_and_its_fence_grows_by_what_is_asked(
        self, slots: Slots, clock: SettableClock
    ) -> None:
        first = slots.take(0, "a", Lane.PLEB, NOW + SECOND, 10)
        clock.advance(SECOND - MOMENT)
        assert slots.take(0, "b", Lane.PLEB, NOW + TTL, 10) is None
        clock.advance(MOMENT)

        assert first is not None
        assert slots.take(0, "b", Lane.PLEB, NOW + TTL, 5) == first + 5
        assert live(slots) == {0: NOW + TTL}
        assert slots.take(0, "c", Lane.PLEB, NOW + TTL, 5) is None

    def test_demands_are_of_others_until_they_end_or_are_taken_back(self, slots: Slots, clock: SettableClock) -> None:
        def wanted(by: str) -> list[tuple[str, Lane]]:
            return sorted((demand.who, demand.lane) for demand in slots.look(by).demands)

        slots.want("a", Lane.KEEPER, NOW, NOW + SECOND)
        slots.want("a", Lane.PLEB, NOW, NOW + TTL)
        slots.want("b", Lane.PLEB, NOW, NOW + TTL)
        assert wanted("b") == [("a", Lane.KEEPER), ("a", Lane.PLEB)]
        assert wanted("a") == [("b", Lane.PLEB)]
        slots.unwant("a", Lane.PLEB)
        assert wanted("b") == [("a", Lane.KEEPER)]
        slots.want("a", Lane.PLEB, NOW, NOW + TTL)

        clock.advance(SECOND - MOMENT)
        assert len(wanted("c")) == 3
        clock.advance(MOMENT)
        assert wanted("c") == [("a", Lane.PLEB), ("b", Lane.PLEB)]
        slots.unwant("a", Lane.PLEB)
        assert wanted("c") == [("b", Lane.PLEB)]
        slots.want("b", Lane.PLEB, NOW, NOW + 2 * TTL)
        clock.advance(TTL)
        assert wanted("c") == [("b", Lane.PLEB)]
        slots.free_all()
        assert wanted("c") == []
