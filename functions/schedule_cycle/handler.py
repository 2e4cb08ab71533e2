"""schedule-cycle: each minute, which topics are due; and, command by command, the start and the close of their cycles."""

from wikikeeper.handling import Answer, Cloud, Context, Event, batch, cloud, invocation
from wikikeeper.models import CloseCycle, StartCycle
from wikikeeper.workflows.schedule_cycle import due, schedule_cycle, withdraw_deleted

NOTHING_FAILED: Answer = {"batchItemFailures": []}


def handler(event: Event, context: Context) -> Answer:
    own = cloud("schedule_cycle")
    if event.get("kind") == "tick":
        return tick(context, own)
    return batch(event, context, own, schedule_cycle, StartCycle, CloseCycle)


def tick(context: Context, own: Cloud) -> Answer:
    """A fault is the invocation's: the next minute does all that this one did not."""
    with invocation(own, context) as (app, _):
        withdraw_deleted(app)
        own.sender.send(due(app))
    return NOTHING_FAILED
