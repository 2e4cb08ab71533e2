"""Mutants of a store's conditional writes: what they ask for, and what they change, with one meaning altered each.

Tools for Python see a statement of SQL or a condition of DynamoDB as one text, and put XX around it. Here it is read:

    a conjunct of a condition       always true                  a member of IN (...)       left out
    an alternative                  never true                   <= < > >= = <> IS IS NOT   the neighbour or the opposite
    an assignment, of SQL or of     left out                     + 1, Plus(1)               + 0
    the changes that are given                                   max, iif, DESC, DO NOTHING min, the other way, ASC, -
    `if`, `and`, `or` and < <= beside them, and calls made for their effect: always, never, the neighbour, left out

What is left out of a statement still stands in it without effect, so that its values stay bound: a mutant that every
server refuses for that says nothing of the tests. Only functions that write are read, and constants that conditions and
changes are made of. Nothing here depends on the store that is read: it goes by what the texts look like.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

WRITES = re.compile(r"\.(change|write|put_new|execute|executemany)\(")
CONSTANT = re.compile(r"#\w+ |\bCASE\b")
SQL = re.compile(r"\b(SET|WHERE|INSERT|DELETE|CASE|ON CONFLICT)\b")
CONDITION = re.compile(r"#[\w{}]+\)? ?(=|<|>|IN\b|\)|$)|attribute_(not_)?exists\(")
KEYS = re.compile(r'^f?"#pk = ')
"""Of a query: they say where to look, not what holds."""
ENDS = re.compile(r"\b(WHERE|RETURNING|ORDER BY|LIMIT|END)\b")
JOINERS = re.compile(r"\b(AND|OR)\b")
COMPARED = re.compile(r"<=|>=|<>|!=|<|>|=|\bIS NOT\b|\bIS\b")
OPPOSITE = {
    "<=": "<", "<": "<=", ">=": ">", ">": ">=", "=": "<>", "<>": "=", "!=": "=", "IS": "IS NOT", "IS NOT": "IS",
}  # fmt: skip
SMALL = (
    (re.compile(r"\+ 1\b"), "+ 0"),
    (re.compile(r"\+ (?=:)"), "+ 0 * "),
    (re.compile(r"\bmax\("), "min("),
    (re.compile(r"\biif\((?=[:?])"), "iif(NOT "),
    (re.compile(r"\bDESC\b"), "ASC"),
    (re.compile(r" ?\bON CONFLICT DO NOTHING"), ""),
    (re.compile(r"\bOR REPLACE\b"), "OR IGNORE"),
    (re.compile(r"(?<=attribute_)not_exists"), "exists"),
    (re.compile(r"(?<=attribute_)exists"), "not_exists"),
)
PYTHON = {ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">"}


@dataclass(frozen=True, slots=True)
class Edit:
    start: int
    end: int
    text: str
    where: str

    def described(self, source: str) -> str:
        line = source.count("\n", 0, self.start) + 1
        was = " ".join(source[self.start : self.end].split())
        return f"{self.where}:{line}: {was}  ->  {' '.join(self.text.split()) or '(nothing)'}"

    def applied(self, source: str) -> str:
        return source[: self.start] + self.text + source[self.end :]


def edits(source: str) -> list[Edit]:
    """Every mutant of a module, as the one place where it differs."""
    found: dict[tuple[int, int, str], Edit] = {}
    place = _Places(source)
    for where, node in _writers(ast.parse(source), source):
        for start, end, text in (*_of_texts(node, source, place), *_of_python(node, source, place)):
            if source[start:end] != text:
                found.setdefault((start, end, text), Edit(start, end, text, where))
    return [found[key] for key in sorted(found)]


class _Places:
    """Offsets in characters: the syntax tree counts bytes of a line."""

    def __init__(self, source: str) -> None:
        self._lines = source.splitlines(keepends=True)
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line))

    def of(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._at(node.lineno, node.col_offset), self._at(node.end_lineno, node.end_col_offset)

    def _at(self, line: int, column: int) -> int:
        return self._starts[line - 1] + len(self._lines[line - 1].encode()[:column].decode())


def _writers(tree: ast.Module, source: str) -> Iterator[tuple[str, ast.AST]]:
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant() | ast.JoinedStr() as value):
                if CONSTANT.search(ast.unparse(value)):
                    yield name, node
        for function in node.body if isinstance(node, ast.ClassDef) else [node]:
            if isinstance(function, ast.FunctionDef):
                text = ast.get_source_segment(source, function) or ""
                if WRITES.search(text):
                    yield function.name, function


# -- statements and conditions

Change = tuple[int, int, str]


def _of_texts(node: ast.AST, source: str, place: _Places) -> Iterator[Change]:
    docstrings = {id(each.value) for each in ast.walk(node) if isinstance(each, ast.Expr)}
    inner = {id(part) for each in ast.walk(node) if isinstance(each, ast.JoinedStr) for part in ast.walk(each)} - {
        id(each) for each in ast.walk(node) if isinstance(each, ast.JoinedStr)
    }
    for each in ast.walk(node):
        if not isinstance(each, ast.Constant | ast.JoinedStr) or id(each) in docstrings | inner:
            continue
        if isinstance(each, ast.Constant) and not isinstance(each.value, str):
            continue
        start, end = place.of(each)
        text = source[start:end]
        if SQL.search(text):
            changes = _of_sql(text)
        elif CONDITION.search(text) and not KEYS.search(text):
            changes = _of_condition(text)
        else:
            continue
        for first, last, new in changes:
            yield start + first, start + last, new


def _of_sql(text: str) -> Iterator[Change]:
    for match in re.finditer(r"\bWHERE\b", text):
        yield from _of_where(text, match.end(), _until(text, match.end()), true="1", false="0")
    for match in re.finditer(r"\bSET\b", text):
        for start, end, _ in _split(text, match.end(), _until(text, match.end()), re.compile(",")):
            column, _, value = text[start:end].partition("=")
            yield start, end, f"{column.rstrip()} = iif(1, {column.strip()}, {value.strip()})"
    if "CASE" in text:
        for match in COMPARED.finditer(text):
            yield match.start(), match.end(), OPPOSITE[match[0]] if text[match.end() : match.end() + 2] != '""' else "="
    yield from _of_small(text)


def _of_condition(text: str) -> Iterator[Change]:
    start = text.index('"') + 1
    anything = "attribute_exists(#pk) OR attribute_not_exists(#pk)"
    nothing = "attribute_exists(#pk) AND attribute_not_exists(#pk)"
    yield from _of_where(text, start, len(text) - 1, true=anything, false=nothing)
    yield from _of_small(text)


def _of_small(text: str) -> Iterator[Change]:
    for pattern, new in SMALL:
        for match in pattern.finditer(text):
            yield match.start(), match.end(), new


def _of_where(text: str, start: int, end: int, *, true: str, false: str) -> Iterator[Change]:
    for first, last, joiner in _split(text, start, end, JOINERS):
        part = text[first:last]
        yield first, last, f"({part} AND ({false}))" if joiner == "OR" else f"({part} OR {true})"
        if part.startswith("(") and _closing(part, 0) == len(part) - 1:
            yield from _of_where(text, first + 1, last - 1, true=true, false=false)
            continue
        if "(" not in part or part.startswith("attribute"):
            for match in COMPARED.finditer(part):
                yield first + match.start(), first + match.end(), OPPOSITE[match[0]]
        elif members := re.match(r"([#\w]+) IN \(([^{}()]+)\)", part):
            for member in members[2].split(",") if "," in members[2] else []:
                yield first, last, f"({part} AND {members[1]} <> {member.strip()})"


def _until(text: str, start: int) -> int:
    """Where a clause ends that begins there: with the next one of its level, or with the text."""
    depth = 0
    for at in range(start, len(text)):
        depth += (text[at] == "(") - (text[at] == ")")
        if depth < 0 or (depth == 0 and ENDS.match(text, at)):
            return at
    return len(text.rstrip('"'))


def _split(text: str, start: int, end: int, by: re.Pattern[str]) -> Iterator[tuple[int, int, str]]:
    """The parts of a clause on its own level, without blanks and quotes, each with a word that stands beside it."""
    depth, begun, before = 0, start, ""
    at = start
    parts: list[tuple[int, int, str, str]] = []
    while at < end:
        depth += (text[at] in "({") - (text[at] in ")}")
        match = by.match(text, at) if depth == 0 else None
        if match:
            parts.append((begun, at, before, match[0]))
            begun = at = match.end()
            before = match[0]
        else:
            at += 1
    parts.append((begun, end, before, ""))
    for first, last, left, right in parts:
        stripped = text[first:last].strip(' \n"')
        if stripped:
            offset = text.index(stripped, first)
            yield offset, offset + len(stripped), right or left


def _closing(text: str, start: int) -> int:
    depth = 0
    for at in range(start, len(text)):
        depth += (text[at] == "(") - (text[at] == ")")
        if depth == 0:
            return at
    return -1


# -- what stands beside them


def _of_python(node: ast.AST, source: str, place: _Places) -> Iterator[Change]:
    text = ast.get_source_segment(source, node) or ""
    bound = set(re.findall(r":(\w+)", text))
    for each in ast.walk(node):
        match each:
            case ast.If(test=test) | ast.IfExp(test=test):
                yield (*place.of(test), "True")
                yield (*place.of(test), "False")
            case ast.BoolOp(op=op, values=values):
                for value in values:
                    yield (*place.of(value), "True" if isinstance(op, ast.And) else "False")
            case ast.Compare(left=left, ops=[operator], comparators=[right]) if type(operator) in PYTHON:
                between = place.of(left)[1], place.of(right)[0]
                yield (*between, f" {PYTHON[type(operator)]} ")
            case ast.Call(func=ast.Name(id="Plus"), args=[by]):
                yield (*place.of(by), "0")
            case ast.Expr(value=ast.Call()):
                yield (*place.of(each), "pass")
            case ast.AugAssign(op=ast.BitOr()):
                yield (*place.of(each), "pass")
            case ast.Assign(targets=[ast.Subscript(slice=ast.Constant(value=str(name)))]) if name not in bound:
                yield (*place.of(each), "pass")
            case ast.Dict() if not SQL.search(text):  # there it is a row, or what is bound
                yield from _without_one(each, bound, source, place)
            case _:
                pass


def _without_one(node: ast.Dict, bound: set[str], source: str, place: _Places) -> Iterator[Change]:
    """Of the changes that are given. What is bound to a name of a condition stays."""
    for key, value in zip(node.keys, node.values, strict=True):
        if isinstance(key, ast.Constant) and key.value not in bound:
            start, end = place.of(key)[0], place.of(value)[1]
            comma = re.compile(r"\s*,[ ]?").match(source, end)
            yield start, comma.end() if comma else end, ""
