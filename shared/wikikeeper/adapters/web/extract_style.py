"""What CSS hides: declarations that make text invisible, and the simple rules of a page's own style sheets.

Nothing is rendered. Understood are rules outside of at-rules whose selectors are a class, an id, or several of them on
one element (`.a`, `#b`, `p.a.b`); a later or more specific one wins, as in a browser.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from enum import IntEnum
from functools import lru_cache
from typing import NamedTuple


class Hidden(IntEnum):
    """How sure a declaration is that nobody sees the text."""

    NO = 0
    UNTIL_SCRIPTED = 1
    """Also how pages prepare text that fades in by script: not believed when it holds most of a page."""
    YES = 2


Style = Mapping[str, str]

_COMMENT = re.compile(r"/\*.*?(?:\*/|$)", re.S)
_LENGTH = re.compile(r"(-?\d*\.?\d+)(px|pt|r?em|ex|ch|%|v[wh])?")
_CLIPPED = re.compile(r"rect\((?:[01](?:px)?[,\s]*){4}\)|inset\((?:50|100)%.*\)|circle\(0.*\)|polygon\(0(?:px)?0.*\)")
_SCALED_AWAY = re.compile(r"scale[xy]?\(0[,)]")
_TELLING = frozenset(
    "display visibility opacity font-size text-indent position left right top bottom margin-left margin-top clip "
    "clip-path width height max-height max-width overflow transform color background background-color "
    "background-clip -webkit-background-clip content-visibility".split()
)
_OFF_SCREEN_PX = -500
"""Text moved further than this to the left or up is meant to be out of sight; layouts move by less."""
_PX_PER = {"em": 16, "rem": 16, "ex": 8, "ch": 8, "pt": 4 / 3}
_UNREADABLE_PX = 2
"""Nobody reads letters of two pixels."""
_FAINTEST = 0.05
"""Opacity below which text can't be told from its background."""


def declarations(css: str) -> dict[str, str]:
    """The declarations of a style attribute or a rule that could hide something, in lower case without white space."""
    found: dict[str, str] = {}
    for declaration in _COMMENT.sub("", css).lower().split(";"):
        name, colon, value = declaration.partition(":")
        name = name.strip()
        if colon and name in _TELLING:
            found[name] = "".join(value.replace("!important", "").split())
    return found


def hides(style: Style) -> Hidden:
    """Whether text under these declarations is out of sight."""
    if (
        style.get("display") == "none"
        or style.get("content-visibility") == "hidden"
        or _px(style.get("font-size"), percent=0.16) <= _UNREADABLE_PX
        or _px(style.get("text-indent")) <= _OFF_SCREEN_PX
        or _is_off_screen(style)
        or _is_clipped(style)
        or _is_painted_over(style)
    ):
        return Hidden.YES
    if (
        style.get("visibility") in {"hidden", "collapse"}
        or _share(style.get("opacity")) < _FAINTEST
        or _SCALED_AWAY.search(style.get("transform", ""))
        or (style.get("overflow") == "hidden" and 0 in {_px(style.get("height")), _px(style.get("max-height"))})
        or (style.get("color") == "transparent" and "text" not in _clips(style))
    ):
        return Hidden.UNTIL_SCRIPTED
    return Hidden.NO


def _is_off_screen(style: Style) -> bool:
    if any(_px(style.get(side)) <= _OFF_SCREEN_PX for side in ("margin-left", "margin-top")):
        return True
    sides = ("left", "right", "top", "bottom")
    return style.get("position") in {"absolute", "fixed"} and any(
        _px(style.get(side)) <= _OFF_SCREEN_PX for side in sides
    )


def _is_clipped(style: Style) -> bool:
    if _CLIPPED.search(style.get("clip-path", "")):
        return True
    if style.get("position") not in {"absolute", "fixed"}:
        return False
    tiny = _px(style.get("width")) <= 1 and _px(style.get("height")) <= 1
    return bool(_CLIPPED.search(style.get("clip", ""))) or (tiny and style.get("overflow") == "hidden")


def _is_painted_over(style: Style) -> bool:
    color = style.get("color")
    return color is not None and color in {style.get("background-color"), style.get("background")} - {"inherit"}


def _clips(style: Style) -> str:
    return style.get("background-clip", "") + style.get("-webkit-background-clip", "")


def _px(value: str | None, percent: float = 10) -> float:
    """A length in pixels, roughly: what hides text is far from what does not. An unknown one is beyond any limit."""
    match = _LENGTH.fullmatch(value or "")
    if match is None:
        return float("inf")
    unit = match[2] or "px"
    return float(match[1]) * (percent if unit in {"%", "vw", "vh"} else _PX_PER.get(unit, 1))


def _share(value: str | None) -> float:
    match = _LENGTH.fullmatch(value or "")
    if match is None:
        return 1
    return float(match[1]) / (100 if match[2] == "%" else 1)


# -- a page's own style sheets

_BRACE = re.compile("[{}]")
_SIMPLE = re.compile(r"([a-z][a-z0-9-]*)?((?:[.#][\w-]+)+)", re.I)
_NAME = re.compile(r"([.#])([\w-]+)")


class _Rule(NamedTuple):
    weight: tuple[int, int, int, int]
    """Ids, classes, tag, order: what decides between rules in a browser."""
    tag: str
    names: frozenset[str]
    """With their sign: ".note", "#top"."""
    style: Style


class Sheet:
    """The rules of a page that could hide something."""

    def __init__(self, sheets: Iterable[str]) -> None:
        self._rules: dict[str, list[_Rule]] = defaultdict(list)
        self._count = 0
        for css in sheets:
            for selectors, body in _rules(css):
                style = declarations(body)
                if style:
                    self._add(selectors, style)
        self.style_of = lru_cache(maxsize=10_000)(self._style_of)
        """Memoised: a page has many elements and few kinds of them."""

    def _add(self, selectors: str, style: Style) -> None:
        for selector in selectors.split(","):
            match = _SIMPLE.fullmatch(selector.strip())
            if match is None:
                continue
            names = [sign + name for sign, name in _NAME.findall(match[2])]
            ids = sum(name.startswith("#") for name in names)
            tag = (match[1] or "").lower()
            self._count += 1
            weight = (ids, len(names) - ids, bool(tag), self._count)
            self._rules[names[0]].append(_Rule(weight, tag, frozenset(names), style))

    def _style_of(self, tag: str, classes: str, identity: str) -> Style:
        """All declarations for an element with these attributes, the winning ones last."""
        names = {f".{name}" for name in classes.split()} | {f"#{identity}"}
        rules = [rule for name in names for rule in self._rules.get(name, ())]
        merged: dict[str, str] = {}
        for rule in sorted(rules, key=lambda rule: rule.weight):
            if rule.names <= names and rule.tag in {"", tag}:
                merged.update(rule.style)
        return merged


def _rules(css: str) -> Iterator[tuple[str, str]]:
    """Selectors and declarations of the rules that hold everywhere: those inside of @media and the like may not."""
    css = _COMMENT.sub("", css)
    depth = start = 0
    selectors = ""
    for brace in _BRACE.finditer(css):
        if brace[0] == "{":
            if depth == 0:
                selectors = css[start : brace.start()].rpartition(";")[2].strip()
                start = brace.end()
            depth += 1
        elif depth:
            depth -= 1
            if depth == 0:
                if not selectors.startswith("@"):
                    yield selectors, css[start : brace.start()].partition("{")[0]
                start = brace.end()
