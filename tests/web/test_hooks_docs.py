"""What docs/hooks.md has people type is run as it stands there, over HTTP."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.web.hook_world import CYCLE_SECRET, GITHUB_SECRET, SLACK_SECRET, HookWorld, started
from tests.web.on_socket import MOST_SECONDS, on_socket
from tests.workflows.world import open_world

from wikikeeper.models import Topic
from wikikeeper.policy.topics import parse_topic

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "hooks.md").read_text("utf-8")
SERVED = "http://127.0.0.1:8765"
TOPIC = "---\ntitle: Heronbase\nfolder: pages\n{watch}---\nWhat changed?\n"

pytestmark = pytest.mark.skipif(
    not (shutil.which("curl") and shutil.which("openssl")), reason="the page is for people with curl and openssl"
)


def blocks(language: str, page: str = PAGE) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)


@pytest.fixture
def hooks(tmp_path: Path) -> Iterator[HookWorld]:
    with open_world(tmp_path) as world:
        world.clock.advance(datetime.now(UTC) - world.clock.now())  # what people type asks the machine's clock
        [watch] = blocks("yaml")
        world.topic("heronbase", TOPIC.format(watch=watch))
        yield HookWorld(world)


def typed(hooks: HookWorld, block: str) -> list[dict[str, Any]]:
    with on_socket(lambda _: hooks.app) as port:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", block.replace(SERVED, f"http://127.0.0.1:{port}").replace("curl -sS", "curl -sS -w '\\n'")],
            env={
                "PATH": os.environ["PATH"],
                "WIKIKEEPER_HOOKS__CYCLE_SECRET": CYCLE_SECRET,
                "WIKIKEEPER_HOOKS__GITHUB_SECRET": GITHUB_SECRET,
                "WIKIKEEPER_HOOKS__SLACK_SECRET": SLACK_SECRET,
            },
            capture_output=True, text=True, timeout=MOST_SECONDS, check=False,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines() if line]


def block_of(name: str) -> str:
    [found] = [block for block in blocks("bash") if f"/hooks/{name}" in block]
    return found


def test_the_examples_for_own_programs(hooks: HookWorld) -> None:
    answers = typed(hooks, block_of("cycle"))

    shown = [json.loads(line) for line in "".join(blocks("json")).splitlines()]
    counts = [(answer["status"], len(answer["cycles"]), answer["urls"]) for answer in shown]
    assert [(a["status"], len(a["cycles"]), a["urls"]) for a in answers] == counts
    assert [topic for topic, _ in started(hooks.sent)] == ["heronbase", "heronbase"]


def test_the_examples_for_github(hooks: HookWorld) -> None:
    ping, release, push = typed(hooks, block_of("github"))

    assert f"`{json.dumps(ping, separators=(',', ':'))}`" in PAGE
    assert (release["status"], push["status"]) == ("accepted", "accepted")
    assert len(started(hooks.sent)) == 2


def test_the_example_for_slack(hooks: HookWorld) -> None:
    assert typed(hooks, block_of("slack")) == [{"challenge": "3eZbrw1aB10FEMAGAZd4FyFQ"}]


def test_every_block_that_is_typed_is_tried() -> None:
    ways = [way for block in blocks("bash") for way in re.findall(r"/hooks/(\w+) ", block)]

    assert ways == ["cycle", "github", "slack"]
    assert len(blocks("bash")) == 4, "the one besides starts the server"


def test_the_watch_of_the_readme_is_one_and_the_same() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    [watch] = blocks("yaml", readme)

    assert [watch] == blocks("yaml")
    topic = parse_topic("topics/heronbase.md", TOPIC.format(watch=watch).encode())
    assert isinstance(topic, Topic)
    assert [(one.github, one.paths) for one in topic.watch] == [
        ("heronbase/heron", ()),
        ("heronbase/heron-docs", ("docs/changes", "CHANGES.md")),
    ]
