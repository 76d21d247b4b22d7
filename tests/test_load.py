"""What is saved is loaded again, from wherever it lies."""

import shutil
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import wordlight as wl
from spoiled import (
    MODELS,
    edit_tensors,
    shard,
    write_originals,
)
from tiny_clip import EMBED, RESNET, SIZE, VIT, VOCAB, pixels, tiny_clip
from wordlight.clip.config import TransformerConfig
from wordlight.clip.image_spec import ImageSpec
from wordlight.clip.save import save_folder
from wordlight.clip.tensor_files import KINDS, TensorFiles
from wordlight.clip.weights import aligned_empty
from wordlight.errors import WordlightError

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture(scope="module")
def originals(tmp_path_factory) -> Path:
    return write_originals(tmp_path_factory.mktemp("originals"))


@pytest.fixture
def vit(originals, tmp_path) -> Path:
    return shutil.copytree(originals / "vit", tmp_path / "vit")


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


@pytest.fixture(params=["F16", "BF16", "F32", "F64"])
def saved(request, tmp_path):
    """Tensors of many shapes in a file, by name, and the name of their type."""
    rng = np.random.default_rng(0)
    shapes = {"a": (), "b": (3, 5), "c": (7,), "empty": (0, 4), "tall": (50, 3), "kernel": (40, 2, 3, 3)}
    tensors = {
        name: rng.standard_normal(shape).astype(KINDS[request.param]) for name, shape in shapes.items()
    }
    file = tmp_path / "one.safetensors"
    save_file(tensors, file, metadata={"format": "pt"})
    return file, tensors, request.param


def test_tensors_are_read_bit_for_bit(saved):
    file, tensors, kind = saved
    with ExitStack() as stack:
        files = TensorFiles(stack, [file])
        for name, expected in tensors.items():
            found = np.full_like(expected, 9.0)
            files.read_into(name, found)
            assert files.dtype(name) == kind
            assert found.tobytes() == expected.tobytes()


def test_tensors_are_read_into_arrays_of_another_order_and_type(saved):
    file, tensors, _ = saved
    with ExitStack() as stack:
        files = TensorFiles(stack, [file])
        for name, expected in tensors.items():
            found = np.zeros(expected.shape[::-1], np.float32)
            files.read_into(name, found.T)
            np.testing.assert_array_equal(found.T, expected.astype(np.float32))


def test_a_file_that_is_cut_while_it_is_read_is_named(saved):
    file, tensors, _ = saved
    with ExitStack() as stack:
        files = TensorFiles(stack, [file])
        file.write_bytes(file.read_bytes()[:-8])
        last = max(files.names(), key=lambda name: files._where[name].start)
        with pytest.raises(
            WordlightError, match=rf"one.safetensors ended 8 bytes before {last} did.*is done"
        ):
            files.read_into(last, np.zeros_like(tensors[last]))


def test_weights_are_taken_over_without_a_copy():
    """JAX on CPUs keeps an array as it is if it begins where it asks for."""
    array = aligned_empty((300, 70), np.float32)
    array[:] = 1.0
    assert array.ctypes.data % 64 == 0
    taken = jax.device_put(array, jax.devices("cpu")[0])
    assert taken.unsafe_buffer_pointer() == array.ctypes.data


@pytest.mark.parametrize("copies", [1, 100])
def test_padding_behind_the_end_changes_nothing(copies):
    model = wl.load("demo")
    texts = ["a red car", "a photo of a small yellow bulldozer"] * copies
    ids, mask = model.tokenize(texts)
    assert int(mask.sum(-1).max()) < ids.shape[1]
    whole = model.encode_tokens(jnp.asarray(ids), jnp.asarray(mask))
    np.testing.assert_allclose(model.encode_text(texts), whole, atol=1e-6)


def test_weights_go_to_the_default_device_of_the_caller():
    device = jax.devices()[-1]
    with jax.default_device(device):
        model = wl.load("demo")
    assert {d for leaf in jax.tree.leaves(model.params) for d in leaf.devices()} == {device}
