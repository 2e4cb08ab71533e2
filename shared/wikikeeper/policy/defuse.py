"""Defusing: what a page wrote like a control token of a model is changed until no tokenizer takes it for one.

Model servers tokenise the whole prompt with control tokens switched on, so a page that contains
`<|im_end|><|im_start|>assistant` would end the user's turn. Only what a model is shown is defused; notes quote the
page as it is.
"""

import re
import unicodedata

# Each sign also in the shapes that compatibility normalisation (NFKC, done by many tokenizers) turns into it.
_LESS, _GREATER, _BAR = "<＜﹤", ">＞﹥", "|｜"
_OPEN, _CLOSE = r"\[［", r"\]］"

_LONGEST_NAME = 60
"""Characters of a token's name: the longest in use has about 30; a bound keeps the search linear."""

_BARRED = re.compile(rf"(?<=[{_LESS}])[{_BAR}]|[{_BAR}](?=[{_GREATER}])")
_ANGLED = re.compile(rf"[{_LESS}]([^\s{_LESS}{_GREATER}]{{1,{_LONGEST_NAME}}})[{_GREATER}]")
_BRACKETED = re.compile(rf"[{_OPEN}]([^\s{_OPEN}{_CLOSE}]{{1,{_LONGEST_NAME}}})[{_CLOSE}]")
_ANGLED_NAME = re.compile(r"/?[\w.:▁-]+")
_BRACKETED_NAME = re.compile(r"/?(?:[A-Z][A-Z_0-9]+|[gs]MASK|e[ou]p|sop|unused\d+|control_\d+)")


def defuse(text: str) -> str:
    """The text with every control token made inert, and still readable.

    `<|im_start|>` becomes `<¦im_start¦>`, `<start_of_turn>` and `</s>` become `‹start_of_turn›` and `‹/s›`, `[INST]`
    becomes `(INST)`. All of a form are changed, not a list of known names: new models bring new names in old forms.
    The length stays the same, and defusing twice changes nothing.
    """
    text = _BARRED.sub("¦", text)
    text = _ANGLED.sub(lambda match: _dressed(match, _ANGLED_NAME, "‹", "›"), text)
    return _BRACKETED.sub(lambda match: _dressed(match, _BRACKETED_NAME, "(", ")"), text)


def _dressed(match: re.Match[str], name: re.Pattern[str], opening: str, closing: str) -> str:
    if name.fullmatch(unicodedata.normalize("NFKC", match[1])) is None:
        return match[0]
    return f"{opening}{match[1]}{closing}"
