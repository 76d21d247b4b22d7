"""Words of a prompt are those that the embedded models' tokenizer reads, however they are written."""

import unicodedata

import pytest

from tiny_runs import save_tiny_model
from wordlight.clip.tokenizer_files import word_level_tokenizer
from wordlight.data.world.captions import VOCABULARY, claims, contrast_captions, words
from wordlight.evaluate import true_captions
from wordlight.train.config import RunConfig
from wordlight.train.guide import contrast_texts, plain_prompt

SPELLINGS = ("a red car.", "a red car!", "a red, car", "a red-car", "A RED CAR", '"a red car"', "a  red_car…")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return save_tiny_model(tmp_path_factory.mktemp("spellings") / "model")


@pytest.mark.parametrize("prompt", SPELLINGS)
def test_every_spelling_of_the_same_tokens_is_the_same_prompt(model, prompt):
    plain = "a red car"
    assert model.tokenizer.encode(prompt) == model.tokenizer.encode(plain)
    assert claims(prompt) == ("car", "red")
    assert contrast_captions(prompt) == contrast_captions(plain)
    assert contrast_texts(model, RunConfig(prompt)) == contrast_texts(model, RunConfig(plain))
    assert plain_prompt(model, prompt) == "a car"
    assert true_captions(prompt) == ("a red car", "a car")


@pytest.mark.parametrize("prompt", ["smoke", "Smoke.", "SMOKE!"])
def test_a_prompt_without_an_object_is_not_its_own_contrast(model, prompt):
    assert "smoke" not in contrast_texts(model, RunConfig(prompt))


def test_words_are_split_where_the_tokenizer_splits():
    backend = word_level_tokenizer(VOCABULARY)
    typed = (*range(0x20, 0x600), *range(0x2000, 0x2100), *range(0x3000, 0x3040))  # both know these marks
    marks = [character for character in map(chr, typed) if unicodedata.category(character)[0] in "PSZ"]
    for text in (f"One{mark}Car" for mark in marks):
        pieces = backend.pre_tokenizer.pre_tokenize_str(backend.normalizer.normalize_str(text))
        assert words(text) == [piece for piece, _ in pieces], f"{text!r}"
