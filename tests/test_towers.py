"""Towers against transformers and open_clip: `golden/towers` holds their checkpoints and what they computed.

`python -m parity` makes those files and compares many more checkpoints with the programs themselves.
"""

import dataclasses
import functools
import json
import shutil
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import wordlight as wl
from tiny_clip import CONTEXT, RESNET, SIZE, VIT, VOCAB, pictures, pixels, tiny_clip, tiny_tokenizer
from wordlight.clip.model import ClipModel
from wordlight.clip.save import save_folder
from wordlight.errors import WordlightError

GOLDEN = Path(__file__).parent / "golden" / "towers"
CHECKPOINTS = sorted(folder.name for folder in GOLDEN.iterdir())
LIMIT = 1e-5
MODELS = {"vit": VIT, "resnet": RESNET}


@functools.cache
def golden(name: str) -> tuple[ClipModel, dict[str, jax.Array]]:
    with np.load(GOLDEN / name / "expected.npz") as stored:
        return wl.load(GOLDEN / name), {key: jnp.asarray(stored[key]) for key in stored}


@pytest.fixture(params=MODELS)
def model(request):
    return tiny_clip(MODELS[request.param])


def relative_error(value, expected) -> float:
    return float(np.linalg.norm(np.asarray(value - expected)) / np.linalg.norm(np.asarray(expected)))


def end_ids(*lengths: int) -> jax.Array:
    """Ids of words (2 and up) that end with the last id of the vocabulary, and zeros behind it."""
    places = np.arange(CONTEXT)[None]
    stops = np.array(lengths)[:, None]
    ids = np.where(places == stops, VOCAB - 1, 2 + (places + stops) % 5)
    return jnp.asarray(np.where(places > stops, 0, ids), jnp.int32)


# Parity


@jax.jit
def run(model: ClipModel, pixels, ids, mask):
    """Return embeddings, logits and the gradient of a logit at the pixels, named as the golden files do."""

    def logits(pixels):
        image_embeds, text_embeds = model.encode_pixels(pixels), model.encode_tokens(ids, mask)
        table = model.logits(image_embeds, text_embeds)
        values = {"image_embeds": image_embeds, "text_embeds": text_embeds, "logits": table}
        return table[0, 0], values

    gradient, values = jax.grad(logits, has_aux=True)(pixels)
    return values | {"gradient": gradient, "unmasked": model.encode_tokens(ids)}


@functools.cache
def computed(name: str) -> dict[str, jax.Array]:
    model, stored = golden(name)
    return run(model, stored["pixels"], stored["ids"], stored["mask"])


@pytest.mark.parametrize("name", CHECKPOINTS)
@pytest.mark.parametrize("output", ["image_embeds", "text_embeds", "logits", "gradient"])
def test_outputs_are_those_of_the_reference(name, output):
    assert relative_error(computed(name)[output], golden(name)[1][output]) < LIMIT


@pytest.mark.parametrize("name", CHECKPOINTS)
def test_padding_lies_behind_the_end_token_and_needs_no_mask(name):
    np.testing.assert_allclose(computed(name)["unmasked"], computed(name)["text_embeds"], atol=1e-6)


def test_the_golden_checkpoints_cover_layouts_activations_and_poolings():
    kinds = {type(golden(name)[0].config.vision).__name__ for name in CHECKPOINTS}
    texts = [golden(name)[0].config.text for name in CHECKPOINTS]
    assert kinds == {"VitConfig", "ResNetConfig"}
    assert {text.transformer.activation for text in texts if text} == {
        "quick_gelu",
        "gelu",
        "gelu_tanh",
    }
    assert {text.pooling for text in texts if text} == {"end", "last", "class"}
    assert {text.end_id for text in texts if text} == {None, 63}


# Activations


@pytest.mark.parametrize(
    ("name", "file", "change"),
    [
        ("hf-quick-gelu", "config.json", {"vision_config": {"hidden_act": "gelu"}}),
        ("open-clip-gelu", "open_clip_config.json", {"model_cfg": {"quick_gelu": True}}),
    ],
)
def test_the_activation_is_the_one_the_checkpoint_names(tmp_path, name, file, change):
    folder = shutil.copytree(GOLDEN / name, tmp_path / "copy")
    config = json.loads((folder / file).read_text())
    for section, entries in change.items():
        config[section] |= entries
    (folder / file).write_text(json.dumps(config))
    stored = golden(name)[1]
    assert relative_error(wl.load(folder).encode_pixels(stored["pixels"]), stored["image_embeds"]) > 1e-3


# Text


def test_what_pads_a_text_makes_no_difference():
    model, ids = tiny_clip(VIT), end_ids(3, 5)
    after_end = jnp.cumsum(ids == VOCAB - 1, axis=1) > 0
    padded = jnp.where(after_end, VOCAB - 1, ids)
    np.testing.assert_allclose(model.encode_tokens(padded), model.encode_tokens(ids), atol=1e-6)
    np.testing.assert_allclose(model.encode_tokens(ids[:, :6]), model.encode_tokens(ids), atol=1e-6)


def test_a_text_sees_no_token_behind_another():
    model = tiny_clip(VIT)
    ids = end_ids(5)
    changed = ids.at[0, 2].set(7)
    assert relative_error(model.encode_tokens(changed), model.encode_tokens(ids)) > 1e-3
    behind = ids.at[0, 6].set(7)
    np.testing.assert_allclose(model.encode_tokens(behind), model.encode_tokens(ids), atol=1e-6)


def test_masked_tokens_are_not_looked_at():
    model, ids = tiny_clip(VIT), end_ids(5)
    mask = jnp.ones_like(ids).at[0, 2].set(0)
    embeds = model.encode_tokens(ids, mask)
    np.testing.assert_allclose(model.encode_tokens(ids.at[0, 2].set(7), mask), embeds, atol=1e-6)
    blind = model.encode_tokens(ids, jnp.zeros_like(ids))
    assert np.isfinite(blind).all()


# The model as a value


def test_embeddings_have_unit_norm(model):
    np.testing.assert_allclose(np.linalg.norm(model.encode_pixels(pixels(3)), axis=-1), 1, atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(model.encode_tokens(end_ids(3, 5)), axis=-1), 1, atol=1e-5)


def test_logits_are_cosines_times_the_exponential_of_the_scale(model):
    images, texts = model.encode_pixels(pixels(2)), model.encode_tokens(end_ids(3, 5, 6))
    scaled = model.replace_params(model.params | {"logit_scale": jnp.float32(1.5)})
    np.testing.assert_allclose(scaled.logits(images, texts), np.exp(1.5) * images @ texts.T, rtol=1e-4)
    assert scaled.logits(images[0], texts).shape == (3,)


def test_a_zero_embedding_has_a_finite_value_and_gradient():
    model = tiny_clip(VIT)
    vision = model.params["vision"]
    flat = model.params | {"vision": vision | {"projection": jnp.zeros_like(vision["projection"])}}

    def total(params, x):
        return model.replace_params(params).encode_pixels(x).sum()

    value, gradients = jax.value_and_grad(total, argnums=(0, 1))(flat, pixels(1))
    assert value == 0
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(gradients))


@pytest.mark.parametrize("batch", [(), (1,), (2, 3), (0,)])
def test_any_leading_axes(model, batch):
    x = pixels(*batch)
    embeds = model.encode_pixels(x)
    assert embeds.shape == (*batch, model.config.embed_dim)
    one_by_one = [model.encode_pixels(image) for image in x.reshape(-1, SIZE, SIZE, 3)]
    np.testing.assert_allclose(
        embeds.reshape(-1, embeds.shape[-1]), np.array(one_by_one).reshape(-1, 24), atol=1e-5
    )


def test_channels_first_is_the_same_picture(model):
    x = pixels(2)
    first = jnp.moveaxis(x, -1, -3)
    np.testing.assert_allclose(model.encode_pixels(first, layout="CHW"), model.encode_pixels(x), atol=1e-6)


def test_jit_vmap_and_sharding_change_nothing(model):
    x = pixels(4)
    plain = model.encode_pixels(x)
    encode = jax.jit(ClipModel.encode_pixels)
    np.testing.assert_allclose(encode(model, x), plain, atol=1e-5)
    np.testing.assert_allclose(jax.vmap(model.encode_pixels)(x), plain, atol=1e-5)
    mesh = Mesh(np.array(jax.devices()), ("view",))
    spread = jax.device_put(x, NamedSharding(mesh, PartitionSpec("view")))
    everywhere = jax.device_put(model, NamedSharding(mesh, PartitionSpec()))
    np.testing.assert_allclose(encode(everywhere, spread), plain, atol=1e-5)


def test_a_traced_image_of_any_size_has_a_gradient(model):
    text = model.encode_tokens(end_ids(4))

    @jax.jit
    def gradient(model, image):
        return jax.grad(lambda i: model.logits(model.encode_image(i), text).sum())(image)

    image = pictures()
    slope = gradient(model, image)
    assert np.isfinite(slope).all()
    assert np.abs(slope).max() > 0
    direction = slope / jnp.linalg.norm(slope)

    def value(step):
        return float(model.logits(model.encode_image(image + step * direction), text)[0])

    np.testing.assert_allclose((value(0.01) - value(-0.01)) / 0.02, jnp.vdot(slope, direction), rtol=0.05)


def test_a_second_model_of_the_same_kind_is_not_compiled_again(model):
    traces = []

    @jax.jit
    def encode(model, x):
        traces.append(x.shape)
        return model.encode_image(x)

    first = encode(model, pictures())
    other = model.replace_params(jax.tree.map(lambda leaf: leaf * 1.1, model.params))
    second = encode(other, pictures(seed=9))
    assert len(traces) == 1
    assert relative_error(second, first) > 0


def test_nothing_calls_back_to_the_host_and_no_weight_is_a_constant(model):
    closed = jax.make_jaxpr(lambda m, i, t: m.logits(m.encode_image(i), m.encode_tokens(t)))(
        model, pictures(), end_ids(3)
    )
    assert "callback" not in str(closed)
    weights = {leaf.shape for leaf in jax.tree.leaves(model.params) if leaf.size > 1000}
    assert not weights & {np.shape(constant) for constant in closed.consts}


def test_a_model_is_a_pytree_with_a_hashable_rest(model):
    leaves, structure = jax.tree.flatten(model)
    assert all(isinstance(leaf, jax.Array) for leaf in leaves)
    again = jax.tree.unflatten(structure, leaves)
    assert again.config == model.config
    assert hash(structure) == hash(jax.tree.structure(tiny_clip(model.config, seed=5)))


def test_without_text_images_are_the_same_and_text_is_refused(tmp_path):
    model = tiny_clip(VIT, tokenizer=tiny_tokenizer(tmp_path))
    bare = model.without_text()
    assert "text" not in bare.params
    np.testing.assert_array_equal(bare.encode_pixels(pixels(2)), model.encode_pixels(pixels(2)))
    with pytest.raises(WordlightError, match=r"no tokenizer.*text tower was dropped.*load it again"):
        bare.encode_text("a cat")
    with pytest.raises(WordlightError, match=r"no text tower.*without_text.*as it was loaded"):
        bare.encode_tokens(end_ids(3))


def test_prompts_are_tokenised_and_embedded(tmp_path):
    model = tiny_clip(VIT, tokenizer=tiny_tokenizer(tmp_path))
    ids, mask = model.tokenize(["a red cat", "a mushroom"])
    assert ids.shape == mask.shape == (2, CONTEXT)
    embeds = model.encode_text(["a red cat", "a mushroom"])
    np.testing.assert_allclose(embeds, model.encode_tokens(jnp.asarray(ids)), atol=1e-5)
    np.testing.assert_allclose(model.encode_text("a mushroom")[0], embeds[1], atol=1e-5)


# Stored precision


@pytest.mark.parametrize("dtype", [jnp.bfloat16, np.float16])
def test_half_precision_weights_load_as_float32(tmp_path, model, dtype):
    save_folder(tmp_path, model, dtype=dtype)
    loaded = wl.load(tmp_path)
    for ours, theirs in zip(jax.tree.leaves(loaded.params), jax.tree.leaves(model.params), strict=True):
        assert ours.dtype == jnp.float32
        np.testing.assert_array_equal(ours, theirs.astype(dtype).astype(jnp.float32))
    assert relative_error(loaded.encode_pixels(pixels(2)), model.encode_pixels(pixels(2))) < 0.05


# Refusals


@pytest.mark.parametrize(
    ("shape", "layout"),
    [((SIZE, SIZE - 1, 3), "HWC"), ((3, SIZE, SIZE), "HWC"), ((SIZE, SIZE, 3), "CHW"), ((SIZE, 3), "CHW")],
)
def test_pixels_of_another_shape_are_refused(model, shape, layout):
    with pytest.raises(WordlightError, match=r"do not end in.*not preprocessed.*encode_image"):
        model.encode_pixels(jnp.zeros(shape), layout=layout)


def test_text_without_a_tokenizer_is_refused(model):
    with pytest.raises(WordlightError, match=r"no tokenizer.*tokenizer.json.*encode_tokens"):
        model.encode_text("a cat")


def test_ids_that_are_too_many_or_unknown_are_refused(model):
    with pytest.raises(WordlightError, match=rf"shape \(1, 9\).*at most {CONTEXT}.*model.tokenize"):
        model.encode_tokens(jnp.zeros((1, CONTEXT + 1), jnp.int32))
    with pytest.raises(WordlightError, match=rf"from 2 to {VOCAB} do not fit a vocabulary of {VOCAB}"):
        model.encode_tokens(jnp.array([[2, VOCAB]]))
    with pytest.raises(WordlightError, match="from -1"):
        model.encode_tokens(jnp.array([[-1, 3]]))


def test_another_image_size_needs_another_configuration():
    model = tiny_clip(VIT)
    wide = dataclasses.replace(
        model.config, vision=dataclasses.replace(model.config.vision, image_size=(32, 48))
    )
    assert wide.vision.grid == (2, 3)
    assert tiny_clip(wide).encode_pixels(pixels(1, size=(32, 48))).shape == (1, 24)
