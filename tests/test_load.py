"""Checkpoints: what is written is read back; what is damaged or does not fit is refused with its reason."""

import json
import pickle
import shutil
import time
from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file

import wordlight as wl
from tiny_clip import EMBED, RESNET, SIZE, VIT, VOCAB, pixels, tiny_clip, tiny_tokenizer
from wordlight.clip.config import TransformerConfig
from wordlight.clip.config_files import hf_config, open_clip_config
from wordlight.clip.image_spec import ImageSpec
from wordlight.clip.save import save_folder
from wordlight.clip.weights import weight_files
from wordlight.errors import WordlightError

MODELS = {"vit": VIT, "resnet": RESNET}
CONFIG_FILES = {"vit": "config.json", "resnet": "open_clip_config.json"}
WEIGHT_FILES = {"vit": "model.safetensors", "resnet": "open_clip_model.safetensors"}
COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture(scope="module")
def originals(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("originals")
    for name, config in MODELS.items():
        save_folder(root / name, tiny_clip(config))
        tiny_tokenizer(root / name)
    return root


@pytest.fixture
def vit(originals, tmp_path) -> Path:
    return shutil.copytree(originals / "vit", tmp_path / "vit")


@pytest.fixture
def resnet(originals, tmp_path) -> Path:
    return shutil.copytree(originals / "resnet", tmp_path / "resnet")


def edit_json(file: Path, changes: dict) -> None:
    """Merge changes into a JSON file, two levels deep."""
    config = json.loads(file.read_text())
    for name, value in changes.items():
        nested = isinstance(value, dict) and isinstance(config.get(name), dict)
        config[name] = config[name] | value if nested else value
    file.write_text(json.dumps(config))


def edit_tensors(file: Path, change) -> None:
    """Let `change` alter the dictionary of tensors in a file."""
    tensors = load_file(file)
    change(tensors)
    save_file(tensors, file)


def shard(folder: Path) -> Path:
    """Split model.safetensors in two with an index, and return the index."""
    tensors = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    names = sorted(tensors)
    weight_map = {}
    for number, part in enumerate((names[::2], names[1::2]), start=1):
        file = f"model-{number:05}-of-00002.safetensors"
        save_file({name: tensors[name] for name in part}, folder / file)
        weight_map |= dict.fromkeys(part, file)
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))
    return index


# There and back


@pytest.mark.parametrize("name", MODELS)
def test_what_is_saved_is_loaded(originals, name):
    model, loaded = tiny_clip(MODELS[name]), wl.load(originals / name)
    assert loaded.config == model.config
    assert loaded.image_spec == replace(model.image_spec, resize_to=loaded.image_spec.resize_to)
    assert jax.tree.structure(loaded.params) == jax.tree.structure(model.params)
    for ours, theirs in zip(jax.tree.leaves(loaded.params), jax.tree.leaves(model.params), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert loaded.tokenizer is not None
    assert loaded.encode_text("a red cat").shape == (1, EMBED)


def test_the_logit_scale_is_saved_as_a_scalar(originals):
    assert load_file(originals / "vit" / "model.safetensors")["logit_scale"].shape == ()


def test_a_path_may_be_a_string(originals):
    assert wl.load(str(originals / "vit")).config == VIT


def test_saving_again_replaces_the_weights_and_leaves_no_other_file(vit):
    before = {file.name for file in vit.iterdir()}
    save_folder(vit, tiny_clip(VIT, seed=1))
    assert {file.name for file in vit.iterdir()} == before
    np.testing.assert_array_equal(
        wl.load(vit).params["vision"]["projection"], tiny_clip(VIT, seed=1).params["vision"]["projection"]
    )


@pytest.mark.parametrize(
    "spec",
    [
        ImageSpec((SIZE, SIZE), resize_to=(40, 40), interpolation="bilinear"),
        ImageSpec((SIZE, SIZE), resize="squash", crop=False, mean=(0.5, 0.5, 0.5), std=(0.5, 0.5, 0.5)),
        ImageSpec((SIZE, SIZE), mode="hf-torchvision", rounding="pil"),
    ],
)
def test_the_preprocessing_is_saved_too(tmp_path, spec):
    save_folder(tmp_path, replace(tiny_clip(VIT), image_spec=spec))
    assert wl.load(tmp_path).image_spec == replace(spec, resize_to=spec.target, rounding="none")


@pytest.mark.parametrize("size", [(SIZE, 48), (24, SIZE)])
def test_what_a_layout_cannot_hold_is_not_written(tmp_path, size):
    oblong = replace(VIT, vision=replace(VIT.vision, image_size=size))
    with pytest.raises(WordlightError, match=r"cannot hold.*read back as"):
        save_folder(tmp_path / "new", tiny_clip(oblong))
    two = replace(VIT, text=replace(VIT.text, end_id=2))
    with pytest.raises(WordlightError, match=r"end_id=2.*read back as.*end_id=None"):
        save_folder(tmp_path / "new", tiny_clip(two))
    assert not list((tmp_path / "new").iterdir())


def test_a_model_without_text_is_not_written(tmp_path):
    with pytest.raises(WordlightError, match=r"no text tower.*without_text.*as it was loaded"):
        save_folder(tmp_path / "new", tiny_clip(VIT).without_text())


def test_mlp_widths_survive_their_ratio(tmp_path):
    text = replace(RESNET.text, transformer=TransformerConfig(48, 1, 2, 145, "gelu"))
    save_folder(tmp_path, tiny_clip(replace(RESNET, text=text)))
    assert wl.load(tmp_path).config.text == text


def test_shards_are_read_together(vit):
    shard(vit)
    np.testing.assert_array_equal(
        wl.load(vit).encode_pixels(pixels(1)), tiny_clip(VIT).encode_pixels(pixels(1))
    )


def test_buffers_that_follow_from_the_configuration_are_passed_over(vit):
    places = {"text_model.embeddings.position_ids": np.arange(8)}
    edit_tensors(vit / "model.safetensors", lambda tensors: tensors.update(places))
    assert wl.load(vit).config == VIT


def test_a_folder_without_tokenizer_files_sees_and_cannot_read(vit):
    for file in ("tokenizer.json", "tokenizer_config.json"):
        (vit / file).unlink()
    model = wl.load(vit)
    assert model.encode_pixels(pixels(1)).shape == (1, EMBED)
    assert model.encode_tokens(jnp.array([[2, 3, VOCAB - 1]])).shape == (1, EMBED)
    with pytest.raises(WordlightError, match=r"no tokenizer.*held no tokenizer.json.*Add those files"):
        model.encode_text("a cat")


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
    assert str(caught.value).count("missing ") == 76


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
    with pytest.raises(WordlightError, match=r"not finite .1 tensors.*\n.*logit_scale"):
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


class _Poison:
    def __init__(self, file: Path):
        self.file = file

    def __reduce__(self):
        return Path.touch, (self.file,)


def poison(file: Path) -> bytes:
    """Return a pickle that makes a file when it is opened."""
    return pickle.dumps(_Poison(file))


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
        weight_files(vit, "model")


# Configurations


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_type": "siglip"}, "model_type = 'siglip'.*takes 'clip'"),
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
        ("vision_cfg", "timm_model_name", "vit_base_patch16_siglip_224"),
        ("vision_cfg", "attentional_pool", True),
        ("vision_cfg", "pool_type", "avg"),
        ("vision_cfg", "scale_fc", True),
        ("vision_cfg", "layers", [1, 2, 3]),
        ("vision_cfg", "layers", [1, 2, 1, 0]),
        ("vision_cfg", "layers", [1, 2, 1, "1"]),
        ("vision_cfg", "image_size", 33),
        ("vision_cfg", "image_size", [32, 32, 32]),
        ("vision_cfg", "head_width", 999),
        ("text_cfg", "hf_model_name", "roberta-base"),
        ("text_cfg", "pool_type", "last"),
        ("text_cfg", "proj_bias", True),
        ("text_cfg", "mlp_ratio", "4"),
        ("text_cfg", "mlp_ratio", float("inf")),
        ("text_cfg", "mlp_ratio", 1e-9),
        ("text_cfg", "heads", 7),
    ],
)
def test_open_clip_options_that_are_not_done_are_refused_by_name(resnet, section, entry, value):
    edit_json(resnet / "open_clip_config.json", {})
    file = resnet / "open_clip_config.json"
    config = json.loads(file.read_text())
    config["model_cfg"][section][entry] = value
    file.write_text(json.dumps(config))
    names = {"head_width": "head_width", "heads": "attention heads", "mlp_ratio": "mlp.ratio|mlp width"}
    with pytest.raises(WordlightError, match=names.get(entry, entry)):
        wl.load(resnet)


@pytest.mark.parametrize(
    "changes",
    [
        {"model_cfg": None},
        {"model_cfg": {"vision_cfg": 3}},
        {"model_cfg": {"custom_text": True}},
        {"model_cfg": {"multimodal_cfg": {}}},
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
    assert time.monotonic() - start < 30


def test_a_resnet_of_too_many_blocks_is_refused(resnet):
    file = resnet / "open_clip_config.json"
    config = json.loads(file.read_text())
    config["model_cfg"]["vision_cfg"]["layers"] = [1, 10**8, 1, 1]
    file.write_text(json.dumps(config))
    with pytest.raises(WordlightError, match="layers = 100000000"):
        wl.load(resnet)


# Where models are looked for


@pytest.mark.parametrize(
    "name", ["no-such-model", "./no/such", "/no/such", "~/no-such", "a/b/c", "", " ", "a\0b"]
)
def test_a_misspelt_name_is_refused(name):
    with pytest.raises(WordlightError, match=r"no model.*misspelt.*Give a folder"):
        wl.load(name)


def test_a_file_is_no_folder(vit):
    with pytest.raises(WordlightError, match="no such folder"):
        wl.load(vit / "model.safetensors")


def test_a_folder_that_holds_no_model(tmp_path):
    with pytest.raises(WordlightError, match=r"neither config.json nor.*a parent folder.*Give the folder"):
        wl.load(tmp_path)


@pytest.mark.parametrize("name", ["openai/clip-vit-base-patch99", "bad//name", "-x/y"])
def test_what_the_hub_cannot_give_is_refused_in_three_parts(tmp_path, name):
    with pytest.raises(WordlightError, match=r"could not be had|no model") as caught:
        wl.load(name, cache_dir=tmp_path)
    assert name in str(caught.value)


def test_offline_without_a_cache_says_so(tmp_path):
    with pytest.raises(WordlightError) as caught:
        wl.load("openai/clip-vit-base-patch99", cache_dir=tmp_path)
    for part in ("could not be had from the Hub", "offline mode is on", "Check the id", "local folder"):
        assert part in str(caught.value)


@pytest.mark.parametrize("revision", [None, "main", COMMIT])
def test_offline_the_cache_is_used(originals, tmp_path, revision):
    repository = tmp_path / "models--someone--tiny-clip"
    shutil.copytree(originals / "vit", repository / "snapshots" / COMMIT)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(COMMIT)
    model = wl.load("someone/tiny-clip", cache_dir=tmp_path, revision=revision)
    assert model.config == VIT
    assert model.tokenizer is not None


def test_a_folder_wins_over_the_hub(originals, tmp_path, monkeypatch):
    shutil.copytree(originals / "vit", tmp_path / "someone" / "tiny-clip")
    monkeypatch.chdir(tmp_path)
    assert wl.load("someone/tiny-clip").config == VIT


# Anything else


@settings(max_examples=25, derandomize=True, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
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
