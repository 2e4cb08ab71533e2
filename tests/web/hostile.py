"""What strangers may send, and a store that has it wherever it can come to stand."""

from tests.adapters.contracts.samples import LEASE, NOW, TOPIC, VERDICT, a_cycle, a_failure, a_result, a_run, claimed
from tests.web.pages import World

from wikikeeper.adapters.local.gate import SqliteSlots
from wikikeeper.models import (
    Alert,
    Condition,
    CycleState,
    Escalation,
    Findings,
    Lane,
    ModelSighting,
    Quote,
    ResultState,
    StoredPage,
)

HOSTILE = [
    "</script><script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)' x='",
    "<svg/onload=alert(1)>",
    "</title></head><body><h1>mine</h1>",
    "</bdi></article></main><form action=https://evil.example>",
    "<meta http-equiv=refresh content=0;url=https://evil.example>",
    "<base href=https://evil.example>",
    "{{ 7*7 }}{% for x in y %}",
    "&lt;script&gt; &amp;#x3c;",
    "javascript:alert(1)",
    "data:text/html,<script>alert(1)</script>",
    "x" * 10_000,
    "\u202egnp.exe\u2066\u200b\u0000\u0007",
    "line\nbreak\r\nSet-Cookie: a=b",
    "| a | b |\n---|---",
    "](https://evil.example) ![x](https://evil.example/?q)",
    "𝕏" * 300,
    "\ufffe\uffff",
]
URLS = [
    "javascript:alert(document.domain)",
    "data:text/html,<script>alert(1)</script>",
    "https://user:hunter2@example.org/?access_token=hunter2",
    'https://example.org/"onclick="alert(1)',
    "https://example.org/<script>",
    "http:/\\evil.example",
    "//evil.example",
    "vbscript:x",
    "https://example.org/\u202egnp.exe",
]
NOTE = """---
type: research-note
topic: {text}
---

# {text}

## {text}
<!-- result: 0123456789abcdef01234567 -->

<script>alert(1)</script>
<img src=x onerror=alert(1)>
<iframe src="https://evil.example"></iframe>

![picture](https://evil.example/?q)
![ref][r]
[click](javascript:alert(1))
[click](  JaVaScRiPt:alert(1))
[click](data:text/html,x)
[click](//evil.example)
[local](../../pages/a.html)
[good](https://example.org/a?b=c&d=e)
<javascript:alert(1)>
<https://example.org/auto>

[r]: https://evil.example/ref.png

> {text}

```html
<script>alert(1)</script>
```
"""


def fill(web: World, text: str, url: str = "https://example.org/") -> list[str]:
    """The text wherever a stranger's can come to stand. Returns every page that shows it."""
    quote = Quote(
        text=text[:500] or "x", paragraph=0, start=0, end=len(text[:500]) or 1, text_hash=VERDICT.text_hash or ""
    )
    findings = Findings(role_markers=(text,), concealed_address=text)
    kept = VERDICT.model_copy(update={"quotes": (quote,), "findings": findings, "model": text, "model_asked": text})
    dropped = kept.model_copy(update={"kept": False, "reason": "injection", "quotes": ()})
    web.store.put_run(a_run(1, title=text, url=url, verdict=kept, model=text, model_asked=text, question_version=text))
    web.store.put_run(a_run(2, title=text, url=url, verdict=dropped, kept=False, model=text, question_version=text))
    web.store.put_run(a_run(3, title=text, url=url, outcome="failed", error=text, verdict=None, judgement=None))
    web.store.put_page(StoredPage(text_hash=VERDICT.text_hash or "", paragraphs=(text,), stored=NOW))
    claim = claimed(web.store, a_result(title=text, url=url, failures=()))
    web.store.put_back(claim, stay_in_cycle=False, failure=a_failure(cause=text, detail=text))
    web.store.settle("r0001", a_cycle().id, attempts=3, state=ResultState.PARKED, verdict=None, at=NOW)
    skipped = a_cycle(
        id=f"{TOPIC}#2", tick="2", reason=text, problems=(text,), state=CycleState.SKIPPED, lease_until=None
    )
    web.store.start_cycle(skipped)
    web.store.raise_alert(Alert(subject=f"model:{text}", cause=text, detail=text, raised=NOW))
    web.store.escalate(Escalation(id=text, subject=f"cycle:{text}", topic=TOPIC, detail=text, raised=NOW))
    web.store.saw_model(ModelSighting(model=text, condition=Condition.REFUSING, cause=text, detail=text, since=NOW))
    slots, now = SqliteSlots(web.store.database, web.site.clock.now), web.site.clock.now()
    slots.want(text, Lane.PLEB, NOW, now + LEASE)
    slots.take(1, text, Lane.KEEPER, now + LEASE, 1)
    (web.root / "topics" / f"{TOPIC}.md").write_text("---\ntitle: T\nlinks:\n  - https://example.org/\n---\nBrief.\n")
    notes = web.root / "inbox" / "awaiting"
    notes.mkdir(parents=True, exist_ok=True)
    written = NOTE.format(text=text.replace("\x00", "")).encode("utf-8", "surrogatepass")
    (notes / "2026-03-01-hostile.md").write_bytes(written)
    return [
        "/runs", "/runs/r0001-2", "/runs/r0002-2", "/runs/r0003-2", "/topics", "/cycles", "/attention", "/label",
        "/thresholds?keep=0.99", "/calibrate", "/notes", "/notes/awaiting/2026-03-01-hostile.md",
    ]  # fmt: skip
