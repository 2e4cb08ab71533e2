"""What every `Deliveries` promises. A test class names one by the fixture `deliveries`."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.adapters.contracts.samples import NOW

from wikikeeper.ports_hooks import Deliveries


class DeliveriesContract:
    @pytest.fixture
    def deliveries(self) -> Iterator[Deliveries]:
        raise NotImplementedError

    def test_a_delivery_is_to_be_worked_on_until_it_is_finished(self, deliveries: Deliveries) -> None:
        assert deliveries.begin("k", NOW)
        assert deliveries.begin("k", NOW)

        deliveries.finish("k", NOW)
        deliveries.finish("k", NOW)

        assert not deliveries.begin("k", NOW)
        assert deliveries.begin("other", NOW)

    def test_what_was_never_begun_can_be_finished_without_harm(self, deliveries: Deliveries) -> None:
        deliveries.finish("k", NOW)

        assert deliveries.begin("k", NOW)

    def test_all_that_begin_at_once_before_the_end_are_told_to_work(self, deliveries: Deliveries) -> None:
        with ThreadPoolExecutor(4) as pool:
            assert all(pool.map(lambda _: deliveries.begin("k", NOW), range(8)))
