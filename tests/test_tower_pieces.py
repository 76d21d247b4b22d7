"""The pieces of the towers, worked by hand: attention, norms, activations, patches, pooling."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

from wordlight.clip.config import TransformerConfig, VitConfig
from wordlight.clip.layers import (
    activate,
    block,
    dot_product_attention,
    init_transformer,
    layer_norm,
    transformer,
)
from wordlight.clip.resnet import average_pool, batch_norm, convolve, stored_norm
from wordlight.clip.text import end_positions
from wordlight.clip.vit import init_vit, patchify, vit_features


def relative_error(value, expected) -> float:
    return float(np.linalg.norm(np.asarray(value - expected)) / np.linalg.norm(np.asarray(expected)))


@pytest.mark.parametrize(
    ("activation", "at_one", "at_minus_three"),
    [
        ("quick_gelu", 0.845796, -0.018071),
        ("gelu", 0.841345, -0.004050),
        ("gelu_tanh", 0.841192, -0.003637),
    ],
)
def test_activations_have_their_published_values(activation, at_one, at_minus_three):
    values = activate(jnp.array([1.0, -3.0]), activation)
    np.testing.assert_allclose(values, [at_one, at_minus_three], atol=6e-7)


def test_the_first_end_token_is_pooled_or_the_largest_id():
    ids = jnp.array([[5, 9, 3, 9], [9, 1, 1, 1], [1, 2, 3, 4]])
    assert end_positions(ids, 9).tolist() == [1, 0, 0]
    assert end_positions(ids, None).tolist() == [1, 0, 3]


def test_attention_is_the_weighted_mean_of_the_values():
    query = jnp.array([[[1.0, 0.0]]])
    key = jnp.array([[[2.0, 0.0], [0.0, 5.0]]])
    value = jnp.array([[[1.0, 0.0], [0.0, 1.0]]])
    first = np.exp(2 / np.sqrt(2)) / (np.exp(2 / np.sqrt(2)) + 1)
    mixed = dot_product_attention(query, key, value, 1)
    np.testing.assert_allclose(mixed[0, 0], [first, 1 - first], rtol=1e-6)
    hidden = dot_product_attention(query, key, value, 1, mask=jnp.array([[[True, False]]]))
    np.testing.assert_allclose(hidden[0, 0], [1, 0])


def test_layer_norm_of_a_constant_is_its_bias_and_has_a_finite_gradient():
    params = {"scale": jnp.full(4, 2.0), "bias": jnp.arange(4.0)}
    np.testing.assert_allclose(layer_norm(params, jnp.full((1, 4), 7.0), 1e-5)[0], np.arange(4.0))
    np.testing.assert_allclose(
        layer_norm(params, jnp.array([[1.0, 3.0, 1.0, 3.0]]), 1e-9)[0], [-2, 3, 0, 5], rtol=1e-5
    )
    gradient = jax.grad(lambda x: layer_norm(params, x, 1e-5).sum())(jnp.full((1, 4), 7.0))
    assert np.isfinite(gradient).all()


def test_a_block_has_the_gradient_that_differences_give():
    config = TransformerConfig(width=8, layers=1, heads=2, mlp_width=12)
    params = init_transformer(jax.random.key(0), config)[0]
    x = jax.random.normal(jax.random.key(1), (1, 3, 8))
    check_grads(jax.jit(lambda x: block(params, x, config, None)), (x,), order=1, modes=["rev"], rtol=0.02)


CAUSAL = jnp.tril(jnp.ones((1, 5, 5), bool))
PADDED = jnp.arange(5)[None, None, :] < jnp.array([3, 5])[:, None, None]


@pytest.mark.parametrize(
    "mask", [None, CAUSAL, PADDED, CAUSAL & PADDED], ids=["all", "causal", "padded", "both"]
)
@pytest.mark.parametrize("read", [0, -1, jnp.array([2, 4])], ids=["first", "last", "each its own"])
def test_reading_one_token_gives_what_that_token_is_among_all(mask, read):
    config = TransformerConfig(width=8, layers=2, heads=2, mlp_width=12, layer_scale=True)
    blocks = init_transformer(jax.random.key(0), config)
    x = jax.random.normal(jax.random.key(1), (2, 5, 8))
    waves = jnp.sin(jnp.arange(16.0)).reshape(2, 8)

    def read_alone(x):
        return transformer(blocks, x, config, mask=mask, read=read)[:, 0]

    def taken_from_all(x):
        return transformer(blocks, x, config, mask=mask)[jnp.arange(2), read]

    np.testing.assert_allclose(read_alone(x), taken_from_all(x), atol=1e-5)
    alone, all_of_them = (
        jax.grad(lambda x, f=f: jnp.sum(waves * f(x)))(x) for f in (read_alone, taken_from_all)
    )
    np.testing.assert_allclose(alone, all_of_them, atol=1e-5)


def test_the_last_block_computes_the_pooled_token_alone():
    """Of a block's twelve products of width by width, eight are the MLP's and one attention's output."""

    def operations(pooling):
        config = VitConfig((32, 32), 4, TransformerConfig(64, 1, 2, 256), pooling=pooling)
        params = jax.eval_shape(lambda: init_vit(jax.random.key(0), config, 16))
        pixels = jax.ShapeDtypeStruct((1, 32, 32, 3), jnp.float32)
        lowered = jax.jit(lambda p, x: vit_features(p, x, config)).lower(params, pixels)
        return lowered.cost_analysis()["flops"]

    assert operations("token") < 0.5 * operations("average")


def test_patches_run_along_rows_and_keep_rows_columns_and_channels():
    image = jnp.arange(4 * 6 * 3, dtype=jnp.float32).reshape(1, 4, 6, 3)
    patches = patchify(image, 2)
    assert patches.shape == (1, 6, 12)
    np.testing.assert_array_equal(patches[0, 1], np.asarray(image)[0, :2, 2:4].ravel())
    np.testing.assert_array_equal(patches[0, 3], np.asarray(image)[0, 2:4, :2].ravel())
    np.testing.assert_array_equal(patchify(jnp.pad(image, ((0, 0), (0, 1), (0, 1), (0, 0))), 2), patches)


def test_positions_of_an_oblong_image_run_along_rows_behind_the_class_token():
    config = VitConfig((4, 6), 2, TransformerConfig(width=8, layers=1, heads=2, mlp_width=8))
    assert config.grid == (2, 3)
    params = init_vit(jax.random.key(0), config, 5)
    params["patch"]["weight"] = jnp.zeros_like(params["patch"]["weight"])
    blank = jnp.zeros((1, 4, 6, 3))
    features = vit_features(params, blank, config)
    # Without patch content only the positions matter, and attention does not care for the patches' order.
    swapped = params | {"positions": params["positions"][jnp.array([0, 4, 5, 6, 1, 2, 3])]}
    np.testing.assert_allclose(vit_features(swapped, blank, config), features, atol=1e-5)
    moved = params | {"positions": params["positions"][jnp.array([1, 0, 2, 3, 4, 5, 6])]}
    assert relative_error(vit_features(moved, blank, config), features) > 1e-2


def test_pooling_and_convolution_by_hand():
    x = jnp.arange(9.0).reshape(1, 3, 3, 1)
    np.testing.assert_allclose(average_pool(x, 2).ravel(), [(0 + 1 + 3 + 4) / 4])
    box = jnp.ones((3, 3, 1, 1))
    np.testing.assert_allclose(convolve(box, x)[0, ..., 0], [[8, 15, 12], [21, 36, 27], [20, 33, 24]])
    np.testing.assert_allclose(convolve(box, x, stride=2)[0, ..., 0], [[8, 12], [20, 24]])


def test_batch_norm_with_stored_and_with_own_statistics():
    norm = {
        "scale": jnp.array([2.0]),
        "bias": jnp.array([1.0]),
        "mean": jnp.array([3.0]),
        "variance": jnp.array([4.0]),
    }
    x = jnp.array([1.0, 5.0]).reshape(2, 1, 1, 1)
    np.testing.assert_allclose(stored_norm(norm, x, 0.0).ravel(), [-1, 3])
    np.testing.assert_allclose(
        batch_norm(norm | {"mean": jnp.array([9.0])}, x, 0.0).ravel(), [-1, 3], rtol=1e-6
    )
