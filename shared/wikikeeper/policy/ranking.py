"""Which paragraphs are worth showing to the Keeper as quotes, when there are too many: BM25 against the brief.

Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009), with the usual k1 = 1.2 and
b = 0.75 and the idf that never turns negative (Lucene's).
"""

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence

K1 = 1.2
B = 0.75

UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai and Lao, Burmese, Khmer
    "\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # kana and Han
)
"""Scripts written without spaces: a "word" there is a whole sentence, so pairs of characters serve."""
_LETTERED = (*range(0x300, 0x3100), *range(0xA600, 0xAC00), *range(0xFB00, 0x10000))
"""From U+0300 to U+FFFF without Han, Hangul and private use, which hold no marks but most of the characters."""
_MARKS = "".join(char for char in map(chr, _LETTERED) if unicodedata.category(char) in ("Mn", "Mc"))
"""Vowel signs and accents: letters to a reader of Hindi, Tamil or Thai, but not to `\\w`, which would cut at each."""
_WORD = re.compile(f"([{UNSPACED}]+)|(?:[^\\W_{UNSPACED}]|[{_MARKS}])+")


def terms(text: str) -> list[str]:
    """Words in lower case; in scripts without spaces, every pair of neighbouring characters."""
    found: list[str] = []
    for match in _WORD.finditer(unicodedata.normalize("NFKC", text).casefold()):
        if run := match[1]:
            found.extend(run[i : i + 2] for i in range(max(len(run) - 1, 1)))
        else:
            found.append(match[0])
    return found


def scores(query: str, passages: Sequence[str]) -> list[float]:
    """The BM25 score of each passage for a query, in the passages' order."""
    bags = [Counter(terms(passage)) for passage in passages]
    lengths = [bag.total() for bag in bags]
    mean = sum(lengths) / len(lengths) if any(lengths) else 1.0
    wanted = set(terms(query))
    holding = {term: sum(term in bag for bag in bags) for term in wanted}
    idf = {term: math.log(1 + (len(bags) - n + 0.5) / (n + 0.5)) for term, n in holding.items()}
    # Sorted, because the sum of floats depends on its order and the same page must always offer the same paragraphs.
    ordered = sorted(wanted)
    return [
        sum(idf[t] * bag[t] * (K1 + 1) / (bag[t] + K1 * (1 - B + B * length / mean)) for t in ordered if bag[t])
        for bag, length in zip(bags, lengths, strict=True)
    ]


def best(query: str, passages: Sequence[str], most: int) -> tuple[int, ...]:
    """Indices of the `most` best passages, in page order; all of them when there are no more than that."""
    if len(passages) <= most:
        return tuple(range(len(passages)))
    scored = scores(query, passages)
    ranked = sorted(range(len(passages)), key=lambda index: (-scored[index], index))
    return tuple(sorted(ranked[:most]))
