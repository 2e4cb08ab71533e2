"""Whether the tests notice when the gate, the reaper or a store's conditional write means something else.

    python bench/mutations.py [--json] [--target NAME ...] [--jobs 2] [--list]

Each target is one module in which one thing at a time is altered; the tests that belong to it run against each altered
copy. Rules are altered by mutmut, which has to be installed; conditional writes by bench/mutation_parts/statements.py,
since mutmut would only put XX around their texts. For each target:

    mutants, killed, share       killed: a test failed, or they did not end in three times their time and a minute
    survivors                    each described; those that are equivalent are explained in docs/testing.md

and for all together `mutants, killed, share`. Exits with 1 when a target's share is below 0.85. Takes some hours on two
cores; needs a POSIX system.
"""

import argparse
import json
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "shared")]  # what lies here is measured, whatever is installed

from bench.mutation_parts.copies import copies, survivors  # noqa: E402 - after the path
from bench.mutation_parts.rules import altered_rules  # noqa: E402
from bench.mutation_parts.statements import edits  # noqa: E402

LEAST_SHARE = 0.85
STEPS = 300
"""Of the state machine of a store, for each mutant: ten thousand would find little more in this."""

SQLITE = ("tests/adapters/local/test_sqlite_store.py", "tests/adapters/local/test_sqlite_machine.py")
# One server that holds to its conditions is enough, and what goes through hundreds of items says little of them.
QUICK = ("-k", "not Moto and not it_died and not oldest_find_first and not listing_sees_every and not stays_small")
DYNAMODB = (
    "tests/adapters/aws/test_dynamodb_calls.py",
    "tests/adapters/aws/test_dynamodb_store.py",
    "tests/adapters/aws/test_dynamodb_machine.py",
    *QUICK,
)
WORKFLOWS = ("tests/workflows",)


@dataclass(frozen=True, slots=True)
class Target:
    file: str
    tests: tuple[str, ...]

    @property
    def name(self) -> str:
        return Path(self.file).stem


RULES = (
    Target("policy/silence.py", ("tests/policy/test_silence.py", *WORKFLOWS)),
    Target("policy/gate.py", ("tests/policy/test_gate.py",)),
    Target("policy/closing.py", ("tests/policy/test_closing.py",)),
    Target("workflows/silences.py", WORKFLOWS),
    Target("workflows/reap_stale.py", WORKFLOWS),
)
WRITES = (
    Target("adapters/local/sqlite_results.py", SQLITE),
    Target("adapters/local/sqlite_cycles.py", SQLITE),
    Target("adapters/local/sqlite_silence.py", SQLITE),
    Target("adapters/local/gate.py", ("tests/adapters/local/test_gate.py",)),
    Target("adapters/aws/dynamodb_results.py", ("tests/adapters/aws/test_dynamodb_unfinished.py", *DYNAMODB)),
    Target("adapters/aws/dynamodb_cycles.py", DYNAMODB),
    Target("adapters/aws/dynamodb_silence.py", DYNAMODB),
    Target("adapters/aws/dynamodb_calls.py", DYNAMODB),
    Target(
        "adapters/aws/dynamodb_gate.py",
        ("tests/adapters/aws/test_dynamodb_slots.py", "tests/adapters/aws/test_dynamodb_gate.py", *QUICK),
    ),
)


def names(targets: tuple[Target, ...]) -> dict[str, Target]:
    return {f"{target.file.removesuffix('.py')}": target for target in targets}


def told(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def counted(mutants: int, lived: list[str]) -> dict[str, Any]:
    killed = mutants - len(lived)
    return {"mutants": mutants, "killed": killed, "share": round(killed / mutants, 3) if mutants else 1.0}


def measure(chosen: list[str], jobs: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="wikikeeper-mutations-") as made:
        folder = Path(made)
        rules = [target for name, target in names(RULES).items() if name in chosen]
        if rules:
            tests = sorted({test for target in rules for test in target.tests})
            by_file = altered_rules(folder / "rules", [target.file for target in rules], tests, jobs)
            for target in rules:
                mutants, lived = by_file[target.file]
                found[target.file] = {**counted(mutants, lived), "survivors": lived}
        writes = [target for name, target in names(WRITES).items() if name in chosen]
        if writes:
            with copies(folder, jobs, STEPS) as at_work:
                for target in writes:
                    file = f"shared/wikikeeper/{target.file}"
                    altered = edits((at_work[0].folder / file).read_text())
                    lived = survivors(file, altered, target.tests, at_work, told)
                    found[target.file] = {**counted(len(altered), lived), "survivors": lived}
                    told(f"{target.file}: {found[target.file]['killed']} of {len(altered)}")
    mutants = sum(each["mutants"] for each in found.values())
    lived = [one for each in found.values() for one in each["survivors"]]
    return {**counted(mutants, lived), "targets": found}


def main() -> int:
    known = [*names(RULES), *names(WRITES)]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    parser.add_argument(
        "--target", action="append", choices=known, metavar="NAME", help="one of --list; may be repeated"
    )
    parser.add_argument("--jobs", type=int, default=2, help="mutants tried at a time")
    parser.add_argument("--list", action="store_true", help="the names of the targets")
    given = parser.parse_args()
    if given.list:
        print("\n".join(known))
        return 0
    found = measure(given.target or known, max(given.jobs, 1))
    if given.json:
        print(json.dumps(found, indent=1, ensure_ascii=False))
    else:
        for file, each in found["targets"].items():
            print(f"{file:38} {each['killed']:4} of {each['mutants']:4}  {each['share']:.3f}")
            for one in each["survivors"]:
                print(f"    {one}")
    return int(any(each["share"] < LEAST_SHARE for each in found["targets"].values()))


if __name__ == "__main__":
    sys.exit(main())
