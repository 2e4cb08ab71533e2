"""The run store in the cloud: one DynamoDB table, and S3 for the texts of kept pages.

Every change is one conditional write of one item; the table of items is in `dynamodb_items.py`.

| to find                                    | asked                                                              |
|--------------------------------------------|--------------------------------------------------------------------|
| one topic, cycle, result, text, run        | GetItem, consistent                                                |
| the newest revision of a URL               | GetItem of the ids of revision 1, 2, 4, ...                        |
| all topics, alerts, escalations            | Query of their partition                                           |
| undelivered escalations                    | Query of `open`, partition `escalations`; then BatchGetItem        |
| unfinished results of a topic, or of all   | Query of `found`, and of `open` for what older cycles left; then BatchGetItem |
| kept and not noted                         | the same                                                           |
| unfinished cycles                          | Query of `open`, partition `cycles`; then BatchGetItem             |
| cycles, newest first                       | Query of `listed`, backwards, topic filtered there                 |
| runs, newest first                         | Query of their four partitions, backwards, merged                  |
| a run whose start is not known             | Query of its partition from when its result was found              |
| every result there ever was (verify, what-if) | Query of the 16 partitions of results, sorted in memory         |
| a page of runs                             | the same partitions, backwards from the last one shown, merged, matched as they come |
| a page of cycles                           | Query of `listed`, backwards from the last one shown; then BatchGetItem |
| labels                                     | BatchGetItem, or Query of their partition                          |
| permits, and who waits for one             | Query of the partition `gate`                                      |

Write units of one judged result, when each item is below a kilobyte:

    put 1, claimed 1, text claimed 1, call counted 1, run 1, discarded 1, or kept 1 and later noted 1

and a hundredth for the list that names it. Over the cap, or failed, it is sent again in a later cycle: 1 more; and what
its cycle left unfinished has an entry in `open`: 1 when it comes, which is a write of the item as well, and 1 when it goes.
"""

from collections.abc import Iterator
from datetime import datetime

from wikikeeper.adapters.aws.dynamodb_cycles import Cycles
from wikikeeper.adapters.aws.dynamodb_items import (
    ALERTS,
    RUN_SHARDS,
    alert_from,
    alert_item,
    alert_prefix,
    at,
    result_of,
    run_from,
    run_item,
    run_key,
    run_partition,
    run_shard,
    text_key,
)
from wikikeeper.adapters.aws.dynamodb_listing import newest_first
from wikikeeper.adapters.aws.dynamodb_results import Results
from wikikeeper.adapters.aws.dynamodb_silence import Silences
from wikikeeper.adapters.aws.dynamodb_table import Key, Table
from wikikeeper.adapters.aws.dynamodb_topics import Topics
from wikikeeper.adapters.aws.dynamodb_web import Pages
from wikikeeper.adapters.aws.s3_pages import S3Pages
from wikikeeper.models import Alert, Run, RunOutcome, StoredPage


class DynamoRunStore(Topics, Cycles, Results, Silences, Pages):
    """`RunStore` and `PageStore` on DynamoDB and S3. Threads may share one. Clients belong to who made them."""

    def __init__(self, table: Table, pages: S3Pages) -> None:
        Cycles.__init__(self, table)
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
        return (
            self.table.change(run_key(run.id, run.started), changes, "#outcome = :lost", {"lost": "lost"}) is not None
        )

    def supersede_run(self, run: str, started: datetime) -> None:
        known = self.run(run, started)
        if known is not None:
            late = run_item(known.model_copy(update={"outcome": "superseded"}))
            changes = {name: late[name] for name in ("outcome", "body")}
            self.table.change(run_key(run, started), changes, "#outcome = :answered", {"answered": "answered"})

    def run(self, run: str, started: datetime | None = None) -> Run | None:
        key = run_key(run, started) if started is not None else self._searched(run)
        item = None if key is None else self.table.get(key)
        return None if item is None else run_from(item)

    def _searched(self, run: str) -> Key | None:
        """Where a run lies: its partition is known, and it began after its result was found."""
        about = result_of(run)
        if not about:
            return None  # no run has such an id
        result = self.result(about)
        partition, ends = run_partition(run_shard(run)), f"#{run}"
        where, values = "#pk = :partition", {"partition": partition}
        if result is not None:
            where, values = f"{where} AND #sk >= :found", {**values, "found": at(result.found, "")}
        return next(
            (
                Key(partition, str(item["sk"]))
                for item in self.table.query(where, values, only=("sk",))
                if str(item["sk"]).endswith(ends)
            ),
            None,
        )

    def runs(self, *, topic: str | None = None, outcome: RunOutcome | None = None) -> Iterator[Run]:
        values = {name: value for name, value in (("topic", topic), ("outcome", outcome)) if value is not None}
        keeping = " AND ".join(f"#{name} = :{name}" for name in values) or None
        partitions = [run_partition(shard) for shard in range(RUN_SHARDS)]
        return map(run_from, newest_first(self.table, partitions, keeping=keeping, values=values))

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

    def purge(self, now: datetime) -> int:
        """Sweeps the lists of what cycles found. Of history nothing is left to do here: the table's TTL and the bucket's
        lifecycle rule delete what is over, for free.
        """
        self.unfinished.sweep(now)
        return 0

    def close(self) -> None:
        """Nothing is held open."""
