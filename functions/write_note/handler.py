"""write-note: brings the open notes of topics up to date, one after the other."""

from wikikeeper.handling import Answer, Context, Event, batch, cloud
from wikikeeper.models import WriteNote
from wikikeeper.workflows.write_note import write_note


def handler(event: Event, context: Context) -> Answer:
    return batch(event, context, cloud("write_note"), write_note, WriteNote)
