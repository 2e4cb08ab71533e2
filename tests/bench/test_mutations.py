"""Mutants of conditional writes: what is altered, that each is still a statement, and that the tests' verdict is taken."""

import ast
import sqlite3
from pathlib import Path

import pytest
from bench.mutation_parts.statements import edits

SHARED = Path(__file__).parents[2] / "shared" / "wikikeeper" / "adapters"
STORES = (
    *(SHARED / "local" / f"{name}.py" for name in ("sqlite_results", "sqlite_cycles", "sqlite_silence", "gate")),
    *(SHARED / "aws" / f"dynamodb_{name}.py" for name in ("results", "cycles", "silence", "calls", "gate")),
)

SQL = '''
class Store:
    def take(self, now):
        """WHERE this = 1 stands in no statement."""
        return self.database.change(
            "UPDATE t SET fence = fence + 1, holder = ? WHERE id = ? AND (holder IS NULL OR until <= ?)", (1, 2, now)
        )

    def look(self):
        return self.database.read("SELECT * FROM t WHERE id = 1")
'''
CONDITION = """
class Store:
    def free(self, fence, called):
        changes = {"state": "waiting", "fence": Plus(1)}
        if called:
            changes["called"] = called
        return self.table.change("key", changes, f"{HELD} AND #until <= :now", {"now": 1, **held(fence)})
"""


def written(source: str) -> list[str]:
    return [edit.applied(source) for edit in edits(source)]


def test_each_part_of_a_statement_is_altered_once() -> None:
    assert [(SQL[edit.start : edit.end], edit.text) for edit in edits(SQL)] == [
        ("fence = fence + 1", "fence = iif(1, fence, fence + 1)"),
        ("+ 1", "+ 0"),
        ("holder = ?", "holder = iif(1, holder, ?)"),
        ("id = ?", "(id = ? OR 1)"),
        ("=", "<>"),
        ("(holder IS NULL OR until <= ?)", "((holder IS NULL OR until <= ?) OR 1)"),
        ("holder IS NULL", "(holder IS NULL AND (0))"),
        ("IS", "IS NOT"),
        ("until <= ?", "(until <= ? AND (0))"),
        ("<=", "<"),
    ]


def test_an_altered_statement_still_takes_its_values() -> None:
    """One that is refused for its values would count as noticed, whatever the tests try."""
    with sqlite3.connect(":memory:") as connection:
        connection.execute("CREATE TABLE t (id, fence, holder, until)")
        for source in written(SQL):
            [statement] = [
                node.value
                for node in ast.walk(ast.parse(source))
                if isinstance(node, ast.Constant) and str(node.value).startswith("UPDATE")
            ]
            connection.execute(str(statement), (1, 2, 3))


def test_conditions_and_changes_of_a_table_are_altered() -> None:
    altered = [(CONDITION[edit.start : edit.end], edit.text) for edit in edits(CONDITION)]

    anything = "attribute_exists(#pk) OR attribute_not_exists(#pk)"
    assert [change for change in altered if change[1] not in {"True", "False"}] == [
        ('"state": "waiting", ', ""),
        ('"fence": Plus(1)', ""),
        ("1", "0"),
        ('changes["called"] = called', "pass"),
        ("{HELD}", f"({{HELD}} OR {anything})"),
        ("#until <= :now", f"(#until <= :now OR {anything})"),
        ("<=", "<"),
    ]
    assert [change for change in altered if change[1] in {"True", "False"}] == [("called", "False"), ("called", "True")]


@pytest.mark.parametrize("path", STORES, ids=lambda path: path.stem)
def test_every_store_has_mutants_and_each_is_python(path: Path) -> None:
    source = path.read_text()
    altered = written(source)

    assert len(altered) > 20
    assert len(set(altered)) == len(altered)
    for each in altered:
        ast.parse(each)
