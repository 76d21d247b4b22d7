"""Safe functions: their plain values where those exist, finite values and gradients everywhere."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

from wordlight import numerics

FLOATS = np.array([0, 1e-45, 1e-38, 1e-30, 1e-12, 1e-6, 1, 1e6, 1e18, 1e30, 3e38], np.float32)
EVERYWHERE = jnp.asarray(np.concatenate([-FLOATS[::-1], FLOATS]))


def vectors():
    """Pairs of numbers from all over float32 that are not both so large that their norm is none."""
    pairs = np.stack(np.meshgrid(EVERYWHERE, EVERYWHERE), -1).reshape(-1, 2)
    return jnp.asarray(pairs[np.abs(pairs).min(axis=1) < 1e38])


def assert_finite_with_gradient(function, x):
    value, gradient = jax.vmap(jax.value_and_grad(function))(x)
    assert jnp.isfinite(value).all()
    assert jnp.isfinite(gradient).all()


def test_norms_of_ordinary_vectors_are_the_plain_ones():
    x = jax.random.normal(jax.random.key(0), (5, 4, 3))
    np.testing.assert_allclose(numerics.safe_norm(x), jnp.linalg.norm(x, axis=-1), rtol=1e-6)
    assert numerics.safe_norm(x, axis=1).shape == (5, 3)
    assert numerics.safe_norm(x, axis=1, keepdims=True).shape == (5, 1, 3)
    check_grads(jax.jit(numerics.safe_norm), (x,), order=2, modes=["rev"], rtol=1e-2, atol=1e-2)


def test_normalised_vectors_have_unit_norm_and_the_plain_gradient():
    x = jax.random.normal(jax.random.key(1), (6, 3))
    np.testing.assert_allclose(jnp.linalg.norm(numerics.safe_normalize(x), axis=-1), 1, rtol=1e-6)
    np.testing.assert_allclose(
        jax.jacrev(numerics.safe_normalize)(x[0]),
        jax.jacrev(lambda v: v / jnp.linalg.norm(v))(x[0]),
        rtol=1e-5,
    )


def test_a_zero_vector_has_norm_zero_direction_zero_and_gradient_zero():
    zero = jnp.zeros(3)
    assert numerics.safe_norm(zero) == 0
    np.testing.assert_array_equal(numerics.safe_normalize(zero), zero)
    np.testing.assert_array_equal(jax.grad(numerics.safe_norm)(zero), zero)
    np.testing.assert_array_equal(jax.jacrev(numerics.safe_normalize)(zero), jnp.zeros((3, 3)))


def test_the_plain_norm_of_a_zero_vector_has_no_gradient():
    assert jnp.isnan(jax.grad(lambda x: jnp.sqrt(jnp.sum(x**2)))(jnp.zeros(3))).all()


def test_vectors_too_long_to_square_still_have_a_norm():
    np.testing.assert_allclose(numerics.safe_norm(jnp.array([3e30, 4e30])), 5e30, rtol=1e-6)
    np.testing.assert_allclose(numerics.safe_normalize(jnp.array([3e30, 4e30])), [0.6, 0.8], rtol=1e-6)
    np.testing.assert_allclose(numerics.safe_norm(jnp.array([3e-30, 4e-30])), 5e-30, rtol=1e-6)


def test_norms_are_finite_over_the_whole_float_range():
    assert_finite_with_gradient(numerics.safe_norm, vectors())
    assert_finite_with_gradient(lambda x: numerics.safe_normalize(x)[0], vectors())


def test_half_precision_stays_half_precision():
    x = jnp.array([3.0, 4.0], jnp.bfloat16)
    assert numerics.safe_norm(x).dtype == jnp.bfloat16
    assert numerics.safe_normalize(x).dtype == jnp.bfloat16


def test_logarithm_is_plain_above_its_floor_and_flat_below():
    x = jnp.array([1e-5, 0.5, 1.0, 7.0])
    np.testing.assert_allclose(numerics.safe_log(x), jnp.log(x), rtol=1e-6)
    np.testing.assert_allclose(numerics.safe_log(jnp.array([0.0, -3.0])), np.log(1e-6), rtol=1e-6)
    assert jax.grad(numerics.safe_log)(0.0) == 0
    assert_finite_with_gradient(numerics.safe_log, EVERYWHERE)


def test_division_by_zero_is_zero():
    assert numerics.safe_divide(6.0, jnp.array(-3.0)) == -2
    assert numerics.safe_divide(6.0, jnp.array(0.0)) == 0
    assert_finite_with_gradient(lambda d: numerics.safe_divide(1.0, d), EVERYWHERE)
    assert_finite_with_gradient(lambda n: numerics.safe_divide(n, jnp.array(2.0)), EVERYWHERE)


def test_exponential_is_plain_to_the_limit_and_its_tangent_beyond():
    x = jnp.array([-50.0, 0.0, 3.0, 9.9])
    np.testing.assert_allclose(numerics.truncated_exp(x), jnp.exp(x), rtol=1e-6)
    np.testing.assert_allclose(numerics.truncated_exp(jnp.array(12.0), limit=10.0), 3 * np.exp(10), rtol=1e-6)
    assert_finite_with_gradient(numerics.truncated_exp, EVERYWHERE)


@pytest.mark.parametrize("x", [-2.0, 9.0, 14.0])
def test_the_exponential_agrees_with_differences_on_both_sides_of_the_limit(x):
    check_grads(jax.jit(numerics.truncated_exp), (jnp.array(x),), order=1, modes=["rev"], rtol=1e-2)


@pytest.mark.parametrize(
    "function",
    [
        numerics.safe_norm,
        numerics.safe_normalize,
        numerics.safe_log,
        numerics.truncated_exp,
        lambda x: numerics.safe_divide(x, jnp.ones_like(x)),
        lambda x: numerics.safe_divide(jnp.ones_like(x), x),
    ],
)
def test_what_is_not_a_number_stays_so(function):
    assert jnp.isnan(function(jnp.array([1.0, jnp.nan]))).any()
