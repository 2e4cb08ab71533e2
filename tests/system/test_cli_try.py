"""The quick start, with the real judge: what a person sees who has just installed it."""

import json
import re
from collections import Counter
from pathlib import Path

import pytest
from tests.system.cli import Cli, files

from wikikeeper import bundled, example
from wikikeeper.app import open_store
from wikikeeper.models import ResultState
from wikikeeper.policy.notes import entries

RELEASE, PRINTED = "file:///pages/heronbase-4-2-bittern.html", "file:///pages/heronbase-4-2-print.html"
"""One text at two addresses: which of them is kept depends on which comes first."""


@pytest.mark.skipif(bundled.missing() is not None, reason=f"the bundled judge lacks {bundled.missing()}")
def test_the_quick_start_judges_the_example_as_it_should_and_a_second_time_asks_nothing(tmp_path: Path) -> None:
    cli = Cli(tmp_path / "none")
    said = cli.afresh("try", "mine")
    wiki = tmp_path / "mine"

    assert (said.code, said.err) == (0, "")
    assert said.lines[0] == "Made the example wiki in mine."
    expected = Counter(page.outcome.partition(":")[0] for page in example.PAGES)
    (row,) = [line.split() for line in said.lines if line.split()[:2] == ["heronbase", "done"]]
    discarded = expected["not_useful"] + expected["injection"] + expected["unfetchable"]
    assert row[1:7] == ["done", str(expected["kept"]), str(discarded), str(expected["folded"]), "0", "0"]
    (note,) = (wiki / "inbox" / "awaiting").iterdir()
    assert f"note: inbox/awaiting/{note.name}" in said.lines
    assert f"Note:  mine/inbox/awaiting/{note.name}" in said.lines
    (runs,) = [line for line in said.lines if line.startswith("Runs:  ")]
    assert "wikikeeper runs --wiki mine" in runs
    (caught,) = [line for line in said.lines if line.startswith("Caught by structure: ")]
    assert "hides a text that addresses an AI reader" in caught
    measured = bundled.recommended()
    assert f"Thresholds: useful >= {measured.keep:g}, injection < {measured.injection:g}." in said.lines
    assert said.lines[-1] == bundled.CANNOT

    with open_store(wiki) as store:
        results = {result.url: result for result in store.results()}
        asked = list(store.runs())
    got = {}
    for url, result in results.items():
        reason = result.verdict.reason if result.verdict else None
        got[url] = "folded" if result.state is ResultState.FOLDED else reason or "kept"
    wanted = {f"file:///{page.path}": page.outcome for page in example.PAGES}
    assert {got.pop(RELEASE), got.pop(PRINTED)} == {wanted.pop(RELEASE), wanted.pop(PRINTED)}
    assert got == wanted
    injected = next(run for run in asked if run.verdict and run.verdict.reason == "injection")
    assert injected.judgement is not None
    assert injected.judgement.injection < measured.injection, "the judge could not: that is why the output says so"
    noted = [entry.result for entry in entries(note.read_bytes())]
    assert sorted(noted) == sorted(r.id for r in results.values() if r.state is ResultState.KEPT)
    assert all(entry.quotes for entry in entries(note.read_bytes()))

    before = files(wiki)
    again = cli("try", "mine")
    assert again.code == 0
    assert again.lines[0] == "Using the example wiki in mine."
    assert files(wiki) == before
    with open_store(wiki) as store:
        assert len(list(store.runs())) == len(asked)
    checked = cli("verify", "-w", "mine")
    assert checked.code == 0
    assert re.fullmatch(r"(\d+) quotes: \1 holds\n", checked.out)
    kept = [json.loads(line) for line in cli("runs", "-w", "mine", "--outcome", "kept", "--json").lines]
    assert len(kept) == expected["kept"]
