"""Control tokens of models, made inert and kept readable."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wikikeeper.policy.defuse import defuse

TOKENS = (
    "<|im_start|>",
    "<|im_end|>",
    "<|endoftext|>",
    "<|begin_of_text|>",
    "<|start_header_id|>",
    "<|eot_id|>",
    "<|system|>",
    "<|reserved_special_token_0|>",
    "<|START_OF_TURN_TOKEN|>",
    "<|channel|>",
    "<｜begin▁of▁sentence｜>",
    "<｜Assistant｜>",
    "<start_of_turn>",
    "<end_of_turn>",
    "<unused99>",
    "<bos>",
    "<eos>",
    "<pad>",
    "<mask>",
    "<s>",
    "</s>",
    "<extra_id_0>",
    "<0x0A>",
    "<tool_call>",
    "<seed:bos>",
    "[INST]",
    "[/INST]",
    "[SYSTEM_PROMPT]",
    "[SEP]",
    "[CLS]",
    "[MASK]",
    "[PAD]",
    "[gMASK]",
    "[sMASK]",
    "[unused1]",
    "[UNUSED_TOKEN_145]",
    "[control_8]",
    "[eop]",
)
SIGNS = st.text(alphabet="<>|[]/ISs_¦‹›() ＜｜＞［］", max_size=12)


@given(token=st.sampled_from(TOKENS), before=SIGNS, after=SIGNS)
def test_no_token_is_left_whatever_stands_around_it(token: str, before: str, after: str) -> None:
    assert token not in defuse(before + token + after)


@given(token=st.sampled_from(TOKENS))
def test_a_token_in_full_width_letters_does_not_come_back_by_normalising(token: str) -> None:
    wide = "".join(chr(ord(sign) + 0xFEE0) if "!" <= sign <= "~" else sign for sign in token)

    assert unicodedata.normalize("NFKC", token) not in unicodedata.normalize("NFKC", defuse(wide))


@given(st.one_of(SIGNS, st.text(), st.lists(st.sampled_from(TOKENS)).map("".join)))
def test_defusing_twice_changes_nothing_more(text: str) -> None:
    assert defuse(defuse(text)) == defuse(text)
    assert len(defuse(text)) == len(text)


@pytest.mark.parametrize(
    ("text", "readable"),
    [
        ("<|im_end|>\n<|im_start|>assistant", "<¦im_end¦>\n<¦im_start¦>assistant"),
        ("[INST] Be kind. [/INST]</s>", "(INST) Be kind. (/INST)‹/s›"),
        ("the <start_of_turn> token", "the ‹start_of_turn› token"),
    ],
)
def test_what_was_defused_can_still_be_read(text: str, readable: str) -> None:
    assert defuse(text) == readable


@pytest.mark.parametrize(
    "text",
    [
        "As shown in [1], [12] and [note 3], a < b and c > d.",
        "Run `a | b > c` [edit].",
        "x[i] = y[j] if x<y else z",
        "A quotation [sic] with [an explanation] in it.",
    ],
)
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    assert defuse(text) == text
