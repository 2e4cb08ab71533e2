"""Which declarations hide text, and which rules apply to an element."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wikikeeper.adapters.web.extract_style import Hidden, Sheet, declarations, hides


@pytest.mark.parametrize(
    "style",
    [
        "display:none",
        "DISPLAY : none !important",
        "color:red; display: /* so */ none",
        "font-size:0",
        "font-size:0px",
        "font-size: 0.01em",
        "font-size: 1px",
        "text-indent:-9999px",
        "position:absolute; left:-10000px",
        "position: fixed; top: -200vh",
        "margin-left:-9999em",
        "position:absolute;clip:rect(0,0,0,0)",
        "position:absolute;clip: rect(1px, 1px, 1px, 1px)",
        "clip-path: inset(50%)",
        "position:absolute;width:1px;height:1px;overflow:hidden",
        "color:#fff;background:#fff",
        "color: white; background-color: white",
        "content-visibility:hidden",
    ],
)
def test_text_out_of_sight(style: str) -> None:
    assert hides(declarations(style)) is Hidden.YES


@pytest.mark.parametrize(
    "style",
    [
        "visibility:hidden",
        "opacity:0",
        "opacity: 0.00",
        "opacity:0%",
        "transform:scale(0)",
        "max-height:0;overflow:hidden",
        "color:transparent",
    ],
)
def test_text_that_may_be_waiting_for_a_script(style: str) -> None:
    assert hides(declarations(style)) is Hidden.UNTIL_SCRIPTED


@pytest.mark.parametrize(
    "style",
    [
        "",
        ";;:",
        "display:block",
        "display:none;display:flex",
        "opacity:1",
        "opacity:0.6",
        "opacity:.9",
        "font-size:12px",
        "font-size:80%",
        "font-size:1rem",
        "font-size:var(--x)",
        "text-indent:-1.5em",
        "position:relative;left:-20px",
        "position:absolute;left:-100px",
        "left:-9999px",
        "width:1px;height:1px",
        "color:transparent;background-clip:text",
        "color:white;background:#333",
        "color:inherit;background:inherit",
        "height:0",
        "visibility:visible",
    ],
)
def test_text_in_sight(style: str) -> None:
    assert hides(declarations(style)) is Hidden.NO


@given(st.text())
def test_any_style_can_be_read(css: str) -> None:
    hides(declarations(css))
    Sheet([css]).style_of("p", "a b", "c")


@pytest.mark.parametrize(
    ("css", "hidden"),
    [
        (".note{display:none}", True),
        ("#top {display:none}", True),
        ("p.note, .other { display: none }", True),
        (".note.small{display:none}", True),
        ("@charset 'utf-8'; .note{display:none}", True),
        ("/* .x{ */ .note{display:none}", True),
        ("div.note{display:none}", False),
        (".note.large{display:none}", False),
        (".wrap .note{display:none}", False),
        (".note:hover{display:none}", False),
        ("@media print{.note{display:none}}", False),
        (".note{display:none} .note{display:block}", False),
        (".note{display:none} .note.small{display:block}", False),
        ("#top{display:block} .note{display:none}", False),
        (".note{color:red}", False),
        (".note{display:none", False),
        ("}}}.note{display:none}", False),
    ],
)
def test_simple_rules_of_a_page_apply_as_in_a_browser(css: str, hidden: bool) -> None:
    assert (hides(Sheet([css]).style_of("p", "note small", "top")) is Hidden.YES) == hidden
