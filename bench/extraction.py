"""How well and how fast pages become text: the real extractor, child process included, over pages with known truth.

    python bench/extraction.py DIR [--json] [--compare]

DIR holds `pages.jsonl` (a page a line: id, half, encoding) and a folder for each page: `source.html`, and either
`expected.txt` (the main text) or `expected_segments.json` (`must_contain`, `must_not_contain`), or neither.

f1        mean over pages with a main text: harmonic mean of precision and recall over tokens, each counted as often as
          it occurs; a token is a word, or a character in Chinese and Japanese
must      share of the segments that have to be in the text and are
must_not  share of the segments that have to be absent and are
failed    pages that gave no text, or an error

--compare measures each extractor by itself in this process, without limits; `readability-lxml` where it is installed.
"""

import argparse
import json
import re
import time
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lxml.html import HtmlElement, document_fromstring
from trafilatura import bare_extraction
from trafilatura.settings import Document

from wikikeeper.adapters.web import extract_html
from wikikeeper.adapters.web.charset import decode
from wikikeeper.adapters.web.extract import ChildExtractor
from wikikeeper.adapters.web.extract_hidden import take_hidden
from wikikeeper.errors import Unfetchable
from wikikeeper.models import Fetched
from wikikeeper.policy.paragraphs import paragraphs
from wikikeeper.settings import Extraction

_CJK = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_TOKEN = re.compile(rf"[{_CJK}]|[^\W{_CJK}]+")
_SPACE = re.compile(r"\s+")

Read = Callable[[bytes, str | None], str]
"""From the body of a page and its declared charset to its text."""


@dataclass(frozen=True)
class Page:
    """One page and what is known of it."""

    name: str
    half: str
    charset: str | None
    body: bytes
    truth: str | None
    must: tuple[str, ...] = ()
    must_not: tuple[str, ...] = ()


@dataclass
class Score:
    """What was measured."""

    f1: list[float] = field(default_factory=list)
    must: list[bool] = field(default_factory=list)
    must_not: list[bool] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)

    def figures(self) -> dict[str, float | int]:
        return {
            "f1": round(_mean(self.f1), 4),
            "must": round(_mean(self.must), 4),
            "must_not": round(_mean(self.must_not), 4),
            "pages_per_second": round(len(self.seconds) / sum(self.seconds), 1),
            "slowest_s": round(max(self.seconds), 2),
            "failed": len(self.failed),
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, metavar="DIR")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--compare", action="store_true", help="measure the extractors one by one instead")
    options = parser.parse_args()
    pages = list(load(options.folder))
    if options.compare:
        figures = {name: measure(pages, read).figures() for name, read in candidates()}
        print(json.dumps(figures) if options.json else _table(figures))
        return
    extractor = ChildExtractor(Extraction())
    try:
        extractor.extract(_fetched(b"<p>The child process starts with the first page.</p>", None))
        if options.json:
            print(json.dumps(measure(pages, _reading(extractor)).figures()))
            return
        halves = {half: [page for page in pages if page.half == half] for half in sorted({page.half for page in pages})}
        scores = {name: measure(some, _reading(extractor)) for name, some in {"all": pages, **halves}.items()}
        print(_table({name: score.figures() for name, score in scores.items()}))
        for failure in scores["all"].failed:
            print("failed:", failure)
    finally:
        extractor.close()


def load(folder: Path) -> Iterator[Page]:
    for line in (folder / "pages.jsonl").read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        home = folder / record["id"]
        text, segments = home / "expected.txt", home / "expected_segments.json"
        expected: dict[str, Any] = json.loads(segments.read_text(encoding="utf-8")) if segments.exists() else {}
        yield Page(
            name=record["id"],
            half=record["half"],
            charset=record["encoding"],
            body=(home / "source.html").read_bytes(),
            truth=text.read_text(encoding="utf-8") if text.exists() else None,
            must=tuple(expected.get("must_contain", ())),
            must_not=tuple(expected.get("must_not_contain", ())),
        )


def measure(pages: Iterable[Page], read: Read) -> Score:
    score = Score()
    for page in pages:
        started = time.monotonic()
        try:
            text = read(page.body, page.charset)
        except Exception as error:  # noqa: BLE001 - whatever is raised is what is counted
            text = ""
            score.failed.append(f"{page.name}: {type(error).__name__}: {error}")
        score.seconds.append(time.monotonic() - started)
        if page.truth is not None:
            score.f1.append(token_f1(text, page.truth))
        found = _bare(text)
        score.must += [_bare(segment) in found for segment in page.must]
        score.must_not += [_bare(segment) not in found for segment in page.must_not]
    return score


def token_f1(text: str, truth: str) -> float:
    found, wanted = _tokens(text), _tokens(truth)
    common = sum((found & wanted).values())
    return 2 * common / max(1, sum(found.values()) + sum(wanted.values()))


def candidates() -> Iterator[tuple[str, Read]]:
    """The extractors by themselves, all behind the same decoding and the same removal of what is hidden."""
    yield "trafilatura", _by(lambda root: _trafilatura(root, "balanced"))
    yield "trafilatura, precision", _by(lambda root: _trafilatura(root, "precision"))
    yield "trafilatura, recall", _by(lambda root: _trafilatura(root, "recall"))
    try:
        from readability import Document as Readability  # noqa: PLC0415 - not needed to run wikikeeper
    except ImportError:
        pass
    else:
        yield "readability-lxml", _by(lambda root: document_fromstring(Readability(root).summary()))
    yield "resiliparse", lambda body, charset: _joined(extract_html.read_html(decode(body, charset), fast=True).blocks)


def _trafilatura(root: HtmlElement, focus: str) -> HtmlElement | None:
    precision, recall = focus == "precision", focus == "recall"
    found = bare_extraction(root, include_comments=False, favor_precision=precision, favor_recall=recall)
    return found.body if isinstance(found, Document) else None


def _by(extract: Callable[[HtmlElement], HtmlElement | None]) -> Read:
    def read(body: bytes, charset: str | None) -> str:
        root = extract_html.tree_of(decode(body, charset))
        if root is not None:
            take_hidden(root)
        main = None if root is None else extract(root)
        return _joined(() if main is None else extract_html.blocks_of(main))

    return read


def _reading(extractor: ChildExtractor) -> Read:
    return lambda body, charset: "\n".join(extractor.extract(_fetched(body, charset)).paragraphs)


def _fetched(body: bytes, charset: str | None) -> Fetched:
    return Fetched(url="https://example.org/", status=200, content_type="text/html", charset=charset, body=body)


def _joined(blocks: Iterable[str]) -> str:
    text = "\n".join(paragraphs(blocks))
    if not text:
        raise Unfetchable("no_text")
    return text


def _tokens(text: str) -> Counter[str]:
    return Counter(_TOKEN.findall(unicodedata.normalize("NFKC", text).lower()))


def _bare(text: str) -> str:
    return _SPACE.sub("", unicodedata.normalize("NFKC", text))


def _mean(values: list[float] | list[bool]) -> float:
    return sum(values) / max(1, len(values))


def _table(figures: dict[str, dict[str, float | int]]) -> str:
    names = list(next(iter(figures.values())))
    lines = [f"{'':24}" + "".join(f"{name:>18}" for name in names)]
    lines += [f"{row:24}" + "".join(f"{values[name]:>18}" for name in names) for row, values in figures.items()]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
