"""Judgements and verdicts: what the Keeper answered, and what follows from it."""

from typing import Self

from pydantic import Field

from wikikeeper.models.values import Kind, Probability, Value


class Judgement(Value):
    """What the Keeper answered about one page, already checked: finite, complete, summing to one."""

    useful: Probability
    injection: Probability
    kinds: dict[Kind, Probability]
    quotes: dict[int, Probability]
    """Probability per paragraph index that was offered; what is missing went to "none"."""

    @property
    def kind(self) -> Kind:
        return max(self.kinds, key=lambda kind: self.kinds[kind])


class Thresholds(Value):
    """The two lines that a person draws."""

    keep: Probability
    injection: Probability


class Quote(Value):
    """An exact piece of one paragraph of the page that was judged."""

    text: str
    paragraph: int = Field(ge=0)
    start: int = Field(ge=0)
    end: int = Field(gt=0)
    """Offsets into the paragraph, in code points: `paragraph[start:end] == text`."""
    text_hash: str
    """Of the whole judged text: names the stored page."""


class Findings(Value):
    """What structure alone shows, free of any model."""

    truncated: bool = False
    """There was more text than `keeper.max_chars`; only the part above was judged."""
    zero_width: int = 0
    """Zero-width characters inside words of scripts that do not need them."""
    tag_characters: int = 0
    """Characters of the Unicode tag block: invisible, readable by a model."""
    concealed: int = 0
    """Pieces of text hidden by style, attribute or comment."""
    role_markers: tuple[str, ...] = ()
    """Turn markers of chat models in the visible text, as found."""
    concealed_address: str | None = None
    """The start of a concealed text that addresses a model. Concealment and address together are an attack."""


class Verdict(Value):
    """Kept or not, with everything needed to apply other thresholds later without a call."""

    kept: bool
    reason: str | None
    """Why it was discarded, derived in code: `unfetchable:<cause>`, `injection` or `not_useful`; None when kept."""
    judgement: Judgement | None = None
    """None when no model was asked."""
    injection: Probability | None = None
    """What was held against the threshold: the model's answer, or 1.0 on a concealed address."""
    kind: Kind | None = None
    quotes: tuple[Quote, ...] = ()
    findings: Findings = Findings()
    text_hash: str | None = None
    model_asked: str | None = None
    model: str | None = None
    question_version: str | None = None
    brief_hash: str | None = None
    option_order: tuple[int, ...] = ()
    """Paragraph indices in the order in which they were offered."""
    thresholds: Thresholds | None = None

    @classmethod
    def unfetchable(cls, cause: str) -> Self:
        """The verdict on a page that the Keeper never saw."""
        return cls(kept=False, reason=f"unfetchable:{cause}")
