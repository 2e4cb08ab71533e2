"""Slugs that every file system takes, by example and by property."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wikikeeper.policy.slugs import MAX_BYTES, MAX_CHARS, slugify, twin_key

FORBIDDEN_IN_NAMES = set('<>:"/\\|?*. ')


@pytest.mark.parametrize(
    ("text", "slug"),
    [
        ("Postgres releases", "postgres-releases"),
        ("  C++ & Rust: what's new?  ", "c-rust-what-s-new"),
        ("Grüße aus Köln", "grüße-aus-köln"),
        ("東京の天気", "東京の天気"),
        ("हिन्दी समाचार", "हिन्दी-समाचार"),
        ("a\u200bb\u202ec", "abc"),
        ("../../etc/passwd", "etc-passwd"),
        ("..%2f", "2f"),
        ("CON", "the-con"),
        ("com1", "the-com1"),
        ("nul.txt", "nul-txt"),
        ("trailing. ", "trailing"),
        ("🚀 launch 🚀", "launch"),
        ("\u0301a", "a"),
        ("🚀", ""),
        ("\0", ""),
        ("", ""),
    ],
)
def test_a_slug_keeps_letters_and_digits_of_any_script(text: str, slug: str) -> None:
    assert slugify(text) == slug


def test_composed_and_decomposed_spellings_are_one_slug() -> None:
    assert slugify("caf\u00e9") == slugify("cafe\u0301") == "caf\u00e9"


@given(st.text(max_size=300))
def test_a_slug_is_a_safe_file_name_everywhere(text: str) -> None:
    slug = slugify(text)

    assert slug == unicodedata.normalize("NFC", slug)
    assert len(slug) <= MAX_CHARS
    assert len(slug.encode()) <= MAX_BYTES
    assert not FORBIDDEN_IN_NAMES & set(slug)
    assert slug == slug.strip("-")
    assert all(unicodedata.category(char)[0] in "LMN" or char == "-" for char in slug)


@given(st.text(max_size=300))
def test_a_slug_is_its_own_slug(text: str) -> None:
    assert slugify(slugify(text)) == slugify(text)


@given(st.text(alphabet=st.characters(categories=["L"]), min_size=90, max_size=200), st.sampled_from("xy"))
def test_long_names_that_begin_alike_stay_different(text: str, ending: str) -> None:
    assert slugify(text + "1" + ending) != slugify(text + "2" + ending)


@pytest.mark.parametrize(("one", "other"), [("straße", "strasse"), ("ας", "ασ"), ("foo", "foo")])
def test_names_that_some_file_system_takes_for_the_same_have_one_key(one: str, other: str) -> None:
    assert twin_key(slugify(one)) == twin_key(slugify(other))
