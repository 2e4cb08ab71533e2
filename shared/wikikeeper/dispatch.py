"""Which workflow handles which command."""

from collections.abc import Sequence

from wikikeeper.models import Command, Send
from wikikeeper.workflows.context import App
from wikikeeper.workflows.judge_result import judge_result
from wikikeeper.workflows.reap_stale import reap_stale
from wikikeeper.workflows.schedule_cycle import schedule_cycle
from wikikeeper.workflows.write_note import write_note


def dispatch(command: Command, app: App) -> Sequence[Send]:
    """Run the workflow of a command; what it returns is to be carried on."""
    match command.kind:
        case "start_cycle" | "close_cycle":
            return schedule_cycle(command, app)
        case "judge_result":
            return judge_result(command, app)
        case "write_note":
            return write_note(command, app)
        case "reap_stale":
            return reap_stale(command, app)
