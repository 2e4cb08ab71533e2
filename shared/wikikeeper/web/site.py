"""What the pages are given: the stores that they show, and the settings they need as plain values."""

from dataclasses import dataclass

from wikikeeper.models import Thresholds
from wikikeeper.policy.web_access import Access
from wikikeeper.ports import Clock, Reporter, Wiki
from wikikeeper.ports_web import WebStore


@dataclass(frozen=True, slots=True)
class Site:
    """Built once by the composition root, shared by threads."""

    store: WebStore
    wiki: Wiki
    clock: Clock
    reporter: Reporter
    access: Access
    thresholds: Thresholds
    """Those in use now."""
    gate_limit: int
