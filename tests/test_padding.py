"""Padding: which id it is, on which side, and whether a tower looks at it."""

import json
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import wordlight as wl
from spoiled import edit_json, edit_model_cfg, write_originals
from tiny_clip import CONTEXT, VIT, VOCAB, tiny_clip, tiny_tokenizer
from wordlight.clip.config import TextConfig
from wordlight.clip.save import save_folder
from wordlight.clip.tokenizer import TextRules, Tokenizer
from wordlight.errors import WordlightError

PROMPTS = ["a red cat", "bulldozer"]


@pytest.fixture
def folder(tmp_path):
    save_folder(tmp_path, tiny_clip())
    tiny_tokenizer(tmp_path)
    return tmp_path


def model_with(text: TextConfig, folder) -> wl.ClipModel:
    return replace(tiny_clip(replace(VIT, text=text)), tokenizer=Tokenizer.from_folder(folder))


@pytest.mark.parametrize(
    "changes",
    [
        {"causal": False, "pooling": "last", "end_id": None},
        {"causal": True, "pooling": "last", "end_id": None},
        {"causal": False, "pooling": "end"},
    ],
)
def test_a_tower_that_was_trained_with_its_padding_sees_it_on_every_way(folder, changes):
    model = model_with(replace(VIT.text, **changes), folder)
    ids, mask = model.tokenize(PROMPTS)
    assert mask.all()
    seen = model.encode_text(PROMPTS)
    for given in [(ids,), (ids, mask)]:
        np.testing.assert_allclose(seen, model.encode_tokens(*map(jnp.asarray, given)), atol=1e-6)
    hidden = model.encode_tokens(jnp.asarray(ids), jnp.asarray(ids != model.tokenizer.pad_id))
    assert jnp.abs(hidden - seen).max() > 0.01


def test_a_causal_tower_that_is_pooled_at_the_end_does_not(folder):
    model = model_with(VIT.text, folder)
    _, mask = model.tokenize(PROMPTS)
    assert mask.sum(-1).tolist() == [5, 3]


def write_settings(folder, **settings):
    edit_json(folder / "tokenizer_config.json", settings)


def write_direction(folder, direction):
    file = folder / "tokenizer.json"
    padding = {"strategy": "BatchLongest", "direction": direction, "pad_to_multiple_of": None}
    padding |= {"pad_id": 0, "pad_type_id": 0, "pad_token": "<pad>"}
    file.write_text(json.dumps(json.loads(file.read_text()) | {"padding": padding}))


@pytest.mark.parametrize(
    ("settings", "direction", "left"),
    [
        ({}, None, False),
        ({"padding_side": "left"}, None, True),
        ({"padding_side": "right"}, "Left", False),
        ({}, "Left", True),
        ({"tokenizer_class": "GemmaTokenizerFast"}, None, True),
        ({"tokenizer_class": "Siglip2Tokenizer"}, None, True),
        ({"tokenizer_class": "GemmaTokenizer", "padding_side": "right"}, None, False),
    ],
)
def test_padding_is_on_the_side_that_transformers_takes(folder, settings, direction, left):
    write_settings(folder, **settings)
    if direction:
        write_direction(folder, direction)
    ids, mask = Tokenizer.from_folder(folder, CONTEXT)("bulldozer")
    kept = slice(-3, None) if left else slice(0, 3)
    assert mask[0].sum() == mask[0, kept].sum() == 3
    assert ids[0, kept].tolist()[::2] == [VOCAB - 2, VOCAB - 1]


def test_padding_on_the_left_is_not_cut_away(folder):
    write_settings(folder, padding_side="left")
    model = wl.load(folder)
    ids, mask = model.tokenize(PROMPTS)
    whole = model.encode_tokens(jnp.asarray(ids), jnp.asarray(mask))
    np.testing.assert_allclose(model.encode_text(PROMPTS), whole, atol=1e-6)


def test_open_clip_pads_with_zero_whatever_tokenizer_lies_beside_it(tmp_path):
    """Its own tokenizer does; the files in its folders are those of transformers, which pad with the end."""
    resnet = write_originals(tmp_path) / "resnet"
    write_settings(resnet, pad_token="<end>")
    edit_json(resnet / "special_tokens_map.json", {"pad_token": "<end>"})
    assert wl.load(resnet).tokenizer.pad_id == 0
    edit_model_cfg(resnet, "text_cfg", "hf_tokenizer_name", "someone/tokenizer")
    assert wl.load(resnet).tokenizer.pad_id == VOCAB - 1


def test_rules_come_before_files(folder):
    tokenizer = Tokenizer.find(folder, CONTEXT, rules=TextRules(pad_id=7))
    assert tokenizer is not None
    assert tokenizer("cat").ids[0, -1] == 7


def test_open_clips_own_tokenizer_knows_no_cleaning_that_keeps_capitals(tmp_path):
    resnet = write_originals(tmp_path) / "resnet"
    edit_model_cfg(resnet, "text_cfg", "tokenizer_kwargs", {"clean": "whitespace"})
    with pytest.raises(WordlightError, match="clean = 'whitespace'"):
        wl.load(resnet)


@pytest.mark.parametrize(
    ("ids", "mask", "message"),
    [
        ([[1.0, 2.0]], None, r"type float64 are not whole numbers \[n, length\]"),
        ("cat", None, "not whole numbers"),
        (np.zeros((2, 0), np.int32), None, r"shape \(2, 0\)"),
        (
            np.zeros((2, 3), np.int32),
            np.ones((2, 4)),
            r"mask has the shape \(2, 4\) and the token ids \(2, 3\)",
        ),
    ],
)
def test_ids_and_masks_that_do_not_fit_are_refused(unchecked, folder, ids, mask, message):
    with pytest.raises(WordlightError, match=message):
        wl.load(folder).text_features(ids, mask)


@pytest.mark.parametrize(
    ("prompts", "message"),
    [(None, r"A prompt is None \(NoneType\), not a string"), (["\ud83d cat"], "holds half of a character")],
)
def test_what_is_no_text_is_refused(unchecked, folder, prompts, message):
    with pytest.raises(WordlightError, match=message):
        wl.load(folder).tokenizer.encode(prompts)


def test_ids_that_a_jitted_function_closes_over_are_looked_at(folder):
    model = wl.load(folder)
    ids = jnp.asarray(model.tokenize("a cat").ids)
    seen = jax.jit(lambda model: model.encode_tokens(ids))(model)
    np.testing.assert_allclose(seen, model.encode_tokens(ids), atol=1e-6)
    beyond = ids + VOCAB
    with pytest.raises(WordlightError, match="do not fit a vocabulary"):
        jax.jit(lambda model: model.encode_tokens(beyond))(model)
