"""Precision and recall over keep thresholds, as a picture: SVG that shows alike in a page and in a file of its own.

Colours are attributes and classes, never styles: a strict content policy takes them, and a page may set its own.
"""

from collections.abc import Callable, Sequence

from wikikeeper.policy.calibration import Calibration, Point, Share

WIDTH, HEIGHT = 640, 320
LEFT, RIGHT, TOP, BOTTOM = 44, 12, 12, 40
TICKS = (0.0, 0.25, 0.5, 0.75, 1.0)
_PRECISION, _RECALL = "#0b6e4f", "#8a4b00"


def curve_svg(found: Calibration, *, used: float) -> str:
    """The picture; empty where nothing can be said. Nothing in it comes from a stranger: numbers alone."""
    if not found.curve:
        return ""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="curve" viewBox="0 0 {WIDTH} {HEIGHT}" role="img"',
        'aria-labelledby="curve-title curve-about" font-family="sans-serif" font-size="12" fill="currentColor">',
        '<title id="curve-title">Precision and recall for each keep threshold, of pages that the injection threshold lets through</title>',
        f'<desc id="curve-about">{_said(found, used)}</desc>',
        *_axes(),
    ]
    if found.keep is not None:
        low, high = _x(found.keep.low), _x(found.keep.high)
        parts.append(
            f'<rect class="range" x="{low:.1f}" y="{TOP}" width="{max(high - low, 1):.1f}" '
            f'height="{HEIGHT - TOP - BOTTOM}" fill="currentColor" fill-opacity="0.07"/>'
        )
    for name, colour, read, dashes in (
        ("precision", _PRECISION, _precision, ""),
        ("recall", _RECALL, _recall, ' stroke-dasharray="7 4"'),
    ):
        parts += [_band(found.curve, name, colour, read), _line(found.curve, name, colour, read, dashes)]
    parts.append(_mark(used, "in use", 26))
    if found.keep is not None:
        parts.append(_mark(found.keep.at, "proposed", 42))
    return "\n".join([part for part in parts if part] + ["</svg>"])


def _said(found: Calibration, used: float) -> str:
    proposed = "" if found.keep is None else f", proposed {found.keep.at:g} ({found.keep.low:g} to {found.keep.high:g})"
    now = found.current
    shares = ""
    if now is not None and now.precision is not None and now.recall is not None:
        shares = (
            f"; with both thresholds in use precision is {now.precision.value:.2f} and recall {now.recall.value:.2f}"
        )
    return f"Keep threshold in use {used:g}{proposed}{shares}. The table has the numbers."


def _axes() -> list[str]:
    parts = []
    for tick in TICKS:
        x, y = _x(tick), _y(tick)
        parts += [
            f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="currentColor" stroke-opacity="0.15"/>',
            f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{tick:g}</text>',
            f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 17}" text-anchor="middle">{tick:g}</text>',
        ]
    middle = (LEFT + WIDTH - RIGHT) / 2
    return [*parts, f'<text x="{middle:.0f}" y="{HEIGHT - 6}" text-anchor="middle">keep threshold</text>']


def _mark(at: float, said: str, y: int) -> str:
    x = _x(at)
    anchor, shift = ("end", -5) if at > 0.7 else ("start", 5)
    return (
        f'<line class="mark" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}" stroke="currentColor"/>'
        f'<text class="mark-name" x="{x + shift:.1f}" y="{y}" text-anchor="{anchor}">{said} {at:g}</text>'
    )


Read = Callable[[Point], Share | None]


def _precision(point: Point) -> Share | None:
    return point.precision


def _recall(point: Point) -> Share | None:
    return point.recall


def _line(curve: Sequence[Point], name: str, colour: str, read: Read, dashes: str) -> str:
    known = [(point.threshold, share.value) for point in curve if (share := read(point)) is not None]
    points = " ".join(f"{_x(x):.1f},{_y(y):.1f}" for x, y in known)
    if not known:
        return ""
    x, y = known[0]
    return (
        f'<polyline class="{name}" points="{points}" fill="none" stroke="{colour}" stroke-width="2"{dashes}/>'
        f'<text class="{name}-name" x="{_x(x) + 6:.1f}" y="{_y(y) + 16:.1f}" fill="{colour}">{name}</text>'
    )


def _band(curve: Sequence[Point], name: str, colour: str, read: Read) -> str:
    known = [(point.threshold, share) for point in curve if (share := read(point)) is not None]
    there = [f"{_x(x):.1f},{_y(share.high):.1f}" for x, share in known]
    back = [f"{_x(x):.1f},{_y(share.low):.1f}" for x, share in reversed(known)]
    return f'<polygon class="{name}-band" points="{" ".join(there + back)}" fill="{colour}" fill-opacity="0.12"/>'


def _x(share: float) -> float:
    return LEFT + share * (WIDTH - LEFT - RIGHT)


def _y(share: float) -> float:
    return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)
