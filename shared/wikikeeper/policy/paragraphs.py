"""Paragraphs: how the text of a page becomes the pieces that are judged, offered as quotes and stored.

Stored paragraphs are the truth that quotes are checked against, so everything is cleaned *before* it is stored and
nothing after: what the Keeper reads, what a note quotes and what `verify` looks for are the same characters.
"""

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Sequence

LONG = 1500
"""Characters above which a paragraph is split: longer than that, an option for a quote says nothing any more."""
SHORT = 40
"""Columns below which a block is a heading or a list item rather than something worth quoting by itself."""
GATHERED = 300
"""Characters up to which short blocks in a row are gathered into one paragraph: less than one quote."""

# -- cleaning

_FLAG = "\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{3,6}\U000e007f"
"""The flags of England, Scotland, Wales and other regions: the one honest use of tag characters."""

_JOINING_SCRIPTS = (
    "\u0600-\u08ff"  # Arabic, Syriac, Thaana, NKo: Persian writes ZWNJ inside words
    "\u0900-\u0dff"  # Indic scripts: both joiners choose between letter forms
    "\u0e00-\u0fff\u1000-\u109f\u1780-\u18af"  # Thai to Tibetan, Myanmar, Khmer, Mongolian
    "\ufb50-\ufdff\ufe70-\ufefc"  # Arabic presentation forms
)
_EMOJI = "\u00a9\u00ae\u200d\u2190-\u2bff\u3030\u303d\u3297\u3299\ufe0f\U0001f000-\U0001faff"

_UNSEEN = re.compile(
    f"({_FLAG})"
    f"|(?<=[{_JOINING_SCRIPTS}])([\u200c\u200d])(?=[{_JOINING_SCRIPTS}])"
    f"|(?<=[{_EMOJI}])(\u200d)(?=[{_EMOJI}])"
    "|[\u0000-\u0008\u000e-\u001b\u007f-\u0084\u0086-\u009f"  # control characters that are not white space
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"  # soft hyphen, fillers, marks of direction
    "\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufeff\uffa0"  # zero-width, bidirectional controls
    "\ufff9-\ufffb\ufdd0-\ufdef\ufffe\uffff"  # annotations, non-characters
    "\U000e0000-\U000e007f]"  # tag characters
    "|(?<=[\ufe00-\ufe0f\U000e0100-\U000e01ef])[\ufe00-\ufe0f\U000e0100-\U000e01ef]+"  # a second variation selector
)
_SURROGATES = re.compile("[\ud800-\udfff]")
_SPACE = re.compile(r"\s+")


def clean(text: str) -> str:
    """One block as it is stored: NFC, white space folded, nothing in it that a reader can't see.

    Removed are control, zero-width, bidirectional and tag characters: they would let a quote look different from what
    was judged. Joiners stay where a script or an emoji needs them, tag characters stay in flags. Cleaning twice
    changes nothing.
    """
    text = _SURROGATES.sub("\ufffd", text)
    text = unicodedata.normalize("NFC", text)
    text = _UNSEEN.sub(lambda match: match[1] or match[2] or match[3] or "", text)
    text = unicodedata.normalize("NFC", text)
    return _SPACE.sub(" ", text).strip()


# -- from blocks to paragraphs

_WIDE = re.compile("[\u1100-\u11ff\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff01-\uff60\U00020000-\U0003ffff]")


def paragraphs(blocks: Iterable[str]) -> tuple[str, ...]:
    """The blocks of a page (paragraphs, list items, headings, table rows), in order, as clean paragraphs.

    Headings and list items are joined with a space to what follows, or to each other, so that each paragraph says
    something by itself; very long ones are split at sentence ends; exact repeats are left out, the first stays.
    """
    whole = (piece for paragraph in _join(filter(None, map(clean, blocks))) for piece in _split(paragraph))
    return tuple(dict.fromkeys(whole))


def _is_short(block: str) -> bool:
    return len(block) < SHORT and len(block) + len(_WIDE.findall(block)) < SHORT


def _join(blocks: Iterable[str]) -> Iterable[str]:
    gathered = ""
    for block in blocks:
        if not _is_short(block):
            if _is_short(gathered):
                yield f"{gathered} {block}".lstrip()
            else:
                yield gathered
                yield block
            gathered = ""
        elif len(gathered) + len(block) < GATHERED:
            gathered = f"{gathered} {block}".lstrip()
        else:
            yield gathered
            gathered = block
    if gathered:
        yield gathered


def _split(paragraph: str) -> Iterable[str]:
    while len(paragraph) > LONG:
        # What is left over is never too short to stand alone.
        limit = min(LONG, len(paragraph) - SHORT)
        piece = sentence_cut(paragraph, limit)
        if _is_short(piece):
            piece = _word_cut(paragraph, limit)
        yield piece
        paragraph = paragraph[len(piece) :].lstrip()
    yield paragraph


# -- what is judged


def judged(paragraphs: Sequence[str], max_chars: int) -> tuple[tuple[str, ...], bool]:
    """Whole paragraphs from the top up to `max_chars` characters in all, and whether there was more.

    At least one: a first paragraph that alone is longer is cut at a sentence end.
    """
    taken: list[str] = []
    room = max_chars
    for paragraph in paragraphs:
        if len(paragraph) > room:
            return (tuple(taken) or (sentence_cut(paragraph, max_chars),)), True
        taken.append(paragraph)
        room -= len(paragraph)
    return tuple(taken), False


def text_hash(paragraphs: Sequence[str]) -> str:
    """SHA-256, in hex, of cleaned paragraphs and their borders: equal exactly when every quote holds in both texts.

    Nothing is folded away (case, quotes, dates): the hash also names the stored page, and a page that differs from
    what was judged must not stand in for it.
    """
    return hashlib.sha256("\n".join(map(clean, paragraphs)).encode()).hexdigest()


# -- cutting

_SENTENCE_END = re.compile(
    r"(?P<stop>[.!?…؟۔।॥]+)[\"'”’»›)\]]*(?=\s|$)"
    "|[。！？｡]+[」』”’）〉》】]*"  # in Chinese and Japanese no space follows
)
_LAST_WORD = re.compile(r"\w+$")
_NEXT_LETTER = re.compile(r"\s+[\"'“‘«(\[]*(\w)")
_ABBREVIATION = re.compile(
    "approx|cf|co|dept|dr|ed|eds|etc|fig|gen|hon|inc|jr|ltd|mr|mrs|ms|no|nr|pp|prof|rep|rev|sen|sr|st|vol|vs"
    "|abb|bd|bzw|ca|evtl|ggf|inkl|mio|mrd|sog|std|str|tel|usw|vgl|zzgl"
    "|chap|env|mlle|mme|núm|pág|sra|srta|ud|uds"
)
"""Words that are written with a dot in the middle of English, German, French and Spanish sentences."""
_LONGEST_ABBREVIATION = 8
"""Characters looked at before a dot: enough for each of them, and for the letter before it."""


def sentence_cut(text: str, max_chars: int) -> str:
    """The longest beginning of `text` of at most `max_chars` characters that ends where a sentence ends.

    Where no sentence ends in reach, it ends at a word, and where no word ends, anywhere between two characters as
    people see them. Nothing is added: the result is a beginning of the text, without white space at its end.
    """
    if len(text) <= max_chars:
        return text.rstrip()
    end = 0
    # What follows the limit is looked at too, so that "3.|5" is not taken for an end.
    for match in _SENTENCE_END.finditer(text, 0, max_chars + SHORT):
        if match.end() > max_chars:
            break
        if match["stop"] is None or _ends_sentence(text, match):
            end = match.end()
    return text[:end] if end else _word_cut(text, max_chars)


def _ends_sentence(text: str, match: re.Match[str]) -> bool:
    following = _NEXT_LETTER.match(text, match.end())
    if following is not None and following[1].islower():
        return False
    word = _LAST_WORD.search(text[max(0, match.start() - _LONGEST_ABBREVIATION) : match.start()])
    if match["stop"] != "." or word is None:
        return True
    before = word[0].casefold()
    initial = len(before) == 1 and before.isascii() and before.isalpha()  # "J. Smith", "z. B."
    ordinal = len(before) <= 2 and before.isdigit()  # "3. Mai", "1. Install it"
    return not (initial or ordinal or _ABBREVIATION.fullmatch(before))


_LONGEST_WORD = 60
"""Characters without white space that can still be one word; more is a script without spaces, or no language."""
_WRITTEN_ON_OTHERS = frozenset({"Mn", "Mc", "Me"})


def _word_cut(text: str, max_chars: int) -> str:
    """The longest beginning of at most `max_chars` characters that splits no word, or no character as people see it."""
    beginning = text[: max(0, max_chars)]
    if beginning[-1:].isspace() or text[len(beginning) : len(beginning) + 1].isspace():
        return beginning.rstrip()
    words = beginning.rsplit(None, 1)
    if len(words) > 1 and len(words[1]) <= _LONGEST_WORD:
        return words[0]
    end = len(beginning)
    while end > 1 and (text[end - 1] == "\u200d" or unicodedata.category(text[end]) in _WRITTEN_ON_OTHERS):
        end -= 1
    return beginning[:end] if end > 1 else beginning
