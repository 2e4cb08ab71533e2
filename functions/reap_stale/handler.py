"""reap-stale: finds work that went silent, and sends it again."""

from wikikeeper.handling import Answer, Context, Event, batch, cloud
from wikikeeper.models import ReapStale
from wikikeeper.workflows.reap_stale import reap_stale


def handler(event: Event, context: Context) -> Answer:
    return batch(event, context, cloud("reap_stale"), reap_stale, ReapStale)
