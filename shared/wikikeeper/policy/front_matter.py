"""YAML front matter: the block of named values between two `---` lines at the top of a Markdown file.

Values are read as they are written. YAML's guesses are not asked for, because they are wrong where people write
topics: `language: no` would become False, `title: 1e3` a number and `until: 2026-12-31` a date before anybody could
say in which line it is wrong. What each value means is for the reader of the field to decide.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime

import yaml

FENCE = "---"
LINE_ENDS = re.compile(r"(?<=\n)|(?<=\r)(?!\n)")
"""Lines as editors count them; str.splitlines also breaks at form feeds and the like."""
DEEPEST = 4
"""Levels of nesting. Ours need three (a mapping of a mapping of a list); the parser's time grows with the square of it."""
ONE_LINE = 2**31 - 1
"""Line width when writing: a folded value is harder to edit by hand and makes larger diffs."""

Plain = str | int | float | bool | date | datetime | None | Sequence["Plain"] | Mapping[str, "Plain"]
"""What can be written as front matter."""


@dataclass(frozen=True)
class Field:
    """One value and the line of the file on which it stands."""

    line: int
    value: "str | tuple[Field, ...] | dict[str, Field] | None"
    """None: nothing was written (`title:`, `title: ~`). A text is as written, whatever it looks like."""

    @property
    def plain(self) -> Plain:
        """The value without its lines."""
        match self.value:
            case tuple():
                return [item.plain for item in self.value]
            case dict():
                return {name: item.plain for name, item in self.value.items()}
            case _:
                return self.value


@dataclass(frozen=True)
class FrontMatter:
    """A file taken apart."""

    fields: dict[str, Field]
    body: str
    """Everything below the closing fence, untouched."""
    body_line: int
    """The line on which the body starts."""


@dataclass(frozen=True)
class Broken:
    """Why a file has no readable front matter."""

    line: int
    reason: str


def split(text: str) -> tuple[str, str, int] | Broken:
    """The block between the fences, the body below it, and the line on which the body starts.

    A byte order mark before the first fence and any kind of line end are accepted. The block comes with LF line ends;
    line n of it is line n + 1 of the file.
    """
    lines = LINE_ENDS.split(text.removeprefix("\ufeff"))
    if lines[0].rstrip() != FENCE:
        return Broken(1, f"no front matter: the first line must be {FENCE}")
    for number, line in enumerate(lines[1:], start=1):
        if line.rstrip() == FENCE:
            return (
                "".join(line.rstrip("\r\n") + "\n" for line in lines[1:number]),
                "".join(lines[number + 1 :]),
                number + 2,
            )
    return Broken(1, f"the front matter never ends: put a line {FENCE} below it")


def parse(text: str) -> FrontMatter | Broken:
    """Take a file apart. Never raises, whatever the text is."""
    parts = split(text)
    if isinstance(parts, Broken):
        return parts
    block, body, body_line = parts
    try:
        refused = _refused(block)
        root = None if refused else yaml.compose(block, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        line = _line(block, error.problem_mark or error.context_mark)
        return Broken(line, _explained(error, block.splitlines()[line - 2 : line - 1]))
    except yaml.reader.ReaderError as error:
        line = block.count("\n", 0, error.position) + 2
        return Broken(line, f"an invisible control character (U+{ord(block[error.position]):04X}): delete it")
    if refused:
        return refused
    if root is None:
        return FrontMatter({}, body, body_line)
    if not isinstance(root, yaml.MappingNode):
        return Broken(2, "the front matter must be lines of `name: value`")
    fields = _field(root, block)
    if isinstance(fields, Broken):
        return fields
    assert isinstance(fields.value, dict)
    return FrontMatter(fields.value, body, body_line)


def dump(fields: Mapping[str, Plain], body: str) -> str:
    """Write a file that `parse` takes apart again: the same texts, in the same order, one line per value.

    Line ends inside a text come back as written; they are escaped, so no value can close the block early.
    """
    block = yaml.dump(
        dict(fields), Dumper=_Dumper, allow_unicode=True, sort_keys=False, width=ONE_LINE, default_flow_style=False
    )
    return f"{FENCE}\n{block if fields else ''}{FENCE}\n{body}"


class _Dumper(yaml.SafeDumper):
    """Writes texts with line ends in double quotes: other styles put parts of a value on lines of their own."""

    def ignore_aliases(self, _data: object) -> bool:
        # `parse` refuses aliases, and a reader should see the value where it stands.
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = '"' if len(text.splitlines()) > 1 or text != text.strip() else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def _line(block: str, mark: "yaml.error.Mark | yaml._yaml.Mark | None") -> int:
    """The line of the file. YAML's own count differs: it also breaks lines at U+0085, U+2028 and U+2029."""
    return block.count("\n", 0, mark.index) + 2 if mark else 1


def _whole(text: str) -> str:
    """Without lone surrogates, which YAML escapes can make and no file can hold. Two that belong together join."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _refused(block: str) -> Broken | None:
    """Look at the events alone, before anything is built from them: stops at the first that could grow."""
    depth = 0
    for event in yaml.parse(block, Loader=yaml.SafeLoader):
        line = _line(block, event.start_mark)
        if isinstance(event, yaml.AliasEvent):
            return Broken(line, f"`*{event.anchor}` refers to another value: put a text that starts with * in quotes")
        if isinstance(event, yaml.NodeEvent) and event.anchor is not None:
            return Broken(line, f"`&{event.anchor}` names a value: put a text that starts with & in quotes")
        if isinstance(event, yaml.ScalarEvent | yaml.CollectionStartEvent) and event.tag is not None:
            return Broken(line, f"`{event.tag}` is a YAML tag: put a text that starts with ! in quotes")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        if isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > DEEPEST:
            return Broken(line, "nested too deeply")
    return None


def _field(node: yaml.Node, block: str) -> Field | Broken:
    line = _line(block, node.start_mark)
    match node:
        case yaml.ScalarNode():
            nothing = node.tag == "tag:yaml.org,2002:null"
            return Field(line, None if nothing else _whole(node.value))
        case yaml.SequenceNode():
            items: list[Field] = []
            for child in node.value:
                item = _field(child, block)
                if isinstance(item, Broken):
                    return item
                items.append(item)
            return Field(line, tuple(items))
        case yaml.MappingNode():
            return _mapping(node, line, block)
    raise AssertionError(f"an unknown kind of YAML node: {node!r}")


def _mapping(node: yaml.MappingNode, line: int, block: str) -> Field | Broken:
    fields: dict[str, Field] = {}
    for key, child in node.value:
        key_line = _line(block, key.start_mark)
        if not isinstance(key, yaml.ScalarNode):
            return Broken(key_line, "a name must be a single word")
        if key.value in fields:
            return Broken(key_line, f"`{key.value}` stands there twice (first in line {fields[key.value].line})")
        item = _field(child, block)
        if isinstance(item, Broken):
            return item
        fields[key.value] = Field(key_line, item.value)
    return Field(line, fields)


def _explained(error: yaml.MarkedYAMLError, at: Sequence[str]) -> str:
    """YAML's own words help nobody who meets them first; the usual causes are three."""
    line = at[0] if at else ""
    value = line.partition(":")[2].strip() or line.strip().removeprefix("-").strip()
    if value.startswith(("*", "&", "!", "%", "@", "`")):
        return f'put the value in quotes, because it starts with {value[0]}: "{value}"'
    if "\t" in line[: len(line) - len(line.lstrip())]:
        return "a tab at the start of the line: YAML wants spaces"
    if ": " in value:
        return "put the value in quotes, because it has a colon in it"
    return f"not YAML: {error.problem or error.context or 'cannot be read'}"
