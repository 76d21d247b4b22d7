"""Configuration files: old ones, short ones, and entries that cannot be, refused by name."""

import shutil
import time
from dataclasses import replace
from pathlib import Path

import pytest

import wordlight as wl
from spoiled import edit_json, edit_model_cfg, write_originals
from tiny_clip import VIT, VOCAB, tiny_clip, tiny_tokenizer
from wordlight.clip.config import TransformerConfig
from wordlight.clip.config_hf import hf_config
from wordlight.clip.config_open_clip import open_clip_config
from wordlight.clip.save import save_folder
from wordlight.errors import WordlightError


@pytest.fixture(scope="module")
def originals(tmp_path_factory) -> Path:
    return write_originals(tmp_path_factory.mktemp("originals"))


@pytest.fixture
def vit(originals, tmp_path) -> Path:
    return shutil.copytree(originals / "vit", tmp_path / "vit")


@pytest.fixture
def resnet(originals, tmp_path) -> Path:
    return shutil.copytree(originals / "resnet", tmp_path / "resnet")


# Configurations


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_type": "blip"}, "model_type = 'blip'.*'clip' and 'siglip' are done"),
        ({"projection_dim": None}, "projection_dim = None"),
        ({"vision_config": [1]}, r"vision_config = \[1\].*an object is needed"),
        ({"text_config": "small"}, "text_config = 'small'"),
        ({"vision_config": {"hidden_size": "32"}}, "hidden_size = '32'.*whole number"),
        ({"vision_config": {"hidden_size": 32.0}}, "hidden_size = 32.0"),
        ({"vision_config": {"hidden_size": True}}, "hidden_size = True"),
        ({"vision_config": {"hidden_size": 0}}, "hidden_size = 0"),
        ({"vision_config": {"hidden_size": -32}}, "hidden_size = -32"),
        ({"vision_config": {"hidden_size": {"a": list(range(99))}}}, r"hidden_size = \{.*\.\.\., but"),
        ({"vision_config": {"num_attention_heads": 5}}, "attention heads = 5.*divide the width 32"),
        ({"vision_config": {"hidden_act": "relu"}}, "hidden_act = 'relu'.*quick_gelu"),
        ({"vision_config": {"hidden_act": ["gelu"]}}, "hidden_act"),
        ({"vision_config": {"layer_norm_eps": float("nan")}}, "layer_norm_eps = nan"),
        ({"vision_config": {"layer_norm_eps": "small"}}, "layer_norm_eps = 'small'"),
        ({"vision_config": {"patch_size": 64}}, "patch_size = 64.*fit in the image size"),
        ({"vision_config": {"num_channels": 4}}, "num_channels = 4"),
        ({"text_config": {"eos_token_id": "end"}}, "eos_token_id = 'end'"),
        ({"text_config": {"eos_token_id": -1}}, "eos_token_id = -1"),
        ({"text_config": {"vocab_size": [7]}}, r"vocab_size = \[7\]"),
    ],
)
def test_entries_that_cannot_be_are_refused_by_name(vit, changes, message):
    edit_json(vit / "config.json", changes)
    with pytest.raises(
        WordlightError, match=f"configuration says.*{message}.*Check it against the repository"
    ):
        wl.load(vit)


@pytest.mark.parametrize(
    ("section", "entry", "value"),
    [
        ("vision_cfg", "timm_model_name", "vit_base_mci_224"),
        ("vision_cfg", "timm_model_name", 16),
        ("vision_cfg", "scale_fc", True),
        ("vision_cfg", "layers", [1, 2, 3]),
        ("vision_cfg", "layers", [1, 2, 1, 0]),
        ("vision_cfg", "layers", [1, 2, 1, "1"]),
        ("vision_cfg", "image_size", 33),
        ("vision_cfg", "image_size", [32, 32, 32]),
        ("vision_cfg", "head_width", 999),
        ("text_cfg", "hf_model_name", "roberta-base"),
        ("text_cfg", "pool_type", "none"),
        ("text_cfg", "proj_type", "mlp"),
        ("text_cfg", "proj_bias", "yes"),
        ("text_cfg", "act_kwargs", {"approximate": "sigmoid"}),
        ("text_cfg", "act_kwargs", {"inplace": True}),
        ("text_cfg", "norm_kwargs", {"eps": 2.0}),
        ("text_cfg", "norm_kwargs", {"bias": False}),
        ("text_cfg", "mlp_ratio", "4"),
        ("text_cfg", "mlp_ratio", float("inf")),
        ("text_cfg", "mlp_ratio", 1e-9),
        ("text_cfg", "heads", 7),
    ],
)
def test_open_clip_options_that_are_not_done_are_refused_by_name(resnet, section, entry, value):
    edit_model_cfg(resnet, section, entry, value)
    names = {"head_width": "head_width", "heads": "attention heads", "mlp_ratio": "mlp.ratio|mlp width"}
    names |= {"act_kwargs": "act_kwargs|approximate", "norm_kwargs": "norm_kwargs|eps"}
    with pytest.raises(WordlightError, match=names.get(entry, entry)):
        wl.load(resnet)


@pytest.mark.parametrize(
    "changes",
    [
        {"model_cfg": None},
        {"model_cfg": {"vision_cfg": 3}},
        {"model_cfg": {"quick_gelu": "yes"}},
        {"preprocess_cfg": [1]},
    ],
)
def test_open_clip_models_of_other_kinds_are_refused(resnet, changes):
    edit_json(resnet / "open_clip_config.json", changes)
    with pytest.raises(WordlightError, match="configuration says"):
        wl.load(resnet)


def test_old_configurations():
    vision = {"hidden_size": 1024, "num_attention_heads": 16, "intermediate_size": 4096}
    config = hf_config(
        {
            "model_type": "clip",
            "vision_config": {},
            "vision_config_dict": vision,
            "text_config": {"eos_token_id": 2},
        }
    )
    assert config.vision.transformer.width == 1024  # pyright: ignore[reportAttributeAccessIssue]
    assert config.text is not None
    assert config.text.end_id is None
    assert (config.text.vocab_size, config.text.context_length, config.embed_dim) == (49408, 77, 512)


def test_open_clip_defaults_are_those_of_open_clip():
    config = open_clip_config({"model_cfg": {"embed_dim": 512, "vision_cfg": {}, "text_cfg": {}}})
    base = TransformerConfig(width=768, layers=12, heads=12, mlp_width=3072, activation="gelu")
    assert config.vision.transformer == base  # pyright: ignore[reportAttributeAccessIssue]
    assert config.text is not None
    assert config.text.transformer == replace(base, width=512, heads=8, mlp_width=2048)


def test_preprocessing_for_another_size_is_refused(vit):
    edit_json(vit / "preprocessor_config.json", {"crop_size": {"height": 48, "width": 48}})
    with pytest.raises(WordlightError, match=r"\(48, 48\).*\(32, 32\)"):
        wl.load(vit)


def test_a_tokenizer_of_another_checkpoint_is_refused(tmp_path):
    small = replace(VIT, text=replace(VIT.text, vocab_size=5, end_id=4))
    save_folder(tmp_path, tiny_clip(small))
    tiny_tokenizer(tmp_path)
    with pytest.raises(WordlightError, match=rf"up to {VOCAB - 1}.*has 5 of them.*another checkpoint"):
        wl.load(tmp_path)


# Sizes nobody has


@pytest.mark.parametrize(
    ("section", "entry", "value"),
    [
        ("vision_config", "hidden_size", 10**9),
        ("vision_config", "hidden_size", 960_000),
        ("vision_config", "image_size", 16_384),
        ("vision_config", "image_size", 10**12),
        ("text_config", "num_hidden_layers", 10**7),
        ("text_config", "intermediate_size", 10**6),
        ("text_config", "vocab_size", 10**6),
        ("text_config", "max_position_embeddings", 10**30),
    ],
)
def test_huge_numbers_are_refused_before_memory_is_used(vit, section, entry, value):
    (vit / "preprocessor_config.json").unlink()
    edit_json(vit / "config.json", {section: {entry: value}})
    start = time.monotonic()
    with pytest.raises(WordlightError, match=r"from 1 to|the configuration says"):
        wl.load(vit)
    assert time.monotonic() - start < 60


def test_a_resnet_of_too_many_blocks_is_refused(resnet):
    edit_model_cfg(resnet, "vision_cfg", "layers", [1, 10**8, 1, 1])
    with pytest.raises(WordlightError, match="layers = 100000000"):
        wl.load(resnet)
