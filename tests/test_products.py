"""Products in a chosen type: float32 sums, and gradients that are products of that type as well."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import wordlight as wl
from wordlight.clip.products import contract, matrix_product

KEYS = jax.random.split(jax.random.key(0), 3)
X, WEIGHT = jax.random.normal(KEYS[0], (2, 5, 64)), jax.random.normal(KEYS[1], (64, 48))
HALVES = [jnp.bfloat16, jnp.float16]


def rounded(x, dtype):
    return x.astype(dtype).astype(jnp.float32)


@pytest.mark.parametrize("dtype", HALVES)
def test_a_product_is_that_of_the_rounded_operands_with_float32_sums(dtype):
    product = matrix_product(X, WEIGHT.astype(dtype))
    assert product.dtype == jnp.float32
    np.testing.assert_allclose(product, rounded(X, dtype) @ rounded(WEIGHT, dtype), atol=1e-4)


def test_sums_of_many_small_numbers_do_not_stop_growing():
    """In bfloat16, adding 1 to 256 changes nothing."""
    assert matrix_product(jnp.ones((1, 4096)), jnp.ones((4096, 1), jnp.bfloat16)) == 4096


@pytest.mark.parametrize("dtype", HALVES)
def test_one_row_is_multiplied_like_a_row_of_many(dtype):
    weight = WEIGHT.astype(dtype)
    np.testing.assert_allclose(
        matrix_product(X[:1, :1], weight), matrix_product(X, weight)[:1, :1], rtol=1e-5
    )
    gradients = [jax.grad(lambda x: jnp.sin(matrix_product(x, weight)).sum())(x) for x in (X[0, :1], X[0])]
    np.testing.assert_allclose(gradients[0], gradients[1][:1], atol=1e-5)


def test_the_weight_is_not_widened_for_one_row():
    for rows in (1, 2):
        compiled = jax.jit(matrix_product).lower(X[0, :rows], WEIGHT.astype(jnp.bfloat16)).compile()
        assert "f32[64,48]" not in compiled.as_text()


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize(
    ("axes", "x", "y"),
    [
        ("ni,io->no", X[0], WEIGHT),
        ("bqhk,bnhk->bhqn", X.reshape(2, 5, 4, 16), jnp.flip(X).reshape(2, 5, 4, 16)),
        ("bhqn,bnhk->bqhk", jnp.ones((2, 4, 3, 5)), X.reshape(2, 5, 4, 16)),
    ],
)
def test_gradients_are_those_of_the_rounded_operands(axes, x, y, dtype):
    shape = jnp.einsum(axes, x, y).shape
    waves = jnp.sin(jnp.arange(np.prod(shape))).reshape(shape)

    def loss(x, y):
        return jnp.sum(waves * contract(axes, x, y, dtype=dtype))

    def plain(x, y):
        kept = waves if dtype == jnp.float16 else rounded(waves, dtype)
        return jnp.sum(kept * jnp.einsum(axes, x, y))

    ours = jax.grad(loss, (0, 1))(x, y)
    expected = jax.grad(plain, (0, 1))(rounded(x, dtype), rounded(y, dtype))
    for mine, theirs in zip(ours, expected, strict=True):
        np.testing.assert_allclose(mine, theirs, atol=1e-4 * np.abs(theirs).max())


def test_gradients_have_the_types_of_their_operands():
    weight = WEIGHT.astype(jnp.bfloat16)
    pull_x, pull_weight = jax.grad(lambda x, w: matrix_product(x, w).sum(), (0, 1))(X, weight)
    assert (pull_x.dtype, pull_weight.dtype) == (jnp.float32, jnp.bfloat16)


@pytest.mark.parametrize("transform", [jax.jit, jax.vmap, lambda f: jax.vmap(jax.grad(lambda x: f(x).sum()))])
def test_transformations_change_nothing(transform):
    def run(x):
        return matrix_product(x, WEIGHT.astype(jnp.bfloat16))

    alone = jnp.stack([transform(run)(X[i : i + 1])[0] for i in range(2)])
    np.testing.assert_allclose(transform(run)(X), alone, rtol=1e-6)


def test_the_weights_of_a_bfloat16_tower_are_multiplied_in_bfloat16():
    """One operand of float32 would make the whole product run at its speed."""
    model = wl.load("demo", dtype=jnp.bfloat16).without_text()
    step = jax.grad(lambda pixels, model: model.encode_pixels(pixels).sum())
    compiled = jax.jit(step).lower(jnp.zeros((2, 64, 64, 3)), model).as_text()
    matrices = re.findall(
        r"dot_general .*\(tensor<\d+x\d+x([a-z]+\d+)>, tensor<\d+x\d+x([a-z]+\d+)>\)", compiled
    )
    assert len(matrices) > 30
    # The projection of one vector an image is left in float32.
    assert sum(kinds != ("bf16", "bf16") for kinds in matrices) <= 2
