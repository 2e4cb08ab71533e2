"""Bytes become text once, the way browsers read them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wikikeeper.adapters.web.charset import codec_of, decode

GERMAN = "Größere Flüsse führen im Frühjahr über die Ufer, und die Gänse ziehen später weiter nach Süden als früher."
RUSSIAN = "Большие реки весной выходят из берегов, и гуси летят дальше на юг, чем раньше, потому что стало теплее."
JAPANESE = "春には大きな川が氾濫し、ガチョウは以前よりも遠く南へ飛んでいきます。人々はそれを見て驚いています。"
CHINESE = "春天大河泛滥，大雁比以前飞得更远，一直飞到南方，人们看到这种情况都感到惊讶。"


def page(text: str, charset: str = "") -> str:
    return f"<html><head>{charset}<title>x</title></head><body><p>{text}</p></body></html>"


@given(st.text())
def test_utf8_is_read_as_utf8_whatever_is_declared(text: str) -> None:
    assert decode(text.encode(), "gb2312").removeprefix("\ufeff") == text.removeprefix("\ufeff") or "\x1b" in text


@given(st.binary(max_size=300), st.one_of(st.none(), st.sampled_from(["utf-8", "shift_jis", "rot13", "utf-16", "\0"])))
def test_any_bytes_become_text_that_can_be_stored(body: bytes, declared: str | None) -> None:
    decode(body, declared).encode()


@pytest.mark.parametrize(
    ("body", "declared"),
    [
        (page(GERMAN).encode("cp1252"), "iso-8859-1"),
        (page(GERMAN, '<meta charset="windows-1252">').encode("cp1252"), None),
        (page(GERMAN).encode("cp1252"), None),
        (page(GERMAN).encode("cp1252"), "utf-8"),
        (page(GERMAN, "<meta charset=gb2312>").encode(), "gb2312"),
        ("\ufeff".encode() + page(GERMAN).encode(), "iso-8859-1"),
        (page(GERMAN).encode("utf-16"), None),
        (page(GERMAN, '<meta charset="utf-16">').encode(), None),
        (f'<?xml version="1.0" encoding="ISO-8859-15"?>{page(GERMAN)}'.encode("iso-8859-15"), None),
    ],
    ids=[
        "header",
        "meta",
        "guessed",
        "wrong header",
        "UTF-8 said to be Chinese",
        "mark",
        "UTF-16",
        "UTF-16 meta",
        "XML",
    ],
)
def test_umlauts_survive(body: bytes, declared: str | None) -> None:
    assert GERMAN in decode(body, declared)


@pytest.mark.parametrize(
    ("text", "codec", "label"),
    [
        (RUSSIAN, "cp1251", "windows-1251"),
        (RUSSIAN, "koi8-r", "KOI8-R"),
        (JAPANESE, "cp932", "Shift_JIS"),
        (JAPANESE, "euc_jp", "x-euc-jp"),
        (JAPANESE, "iso2022_jp", "iso-2022-jp"),
        (CHINESE, "gb18030", "gb2312"),
        ("春天的大河氾濫，大雁飛得比以前更遠。", "big5", "big5"),
        ("한국어로 쓴 문장입니다.", "cp949", "euc-kr"),
    ],
)
def test_declared_encodings_of_the_web_are_known_by_their_labels(text: str, codec: str, label: str) -> None:
    assert text in decode(page(text).encode(codec), label)
    assert text in decode(
        page(text, f'<meta http-equiv=content-type content="text/html; charset={label}">').encode(codec)
    )


@pytest.mark.parametrize(("text", "codec"), [(RUSSIAN, "cp1251"), (JAPANESE, "cp932"), (CHINESE, "gb18030")])
def test_undeclared_encodings_are_guessed_from_the_text_and_not_from_the_markup(text: str, codec: str) -> None:
    markup = "<div class='column wide'><span></span></div>" * 300

    assert text * 3 in decode((markup + page(text * 3)).encode(codec))


def test_a_few_broken_characters_do_not_change_the_encoding() -> None:
    broken = page(GERMAN * 3).encode() + b"\xff\xfe"

    assert GERMAN * 3 in decode(broken, "utf-8")


@pytest.mark.parametrize(
    "label", [None, "", "rot13", "unicode_escape", "idna", "utf-7", "base64", "none", "x" * 500, "\0"]
)
def test_a_page_cannot_name_a_codec_that_is_not_of_the_web(label: str | None) -> None:
    assert codec_of(label) is None


@pytest.mark.parametrize(
    ("label", "codec"),
    [
        ("latin1", "cp1252"),
        ("US-ASCII", "cp1252"),
        ('"utf8"', "utf-8"),
        ("GBK", "gb18030"),
        ("sjis", "cp932"),
        ("latin5", "cp1254"),
    ],
)
def test_labels_mean_what_browsers_take_them_for(label: str, codec: str) -> None:
    assert codec_of(label) == codec
