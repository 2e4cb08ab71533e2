"""Keep or discard: how a judgement becomes a verdict.

A page is kept when the Keeper finds it useful enough *and* free enough of text that addresses an AI reader. The two
questions are asked apart because a poisoned page is often a useful one. Where both fail, the injection is the reason
given: it is what a person should look at.

Structure can only add: a text that is hidden from readers and addresses a model is an attack whatever the model
answered; concealment alone (menus, skip links) or an address alone (an article about attacks) is not.
"""

import math
from collections.abc import Sequence

from wikikeeper.models import Findings, Judgement, Quote, Thresholds, Verdict
from wikikeeper.policy.paragraphs import sentence_cut, text_hash

MOST_QUOTES = 3
"""A note is skimmed: three passages show whether the page is worth opening, more hide it."""


def decide(
    judgement: Judgement,
    findings: Findings,
    paragraphs: Sequence[str],
    thresholds: Thresholds,
    *,
    quote_max_chars: int,
) -> Verdict:
    """Apply the thresholds. Equal to the keep threshold keeps; equal to the injection threshold discards."""
    injection = effective_injection(judgement, findings)
    reason = discard_reason(judgement.useful, injection, thresholds)
    return Verdict(
        kept=reason is None,
        reason=reason,
        judgement=judgement,
        injection=injection,
        kind=judgement.kind,
        quotes=quotes(judgement, paragraphs, quote_max_chars) if reason is None else (),
        findings=findings,
        text_hash=text_hash(paragraphs),
        thresholds=thresholds,
    )


def effective_injection(judgement: Judgement, findings: Findings) -> float:
    """The model's probability, or certainty where a concealed text addresses a model."""
    return 1.0 if findings.concealed_address is not None else judgement.injection


def discard_reason(useful: float, injection: float, thresholds: Thresholds) -> str | None:
    """Why a page is discarded; None when it is kept. Also what re-applies other thresholds to stored probabilities."""
    if injection >= thresholds.injection:
        return "injection"
    if useful < thresholds.keep:
        return "not_useful"
    return None


def best_quotes(judgement: Judgement) -> tuple[int, ...]:
    """The paragraphs worth quoting, best first: at most three, each at least as likely as a blind guess.

    A choice always adds up to one, so a page without a quotable passage still spreads its probability somewhere.
    What went to "none" counts as an option: when it leads, nothing is quoted.
    """
    none = 1 - math.fsum(judgement.quotes.values())
    if none > max(judgement.quotes.values(), default=0):
        return ()
    chance = 1 / (len(judgement.quotes) + 1)
    ranked = sorted(judgement.quotes, key=lambda index: (-judgement.quotes[index], index))
    return tuple(index for index in ranked[:MOST_QUOTES] if judgement.quotes[index] >= chance)


def quotes(judgement: Judgement, paragraphs: Sequence[str], most_chars: int) -> tuple[Quote, ...]:
    """Exact pieces of the best paragraphs, cut at a sentence end, best first."""
    source = text_hash(paragraphs)
    cut = [(index, sentence_cut(paragraphs[index], most_chars)) for index in best_quotes(judgement)]
    return tuple(
        Quote(text=text, paragraph=index, start=0, end=len(text), text_hash=source) for index, text in cut if text
    )


def holds(quote: Quote, paragraphs: Sequence[str]) -> bool:
    """Is the quote still what stands in the stored paragraphs?"""
    return quote.paragraph < len(paragraphs) and paragraphs[quote.paragraph][quote.start : quote.end] == quote.text
