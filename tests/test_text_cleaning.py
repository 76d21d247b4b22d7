"""What happens to a text before its tokenizer sees it."""

import pytest

from wordlight.clip.config_open_clip import open_clip_text_rules
from wordlight.clip.text_cleaning import clean
from wordlight.errors import WordlightError


@pytest.mark.parametrize(
    ("cleaning", "text", "cleaned"),
    [
        ("none", "  A &amp; B ", "  A &amp; B "),
        ("lower", "  A &amp;amp; B\n\tâ€œCâ€\x9d ", 'a & b "c"'),
        ("whitespace", " A   Cat\n", "A Cat"),
        ("canonical", "A_photo of: A  Cat!", "a photo of a cat"),
        ("siglip", "A_photo of: A  Cat!", "aphoto of a cat"),
        ("lower-only", "A Cat!", "a cat!"),
    ],
)
def test_texts_are_cleaned_as_the_reference_programs_do(cleaning, text, cleaned):
    assert clean(text, cleaning) == cleaned


def rules(**text):
    return open_clip_text_rules({"model_cfg": {"text_cfg": text}})


def test_open_clip_configurations_choose_the_cleaning():
    assert rules().cleaning == "lower"
    assert rules(hf_tokenizer_name="bert-base-uncased").cleaning == "whitespace"
    siglip = rules(hf_tokenizer_name="x", tokenizer_kwargs={"clean": "canonicalize"})
    assert siglip.cleaning == "canonical"
    assert not siglip.drop_separator
    assert rules(hf_tokenizer_name="x", tokenizer_kwargs={"strip_sep_token": True}).drop_separator


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ({"tokenizer_kwargs": {"clean": "bleach"}}, "clean = 'bleach'"),
        ({"tokenizer_kwargs": {"language": "de"}}, "tokenizer_kwargs"),
        ({"tokenizer_mode": "clips"}, "tokenizer_mode = 'clips'"),
    ],
)
def test_options_that_are_not_done_are_refused(text, message):
    with pytest.raises(WordlightError, match=message):
        rules(**text)
