"""Which paragraphs are offered when there are too many."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wikikeeper.policy.ranking import best, scores, terms

WORDS = st.lists(st.sampled_from("heron grebe stork 鷺が飛ぶ นกกระสา बगुला the a 4.2".split()), max_size=12).map(
    " ".join
)
PASSAGES = st.lists(st.one_of(WORDS, st.text(max_size=30)), max_size=40)


@given(st.one_of(WORDS, st.text()), PASSAGES, st.integers(1, 25))
def test_the_choice_is_in_page_order_without_repeats_and_always_the_same(
    query: str, passages: list[str], most: int
) -> None:
    chosen = best(query, passages, most)

    assert list(chosen) == sorted(set(chosen))
    assert len(chosen) == min(len(passages), most)
    assert chosen == best(query, passages, most)


@given(WORDS, PASSAGES, st.integers(1, 25))
def test_nothing_that_was_left_out_scores_better_than_what_was_chosen(
    query: str, passages: list[str], most: int
) -> None:
    chosen = best(query, passages, most)
    scored = scores(query, passages)
    left = set(range(len(passages))) - set(chosen)

    assert all(score >= 0 for score in scored)
    assert not left or max(scored[i] for i in left) <= min(scored[i] for i in chosen)


@given(st.lists(st.text(max_size=30), max_size=20))
def test_few_passages_are_all_offered(passages: list[str]) -> None:
    assert best("anything", passages, 20) == tuple(range(len(passages)))


def test_page_order_is_kept_where_the_best_stand_last() -> None:
    assert best("heron", ["stork", "heron", "grebe", "heron heron"], 2) == (1, 3)
    assert best("heron", ["stork", "heron", "grebe", "heron heron"], 3) == (0, 1, 3)


def test_without_any_match_the_page_is_read_from_the_top() -> None:
    assert best("heron", ["nothing here"] * 30, 20) == tuple(range(20))


@pytest.mark.parametrize(
    ("query", "hit"),
    [
        ("Upgrades of Heronbase to version 4.2", "Upgrading is done in place: Heronbase 4.2 reads older files."),
        ("Änderungen für Betreiber", "FÜR BETREIBER ist eine Zeile wichtig."),
        ("データベースの耐久性", "新しい版では耐久性が上がった。"),
        ("数据库的新版本", "PostgreSQL的新版本已经发布。"),
        ("PostgreSQL 数据库", "现在PostgreSQL更快了"),
        ("ฐานข้อมูลรุ่นใหม่", "เมื่อวานนี้มีการเปิดตัวฐานข้อมูลรุ่นใหม่"),
        ("नया संस्करण", "कल नया संस्करण जारी हुआ"),
        ("Heronbase release", "ＨＥＲＯＮＢＡＳＥ の発表"),
        ("Новая версия", "вышла НОВАЯ ВЕРСИЯ базы"),
    ],
)
def test_the_paragraph_that_answers_is_among_those_offered_in_any_script(query: str, hit: str) -> None:
    filler = [f"Unrelated paragraph {number}: ordinary words, 別の話, อย่างอื่น, कुछ और, другое." for number in range(60)]
    passages = [*filler[:50], hit, *filler[50:]]

    assert 50 in best(query, passages, 20)
    assert max(range(len(passages)), key=scores(query, passages).__getitem__) == 50


def test_a_rare_word_counts_more_than_a_common_one() -> None:
    passages = ["the release", "the bittern", *["the release of it"] * 20]

    scored = scores("release bittern", passages)

    assert scored[1] > scored[0] > 0


def test_repeating_a_word_counts_ever_less() -> None:
    once, often, stuffed = scores(
        "heron", ["heron and more words", "heron heron and words", "heron " * 4, "stork"] * 2
    )[:3]

    assert once < often < stuffed < 3 * once


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Heronbase 4.2, don't!", ["heronbase", "4", "2", "don", "t"]),
        ("Straße NAÏVE", ["strasse", "naïve"]),
        ("PostgreSQL的新版", ["postgresql", "的新", "新版"]),
        ("鷺", ["鷺"]),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
        ("snake_case", ["snake", "case"]),
        (" — ...", []),
    ],
)
def test_terms_are_words_or_pairs_of_characters_where_words_are_not_spaced(text: str, found: list[str]) -> None:
    assert terms(text) == found
