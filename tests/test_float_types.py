"""Weights and computation in bfloat16 and float16, with float32 norms, softmax and embeddings."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import wordlight as wl
from wordlight.clip import float_types
from wordlight.errors import WordlightError

TOWERS = Path(__file__).parent / "golden" / "towers"
NAMES = ("hf-quick-gelu", "hf-siglip", "open-clip-coca", "open-clip-resnet")


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float16])
@pytest.mark.parametrize("name", NAMES)
def test_weights_are_of_the_asked_type_and_embeddings_stay_float32(name, dtype):
    model = wl.load(TOWERS / name, dtype=dtype)
    kinds = {leaf.dtype for leaf in jax.tree.leaves(model.params) if leaf.ndim}
    assert kinds == {jnp.dtype(dtype)}
    assert model.params["logit_scale"].dtype == jnp.float32
    images = model.encode_image(jnp.full((2, 40, 40, 3), 0.5))
    texts = model.encode_tokens(jnp.full((3, model.config.text.context_length), 5))
    assert images.dtype == texts.dtype == model.logits(images, texts).dtype == jnp.float32


@pytest.mark.parametrize("name", NAMES)
def test_embeddings_and_gradients_point_where_those_of_float32_do(name):
    image = jax.random.uniform(jax.random.key(0), (40, 50, 3))

    def gradient(dtype):
        model = wl.load(TOWERS / name, dtype=dtype)
        target = jax.random.normal(jax.random.key(1), (model.config.embed_dim,))
        return jax.value_and_grad(lambda x: model.encode_image(x) @ target)(image)

    (value, slope), (expected, plain) = gradient(jnp.bfloat16), gradient(jnp.float32)
    np.testing.assert_allclose(value, expected, atol=0.1)
    # A random ResNet magnifies rounding: whole channels cross their rectifier.
    alike = 0.9 if "resnet" in name else 0.98
    assert np.vdot(slope, plain) / np.linalg.norm(slope) / np.linalg.norm(plain) > alike


def test_the_compiled_step_of_a_bfloat16_model_has_no_float32_weights():
    model = wl.load(TOWERS / "hf-quick-gelu", dtype=jnp.bfloat16)
    text = jax.jit(lambda m, x: m.encode_image(x)).lower(model, jnp.zeros((2, 24, 24, 3))).as_text()
    assert "tensor<32x96xbf16>" in text  # query, key and value of a block
    assert "tensor<32x96xf32>" not in text


@pytest.mark.parametrize("scale", [1e-7, 1e6])
def test_a_gradient_may_be_smaller_and_larger_than_float16_can_hold(scale):
    model = wl.load(TOWERS / "hf-quick-gelu", dtype=jnp.float16)
    target = jax.random.normal(jax.random.key(1), (model.config.embed_dim,))

    def gradient(scale):
        image = jax.random.uniform(jax.random.key(0), (40, 50, 3))
        return jax.grad(lambda x: scale * (model.encode_image(x) @ target))(image)

    np.testing.assert_allclose(gradient(scale), scale * gradient(1.0), rtol=1e-3, atol=1e-6 * scale)


@pytest.mark.parametrize("dtype", [jnp.float64, jnp.int8, jnp.complex64, "bf16", None])
def test_other_types_are_refused(dtype):
    with pytest.raises(WordlightError, match=r"type .* were asked for.*bfloat16"):
        wl.load(TOWERS / "hf-quick-gelu", dtype=dtype)


def test_automatic_means_what_the_processor_multiplies(tmp_path, monkeypatch):
    model = wl.load(TOWERS / "hf-quick-gelu", dtype="auto")
    kinds = {leaf.dtype for leaf in jax.tree.leaves(model.params) if leaf.ndim}
    assert kinds == {jnp.dtype(float_types.fastest_type())}
    for flags, fastest in (("fpu avx2 avx512_bf16", jnp.bfloat16), ("fpu avx2", jnp.float32)):
        file = tmp_path / flags.replace(" ", "-")
        file.write_text(f"flags : {flags}\n")
        monkeypatch.setattr(float_types, "CPU_FLAGS", file)
        float_types._multiplies_bfloat16.cache_clear()
        assert float_types.fastest_type() == fastest
    monkeypatch.setattr(float_types, "CPU_FLAGS", tmp_path / "missing")
    float_types._multiplies_bfloat16.cache_clear()
    assert float_types.fastest_type() == jnp.float32
    monkeypatch.undo()
    float_types._multiplies_bfloat16.cache_clear()


def test_weights_go_to_the_asked_device():
    device = jax.devices()[-1]
    model = wl.load(TOWERS / "hf-quick-gelu", device=device)
    assert {d for leaf in jax.tree.leaves(model.params) for d in leaf.devices()} == {device}


def test_numbers_too_large_for_the_type_are_refused_by_name(tmp_path):
    from safetensors.numpy import load_file, save_file

    for file in (TOWERS / "hf-quick-gelu").iterdir():
        if file.suffix == ".json":
            (tmp_path / file.name).write_bytes(file.read_bytes())
    tensors = load_file(TOWERS / "hf-quick-gelu" / "model.safetensors")
    tensors["text_projection.weight"] = tensors["text_projection.weight"] * np.float32(1e6)
    save_file(tensors, tmp_path / "model.safetensors")
    wl.load(tmp_path)
    with pytest.raises(WordlightError, match=r"(?s)not finite as float16.*text_projection.*float32 or bfl"):
        wl.load(tmp_path, dtype=jnp.float16)
