"""A sweep that believes itself alone would free what live workers hold. It belongs to one machine, never on a queue."""

from datetime import timedelta

from tests.functions.stack import Stack, in_process, sqs_event

from wikikeeper.models import Lane, Permit, ReapStale, Wait


def test_a_sweep_that_says_it_is_alone_is_a_dead_letter_and_frees_no_permit(deployed: Stack) -> None:
    gate, lease = deployed.app().gate, timedelta(minutes=5)
    held: list[Permit] = []
    while not isinstance(permit := gate.acquire(Lane.KEEPER, "a live worker", lease, timedelta()), Wait):
        held.append(permit)
    alone = ReapStale(alone=True).model_dump_json()

    assert in_process("reap_stale", sqs_event(alone, ReapStale().model_dump_json())) == {"batchItemFailures": []}

    assert deployed.dead_letters() == {"reap": [alone]}
    assert held
    assert isinstance(gate.acquire(Lane.KEEPER, "another", lease, timedelta()), Wait)
    assert all(gate.renew(permit, lease) is not None for permit in held)
