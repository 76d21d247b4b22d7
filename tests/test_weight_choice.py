"""Which file of a folder is read, where there are several."""

import json
import shutil

import jax
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import wordlight as wl
from spoiled import edit_json, edit_model_cfg, write_originals
from wordlight.clip import checkpoint_files
from wordlight.clip.config import ResNetConfig, VitConfig
from wordlight.clip.config_open_clip import open_clip_config
from wordlight.errors import WordlightError


@pytest.fixture
def folders(tmp_path):
    return write_originals(tmp_path)


@pytest.fixture
def both(folders):
    """One folder with a ViT in Hugging Face layout and a ResNet in OpenCLIP's."""
    shutil.copytree(folders / "resnet", folders / "vit", dirs_exist_ok=True)
    return folders / "vit"


def test_open_clips_weights_come_first(both):
    assert isinstance(wl.load(both).config.vision, ResNetConfig)


def test_where_only_transformers_weights_can_be_read_they_are(both):
    """As in folders whose OpenCLIP weights are a pickle."""
    (both / "open_clip_model.safetensors").rename(both / "open_clip_pytorch_model.bin")
    if checkpoint_files.find_spec("torch") is None:
        assert isinstance(wl.load(both).config.vision, VitConfig)


def test_a_configuration_of_another_program_does_not_count(folders):
    resnet = folders / "resnet"
    (resnet / "open_clip_model.safetensors").rename(resnet / "model.safetensors")
    (resnet / "config.json").write_text(json.dumps({"architecture": "resnet50_clip"}))
    assert isinstance(wl.load(resnet).config.vision, ResNetConfig)


@pytest.mark.parametrize("name", ["open_clip_pytorch_model.safetensors", "epoch_32.safetensors"])
def test_other_names_are_found(folders, name):
    resnet = folders / "resnet"
    (resnet / "open_clip_model.safetensors").rename(resnet / name)
    assert isinstance(wl.load(resnet).config.vision, ResNetConfig)


def test_of_two_unknown_names_none_is_taken(folders):
    resnet = folders / "resnet"
    (resnet / "open_clip_model.safetensors").rename(resnet / "one.safetensors")
    shutil.copy(resnet / "one.safetensors", resnet / "two.safetensors")
    with pytest.raises(WordlightError, match=r"one.safetensors', 'two.safetensors"):
        wl.load(resnet)


@pytest.mark.parametrize("prefixed", [True, False])
def test_a_custom_text_tower_is_read_under_either_name(folders, prefixed):
    resnet = folders / "resnet"
    expected = wl.load(resnet)
    edit_json(resnet / "open_clip_config.json", {"model_cfg": {"custom_text": True}})
    file = resnet / "open_clip_model.safetensors"
    if prefixed:
        tensors = load_file(file)
        whole = {n if n.startswith(("visual", "logit")) else f"text.{n}": t for n, t in tensors.items()}
        save_file(whole, file)
    jax.tree.map(np.testing.assert_array_equal, wl.load(resnet).params, expected.params)


def test_a_patch_size_may_be_a_pair_of_equals():
    vision = {"layers": 2, "width": 64, "image_size": 32, "patch_size": [16, 16]}
    config = {"embed_dim": 8, "vision_cfg": vision, "text_cfg": {}}
    assert open_clip_config({"model_cfg": config}).vision.patch_size == 16


@pytest.mark.parametrize(
    ("section", "entry"),
    [("text_cfg", "use_pad_mask"), ("vision_cfg", "use_rope"), ("text_cfg", "word_limit")],
)
def test_entries_that_nobody_here_knows_are_refused_by_name(folders, section, entry):
    edit_model_cfg(folders / "resnet", section, entry, True)
    with pytest.raises(WordlightError, match=rf"{section}.{entry} = True, but no such entry is known"):
        wl.load(folders / "resnet")


def test_unknown_entries_of_the_model_are_refused_too(folders):
    edit_json(folders / "resnet" / "open_clip_config.json", {"model_cfg": {"text_type": "bert"}})
    with pytest.raises(WordlightError, match=r"model_cfg.text_type = 'bert'"):
        wl.load(folders / "resnet")


@pytest.mark.parametrize("size", [np.int64(64), [64, 64], (np.int32(64), 64)])
def test_sizes_may_be_whole_numbers_of_any_library(unchecked, folders, size):
    assert wl.load(folders / "vit", image_size=size).config.vision.image_size == (64, 64)


@pytest.mark.parametrize("size", [64.0, 0, True, (64,), (64, 64, 3), "64", (64, -1)])
def test_other_sizes_are_refused(unchecked, folders, size):
    with pytest.raises(WordlightError, match=r"is not a side or a \(height, width\) in pixels"):
        wl.load(folders / "vit", image_size=size)


def test_a_device_is_no_word(folders):
    with pytest.raises(WordlightError, match=r"device 'cuda:0' is a word.*jax.devices\('cuda'\)\[0\]"):
        wl.load(folders / "vit", device="cuda:0")


def test_a_name_that_is_unset_is_refused(unchecked):
    with pytest.raises(WordlightError, match=r"The model None is a NoneType.*unset.*or demo"):
        wl.load(None)
