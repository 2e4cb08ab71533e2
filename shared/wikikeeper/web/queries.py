"""What forms and addresses bring: empty fields mean "all", and a wrong value is named."""

from datetime import UTC, date, datetime, time, timedelta
from typing import Annotated, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field

from wikikeeper.models import Kind, Trigger
from wikikeeper.policy.run_filter import Cursor, Ended, RunFilter

T = TypeVar("T")
LONGEST = 300
"""Characters of anything that a form or an address names."""


def _none_if_empty(value: object) -> object:
    return None if value == "" else value


def _a_cursor(value: str | None) -> str | None:
    if value is not None:
        Cursor.read(value)
    return value


Maybe = Annotated[T | None, BeforeValidator(_none_if_empty)]
"""A form sends its empty fields too."""
Name = Annotated[str, Field(max_length=LONGEST)]
Place = Annotated[Maybe[Name], AfterValidator(_a_cursor)]
"""A cursor, as text."""


class RunQuery(BaseModel):
    """The filters of the runs, as they stand in the address."""

    topic: Maybe[Name] = None
    trigger: Maybe[Trigger] = None
    ended: Maybe[Ended] = None
    kind: Maybe[Kind] = None
    # Docstrings would have to be looked for in the source at each cold start.
    since: Maybe[date] = Field(None, description="The first day, in UTC.")
    until: Maybe[date] = Field(None, description="The last day, in UTC.")
    before: Place = Field(None, description="Where the page before ended.")

    @property
    def chosen(self) -> RunFilter:
        return RunFilter(
            topic=self.topic,
            trigger=self.trigger,
            ended=self.ended,
            kind=self.kind,
            since=None if self.since is None else _begin(self.since),
            # The last day of all has no next one, and nothing after it.
            until=None if self.until in (None, date.max) else _begin(self.until + timedelta(days=1)),
        )

    @property
    def after(self) -> Cursor | None:
        return None if self.before is None else Cursor.read(self.before)

    @property
    def filtered(self) -> dict[str, str]:
        """What is chosen, as the next page's address repeats it."""
        return {name: str(value) for name, value in self.model_dump(exclude={"before"}).items() if value is not None}


def _begin(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)
