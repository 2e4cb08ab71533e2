"""From blocks to paragraphs, and cutting them, by example and by property."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wikikeeper.policy.paragraphs import LONG, clean, judged, paragraphs, sentence_cut, text_hash

WILD = st.text(
    alphabet=st.one_of(
        st.characters(),
        st.sampled_from("ab .!?。 \n\u200b\u200d\u200c\u202e\ufeff\ufe0f\u0301क्षمی👩🏴\U000e0067\U000e007f\U000e0100"),
    ),
    max_size=60,
)
SENTENCES = st.lists(st.sampled_from(["One.", "Two words.", "Dr. No.", "終わり。", "no end", "x" * 90, "Why?"])).map(
    " ".join
)
TEXT = st.one_of(WILD, SENTENCES)


# -- cleaning


@given(WILD)
def test_cleaning_twice_changes_nothing_more(text: str) -> None:
    assert clean(clean(text)) == clean(text)


@given(WILD)
def test_clean_text_is_normal_folded_and_storable(text: str) -> None:
    cleaned = clean(text)

    assert unicodedata.is_normalized("NFC", cleaned)
    assert cleaned == " ".join(cleaned.split())
    assert not any(unicodedata.category(sign) in {"Cc", "Cs"} for sign in cleaned)
    cleaned.encode()


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("pass\u200bword", "password"),
        ("\u202egnp.exe\u202c", "gnp.exe"),
        ("\ufeffA\u00ad title\u2060", "A title"),
        ("a\x00b\x1bc\td\r\ne", "abc d e"),
        ("hello\U000e0049\U000e0067", "hello"),
        ("x\ufe0f\ufe01\U000e0101\U000e0102", "x\ufe0f"),
        ("lone \ud800 half", "lone \ufffd half"),
        ("e\u0301", "é"),
        ("wor\u200dd", "word"),
    ],
)
def test_what_a_reader_cannot_see_is_removed(text: str, cleaned: str) -> None:
    assert clean(text) == cleaned


@pytest.mark.parametrize(
    "text",
    [
        "می\u200cخواهم",  # Persian: "I want" needs its ZWNJ
        "क्\u200dष",  # Hindi: the half form needs its ZWJ
        "👩\u200d💻 and 🏳\ufe0f\u200d🌈",
        "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",  # the flag of England
    ],
)
def test_what_a_script_or_an_emoji_needs_stays(text: str) -> None:
    assert clean(text) == text


# -- paragraphs


@given(st.lists(TEXT))
def test_paragraphs_are_clean_unlike_and_not_empty(blocks: list[str]) -> None:
    pieces = paragraphs(blocks)

    assert all(pieces)
    assert len(set(pieces)) == len(pieces)
    assert all(clean(piece) == piece for piece in pieces)
    assert all(len(piece) <= LONG for piece in pieces)


@given(st.lists(SENTENCES.filter(bool), max_size=8).map(lambda blocks: [f"{n} {b}" for n, b in enumerate(blocks)]))
def test_no_text_is_lost_or_added_between_blocks_that_differ(blocks: list[str]) -> None:
    pieces = paragraphs(blocks)

    assert "".join("".join(pieces).split()) == "".join("".join(blocks).split())


def test_a_heading_joins_the_paragraph_below_it() -> None:
    body = "The release brings incremental backups and a faster vacuum for large tables."

    assert paragraphs(["What is new", body]) == (f"What is new {body}",)


def test_list_items_are_gathered_so_that_each_paragraph_says_something() -> None:
    items = [f"item number {n}" for n in range(60)]

    pieces = paragraphs(items)

    assert " ".join(pieces) == " ".join(items)
    assert all(40 <= len(piece) <= 300 for piece in pieces)


def test_a_sentence_in_chinese_is_not_short() -> None:
    pieces = paragraphs(
        ["人工智能正在改变我们阅读和写作的方式以及生活。", "研究人员认为这种变化还会继续下去很多年时间。"]
    )

    assert len(pieces) == 2


def test_a_very_long_paragraph_is_split_at_sentence_ends() -> None:
    sentences = [f"This is sentence number {n} of a very long paragraph." for n in range(100)]

    pieces = paragraphs([" ".join(sentences)])

    assert len(pieces) > 1
    assert all(len(piece) <= LONG and piece.endswith(".") for piece in pieces)
    assert " ".join(pieces) == " ".join(sentences)


def test_an_exact_repeat_is_left_out() -> None:
    line = "Subscribe to our newsletter and never miss another story again."

    assert paragraphs([line, "Something else that is long enough to stand alone.", line])[0] == line
    assert len(paragraphs([line, "Something else that is long enough to stand alone.", line])) == 2


# -- what is judged


@given(st.lists(st.text(alphabet="ab. ", min_size=1, max_size=30)), st.integers(min_value=1, max_value=100))
def test_judged_is_a_beginning_that_fits(texts: list[str], max_chars: int) -> None:
    taken, truncated = judged(texts, max_chars)

    assert sum(map(len, taken)) <= max_chars
    assert truncated == (list(taken) != texts)
    assert len(taken) >= min(1, len(texts))
    assert list(taken[1:]) == texts[1 : len(taken)]
    assert not taken or texts[0].startswith(taken[0])


def test_judging_stops_at_the_first_paragraph_that_does_not_fit() -> None:
    assert judged(["a" * 10, "b" * 10, "c"], 15) == (("a" * 10,), True)
    assert judged(["a" * 10, "b" * 5], 15) == (("a" * 10, "b" * 5), False)


def test_a_first_paragraph_that_is_too_long_is_cut_at_a_sentence_end() -> None:
    assert judged(["Short one. And a second sentence."], 20) == (("Short one.",), True)


def test_the_hash_follows_the_text_and_nothing_else() -> None:
    assert text_hash(["a  b", "e\u0301\u200b"]) == text_hash(["a b ", "é"])
    assert text_hash(["a b"]) != text_hash(["a", "b"])
    assert text_hash(["It’s"]) != text_hash(["It's"])


# -- cutting


@given(TEXT, st.integers(min_value=0, max_value=120))
def test_a_cut_is_a_beginning_that_fits_and_is_not_empty(text: str, max_chars: int) -> None:
    cut = sentence_cut(text, max_chars)

    assert text.startswith(cut)
    assert len(cut) <= max_chars
    assert cut == cut.rstrip()
    assert bool(cut) == bool(max_chars and text[:max_chars].strip())


@given(TEXT, st.integers(min_value=1, max_value=120))
def test_cutting_twice_changes_nothing_more(text: str, max_chars: int) -> None:
    cut = sentence_cut(text, max_chars)

    assert sentence_cut(cut, max_chars) == cut


@pytest.mark.parametrize(
    ("text", "max_chars", "cut"),
    [
        ("It was 3.5 m high. Then it grew.", 30, "It was 3.5 m high."),
        ("It was 3.5", 9, "It was"),
        ("Dr. Smith met J. Jones. They talked for an hour.", 40, "Dr. Smith met J. Jones."),
        ("Das gilt z. B. am 3. Mai nicht. Danach schon wieder.", 40, "Das gilt z. B. am 3. Mai nicht."),
        ("Use foo, bar, etc. as you like, but not baz.", 31, "Use foo, bar, etc. as you like,"),
        ("“Why?” she asked and left the room.", 20, "“Why?” she asked and"),
        ("He said “No way.” Then he left at once.", 25, "He said “No way.”"),
        ("今日は晴れです。明日は雨でしょう。", 12, "今日は晴れです。"),
        ("他说：“好。”然后离开了这个地方。", 9, "他说：“好。”"),
        ("no sentence ends anywhere in here", 20, "no sentence ends"),
        ("人工智能正在改变我们的生活方式", 6, "人工智能正在"),
        ("e\u0301" * 4, 3, "e\u0301"),
        ("A short text.", 100, "A short text."),
    ],
)
def test_a_cut_falls_where_a_reader_would_stop(text: str, max_chars: int, cut: str) -> None:
    assert sentence_cut(text, max_chars) == cut
