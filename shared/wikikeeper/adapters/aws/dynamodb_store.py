"""The run store in the cloud: one DynamoDB table, and S3 for the texts of kept pages.

Every change is one conditional write of one item; the table of items is in `dynamodb_items.py`.

| to find                                    | asked                                                              |
|--------------------------------------------|--------------------------------------------------------------------|
| one topic, cycle, result, text, run        | GetItem, consistent                                                |
| the newest revision of a URL               | GetItem of the ids of revision 1, 2, 4, ...                        |
| all topics, all alerts                     | Query of their partition                                           |
| unfinished results of a topic, or of all   | Query of `open`, four partitions a topic; then BatchGetItem        |
| kept and not noted                         | the same                                                           |
| unfinished cycles                          | Query of `open`, partition `cycles`; then BatchGetItem             |
| cycles, runs, newest first                 | Query of `listed`, backwards, topic and outcome filtered there     |
| every result there ever was (verify, what-if) | Query of the 16 partitions of results, sorted in memory         |

`listed` has one partition for all cycles and one for all runs: 1,000 calls a second, more than any model server takes.

Write units of one judged result, when each item is below a kilobyte:

    put 1 + `open` 1, sent 1, claimed 1, text claimed 1, call begun 1 + counted 1, run 1 + `listed` 1,
    discarded 1 + `open` 1, or kept 1 and later noted 1 + `open` 1
"""

from collections.abc import Iterator
from datetime import datetime

from wikikeeper.adapters.aws.dynamodb_cycles import Cycles
from wikikeeper.adapters.aws.dynamodb_items import (
    ALERTS,
    RUNS,
    alert_from,
    alert_item,
    alert_prefix,
    run_from,
    run_item,
    run_key,
    text_key,
)
from wikikeeper.adapters.aws.dynamodb_listing import LISTED, entries, items
from wikikeeper.adapters.aws.dynamodb_results import Results
from wikikeeper.adapters.aws.dynamodb_table import Key, Table
from wikikeeper.adapters.aws.dynamodb_topics import Topics
from wikikeeper.adapters.aws.s3_pages import S3Pages
from wikikeeper.models import Alert, Run, RunOutcome, StoredPage


class DynamoRunStore(Topics, Cycles, Results):
    """`RunStore` on DynamoDB and S3. Threads may share one. Clients belong to who made them."""

    def __init__(self, table: Table, pages: S3Pages) -> None:
        Results.__init__(self, table)
        self._pages = pages

    # -- texts

    def claim_text(self, topic: str, text_hash: str, result: str, *, instead_of: str | None = None) -> str:
        when, values = "attribute_not_exists(#owner)", {}
        if instead_of is not None:
            when, values = f"{when} OR #owner = :instead_of", {"instead_of": instead_of}
        key = text_key(topic, text_hash)
        item = self.table.change(key, {"owner": result}, when, values) or self.table.get(key)
        assert item is not None  # an owner is never removed
        return str(item["owner"])

    def put_page(self, page: StoredPage) -> None:
        self._pages.put(page)

    def page(self, text_hash: str) -> StoredPage | None:
        return self._pages.get(text_hash)

    # -- runs

    def put_run(self, run: Run) -> bool:
        if self.table.put_new(run_item(run)):
            return True
        if run.outcome == "lost":
            return False
        late = run_item(run.model_copy(update={"outcome": "superseded"}))
        changes = {name: value for name, value in late.items() if name not in {"pk", "sk"}}
        return self.table.change(run_key(run.id), changes, "#outcome = :lost", {"lost": "lost"}) is not None

    def run(self, run: str) -> Run | None:
        item = self.table.get(run_key(run))
        return None if item is None else run_from(item)

    def runs(self, *, topic: str | None = None, outcome: RunOutcome | None = None) -> Iterator[Run]:
        values = {name: value for name, value in (("topic", topic), ("outcome", outcome)) if value is not None}
        keeping = " AND ".join(f"#{name} = :{name}" for name in values) or None
        listed = entries(self.table, LISTED, RUNS, keeping=keeping, values=values, newest_first=True)
        return map(run_from, items(self.table, listed))

    # -- alerts

    def raise_alert(self, alert: Alert) -> bool:
        return self.table.put_new(alert_item(alert))

    def clear_alerts(self, subject: str) -> None:
        about = {"alerts": ALERTS, "about": alert_prefix(subject)}
        for item in self.table.query("#pk = :alerts AND begins_with(#sk, :about)", about):
            self.table.delete(Key(ALERTS, str(item["sk"])))

    def alerts(self) -> Iterator[Alert]:
        """By subject and cause."""
        return map(alert_from, self.table.query("#pk = :alerts", {"alerts": ALERTS}))

    # -- history

    def purge(self, now: datetime) -> int:  # noqa: ARG002 - DynamoDB and S3 look at the clock themselves
        """Nothing is left to do here: the table's TTL and the bucket's lifecycle rule delete what is over, for free."""
        return 0

    def close(self) -> None:
        """Nothing is held open."""
