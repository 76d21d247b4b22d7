"""Weights that are damaged or do not fit are refused with the reason, and nothing in them is run."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wordlight as wl
from spoiled import (
    CONFIG_FILES,
    MODELS,
    WEIGHT_FILES,
    edit_json,
    edit_tensors,
    poison,
    shard,
    write_originals,
)
from tiny_clip import EMBED
from wordlight.clip.checkpoint_files import weight_files
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


# Weights that do not fit


def test_missing_extra_and_misshapen_tensors_are_all_named(vit):
    def spoil(tensors):
        del tensors["text_projection.weight"]
        del tensors["vision_model.encoder.layers.1.self_attn.k_proj.bias"]
        tensors["adapter.down"] = np.zeros((2, 3), "f4")
        tensors["visual_projection.weight"] = np.zeros((EMBED, 31), "f4")
        tensors["logit_scale"] = np.zeros((2,), "f4")

    edit_tensors(vit / "model.safetensors", spoil)
    with pytest.raises(WordlightError) as caught:
        wl.load(vit)
    for part in (
        "5 tensors",
        "missing text_projection.weight (24, 16)",
        "missing vision_model.encoder.layers.1.self_attn.k_proj.bias (32,)",
        "left over adapter.down (2, 3)",
        "visual_projection.weight is (24, 31), the configuration says (24, 32)",
        "logit_scale is (2,), the configuration says ()",
        "another architecture",
        "Check that both come from the same repository",
    ):
        assert part in str(caught.value)


def test_every_tensor_is_named_however_many_they_are(vit):
    edit_tensors(vit / "model.safetensors", dict.clear)
    with pytest.raises(WordlightError) as caught:
        wl.load(vit)
    assert str(caught.value).count("missing ") == 78


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_weights_that_are_not_finite_are_named(resnet, value):
    def spoil(tensors):
        tensors["visual.layer2.0.conv2.weight"][0, 0, 1, 1] = value
        tensors["ln_final.bias"][3] = value

    edit_tensors(resnet / "open_clip_model.safetensors", spoil)
    with pytest.raises(WordlightError, match="not finite") as caught:
        wl.load(resnet)
    assert "(2 tensors)" in str(caught.value)
    for name in ("visual.layer2.0.conv2.weight", "ln_final.bias", "Fetch it again"):
        assert name in str(caught.value)


def test_doubles_beyond_single_precision_are_not_finite(vit):
    big = {"logit_scale": np.array(1e300)}
    edit_tensors(vit / "model.safetensors", lambda tensors: tensors.update(big))
    with pytest.raises(WordlightError, match=r"not finite as float32 .1 tensors.*\n.*logit_scale"):
        wl.load(vit)


def test_integers_are_not_weights(vit):
    whole = {"visual_projection.weight": np.zeros((EMBED, 32), "i1")}
    edit_tensors(vit / "model.safetensors", lambda tensors: tensors.update(whole))
    with pytest.raises(WordlightError, match=r"visual_projection.weight holds I8, not floats"):
        wl.load(vit)


# Damaged files


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:-10],
        lambda data: data[:100],
        lambda data: data[:4],
        lambda data: b"",
        lambda data: b"version https://git-lfs.github.com/spec/v1\noid sha256:ab\nsize 605157884\n",
        lambda data: b"\xff" * 8 + data[8:],
        lambda data: data[:20] + b"?" + data[21:],
    ],
)
def test_damaged_weights_are_refused(originals, tmp_path, name, damage):
    folder = shutil.copytree(originals / name, tmp_path / "copy")
    file = folder / WEIGHT_FILES[name]
    file.write_bytes(damage(file.read_bytes()))
    with pytest.raises(WordlightError, match=r"not a readable safetensors file.*cut short.*Fetch it again"):
        wl.load(folder)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(
    "text", ["", "{", "[1, 2]", '"text"', "NaN", "[" * 100_000, '{"a": 1' + "0" * 5000 + "}"]
)
def test_a_configuration_that_is_no_object_is_refused(originals, tmp_path, name, text):
    folder = shutil.copytree(originals / name, tmp_path / "copy")
    (folder / CONFIG_FILES[name]).write_text(text)
    with pytest.raises(WordlightError, match=r"(cannot be read as JSON|not an object).*Fetch it again"):
        wl.load(folder)


def test_a_configuration_that_is_no_text_is_refused(vit):
    (vit / "config.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(WordlightError, match="cannot be read as JSON"):
        wl.load(vit)


def test_a_folder_in_the_place_of_the_weights(vit):
    (vit / "model.safetensors").unlink()
    (vit / "model.safetensors").mkdir()
    with pytest.raises(WordlightError, match=r"holds no file model.safetensors"):
        wl.load(vit)


@pytest.mark.parametrize("names", [[], ["pytorch_model.bin"], ["a.pt", "tf_model.h5"]])
def test_only_safetensors_are_read(vit, tmp_path, names):
    (vit / "model.safetensors").unlink()
    for name in names:
        (vit / name).write_bytes(poison(tmp_path / "ran"))
    listed = names or "none"
    with pytest.raises(WordlightError) as caught:
        wl.load(vit)
    assert f"weights there: {listed}" in str(caught.value)
    assert "can run code" in str(caught.value)
    assert "save_pretrained" in str(caught.value)
    assert not (tmp_path / "ran").exists()


def test_a_pickle_under_the_name_of_safetensors_is_not_opened(vit, tmp_path):
    (vit / "model.safetensors").write_bytes(poison(tmp_path / "ran"))
    with pytest.raises(WordlightError, match="not a readable safetensors file"):
        wl.load(vit)
    assert not (tmp_path / "ran").exists()


# Shards


def test_missing_shards_are_named(vit):
    shard(vit)
    (vit / "model-00002-of-00002.safetensors").unlink()
    with pytest.raises(WordlightError, match=r"not in its folder: model-00002-of-00002.*Fetch the whole"):
        wl.load(vit)


@pytest.mark.parametrize(
    "path", ["../secret.safetensors", "sub/x.safetensors", "..", ".", "", "a\0b", "x" * 5000, 3, None, ["a"]]
)
def test_an_index_leads_nowhere_outside_its_folder(vit, path):
    shutil.copy(vit / "model.safetensors", vit.parent / "secret.safetensors")
    (vit / "sub").mkdir()
    shutil.copy(vit / "model.safetensors", vit / "sub" / "x.safetensors")
    index = shard(vit)
    edit_json(index, {"weight_map": {"logit_scale": path}})
    with pytest.raises(WordlightError, match="names shards that are not in its folder"):
        wl.load(vit)


def test_an_absolute_path_in_an_index_is_refused(vit):
    index = shard(vit)
    edit_json(index, {"weight_map": {"logit_scale": str(vit / "model-00001-of-00002.safetensors")}})
    with pytest.raises(WordlightError, match="names shards that are not in its folder"):
        wl.load(vit)


@pytest.mark.parametrize("weight_map", [{}, [], None, "model.safetensors", 7])
def test_an_index_without_shards_is_refused(vit, weight_map):
    index = shard(vit)
    index.write_text(json.dumps({"weight_map": weight_map}))
    with pytest.raises(WordlightError, match="none at all"):
        weight_files(vit, ("model",))


# Anything else


@settings(max_examples=25, derandomize=True, deadline=None)
@given(
    file=st.sampled_from(["config.json", "preprocessor_config.json", "model.safetensors", "tokenizer.json"]),
    place=st.floats(0, 1, exclude_max=True),
    junk=st.binary(max_size=12),
    cut=st.integers(0, 12),
)
def test_bytes_changed_at_random_load_or_are_refused(originals, tmp_path_factory, file, place, junk, cut):
    folder = tmp_path_factory.mktemp("fuzz")
    shutil.copytree(originals / "vit", folder, dirs_exist_ok=True)
    data = (folder / file).read_bytes()
    start = int(place * len(data))
    (folder / file).write_bytes(data[:start] + junk + data[start + cut :])
    try:
        wl.load(folder)
    except WordlightError:
        pass
    finally:
        shutil.rmtree(folder)
