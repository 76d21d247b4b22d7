"""Volume rendering: hand-worked rays, the textbook loop, gradients where the plain formulas lose them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

from wordlight.radiance import composite, volume_weights
from wordlight.radiance.volume import exclusive_sum


def weights_by_loop(densities, deltas):
    """NeRF eq. 3, one sample at a time."""
    weights, transmittance = [], 1.0
    for density, delta in zip(densities, deltas, strict=True):
        alpha = 1 - np.exp(-density * delta)
        weights.append(transmittance * alpha)
        transmittance *= 1 - alpha
    return np.array(weights)


def test_weights_equal_the_loop():
    generator = np.random.default_rng(0)
    densities, deltas = 5 * generator.random((4, 20)), 0.3 * generator.random((4, 20))
    expected = [weights_by_loop(*ray) for ray in zip(densities, deltas, strict=True)]
    found = volume_weights(jnp.asarray(densities, "f4"), jnp.asarray(deltas, "f4"))
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_two_half_opaque_samples():
    half = np.log(2.0)
    np.testing.assert_allclose(volume_weights(jnp.full(2, half), jnp.ones(2)), [0.5, 0.25], atol=1e-6)


def test_a_uniform_medium_has_the_opacity_of_beer_and_lambert():
    weights = volume_weights(jnp.full((1, 64), 0.7), jnp.full((1, 64), 2 / 64))
    np.testing.assert_allclose(weights.sum(), 1 - np.exp(-1.4), rtol=1e-5)


def test_sums_before_each_sample():
    np.testing.assert_allclose(exclusive_sum(jnp.array([[1.0, 2.0, 4.0, 8.0]])), [[0, 1, 3, 7]])


def test_colour_depth_and_opacity_of_a_worked_ray():
    colours = jnp.array([[1.0, 0, 0], [0, 1.0, 0]])
    seen = composite(jnp.array([0.5, 0.25]), colours, jnp.array([1.0, 2.0]), jnp.array(4.0))
    np.testing.assert_allclose(seen.colour, [0.5, 0.25, 0])
    np.testing.assert_allclose(seen.opacity, 0.75)
    np.testing.assert_allclose(seen.depth, 0.5 * 1 + 0.25 * 2 + 0.25 * 4)


def test_the_depth_of_an_empty_ray_is_the_far_bound():
    seen = composite(jnp.zeros(3), jnp.ones((3, 3)), jnp.array([1.0, 2.0, 3.0]), jnp.array(4.0))
    assert seen.depth == 4
    assert seen.opacity == 0


def rendered(densities, deltas, colours):
    """A number made of all that a ray gives."""
    distances = jnp.cumsum(deltas, axis=-1)
    seen = composite(volume_weights(densities, deltas), colours, distances, distances[..., -1])
    return jnp.sum(jnp.sin(seen.colour)) + jnp.sum(seen.depth**2) + jnp.sum(seen.opacity**2)


rendered_with_gradients = jax.jit(jax.value_and_grad(rendered, argnums=(0, 1, 2)))


@pytest.mark.parametrize("opaque", [0.0, 3.0, 30.0, 300.0])
def test_the_gradient_with_one_opaque_sample_among_others_equals_differences(opaque):
    densities = jnp.array([0.3, 0.8, 0.1, 0.5, 0.4]).at[2].add(opaque)
    arguments = densities, jnp.full(5, 0.5), jax.random.uniform(jax.random.key(0), (5, 3))
    check_grads(jax.jit(rendered), arguments, order=1, modes=["rev"], rtol=2e-2, atol=2e-3)


def test_the_running_product_has_no_gradient_behind_an_opaque_sample_and_ours_has():
    def running_product(alphas):
        return jnp.sum(jnp.exp(jnp.cumsum(jnp.log(1 - alphas))))

    assert not jnp.isfinite(jax.grad(running_product)(jnp.array([0.2, 1.0, 0.3]))).all()
    gradient = jax.grad(rendered)(jnp.array([0.2, 1e6, 0.3]), jnp.ones(3), jnp.ones((3, 3)))
    assert jnp.isfinite(gradient).all()
    np.testing.assert_allclose(gradient[2], 0, atol=1e-6)


@pytest.mark.parametrize("density", [0.0, 1e-38, 1e-20, 1e-6, 1.0, 1e4, 1e20, 3e38])
@pytest.mark.parametrize("delta", [0.0, 1e-20, 1e-3, 1.0, 1e3])
def test_everything_is_finite_at_every_scale(density, delta):
    arguments = jnp.full((2, 7), density), jnp.full((2, 7), delta), jnp.ones((2, 7, 3))
    value, gradients = rendered_with_gradients(*arguments)
    assert jnp.isfinite(value)
    assert all(jnp.isfinite(gradient).all() for gradient in gradients)


def test_an_empty_ray_can_fill():
    gradient = jax.grad(lambda d: volume_weights(d, jnp.ones(4)).sum())(jnp.zeros(4))
    np.testing.assert_allclose(gradient, 1)


def test_weights_are_never_negative_and_never_exceed_one_together():
    densities = jax.random.exponential(jax.random.key(0), (200, 40)) * jnp.logspace(-4, 6, 200)[:, None]
    weights = volume_weights(densities, jnp.full((200, 40), 0.1))
    assert (weights >= 0).all()
    assert (weights.sum(axis=-1) <= 1 + 1e-5).all()
