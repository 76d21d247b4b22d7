"""Penalties on hand-worked cases, against slow loops, and at extremes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

from wordlight.radiance import (
    annealed,
    distortion,
    half_opacity,
    opacity_target,
    orientation,
    roughness,
    total_variation,
)


def test_the_opacity_target_counts_each_image_up_to_its_target():
    opacity = jnp.stack([jnp.full((4, 6), 0.7), jnp.full((4, 6), 0.05)])
    np.testing.assert_allclose(opacity_target(opacity, 0.9), [-0.3, -0.9], rtol=1e-5)
    gradient = jax.grad(lambda o: opacity_target(o, 0.9).sum())(opacity)
    np.testing.assert_allclose(gradient[0], 1 / 24, rtol=1e-5)
    np.testing.assert_array_equal(gradient[1], 0)


@pytest.mark.parametrize(("step", "value"), [(0, 0.5), (250, 0.7), (500, 0.9), (9999, 0.9), (-3, 0.5)])
def test_targets_are_annealed_linearly(step, value):
    np.testing.assert_allclose(annealed(step), value, rtol=1e-6)
    np.testing.assert_allclose(jax.jit(annealed)(step), value, rtol=1e-6)


def test_annealing_over_no_steps_is_at_its_end():
    assert annealed(1, start=0.0, end=1.0, steps=0) == 1


def distortion_by_loop(weights, edges):
    """mip-NeRF 360 eq. 15, pair by pair."""
    middles, lengths = (edges[1:] + edges[:-1]) / 2, np.diff(edges)
    samples = list(zip(weights, middles, strict=True))
    pairs = sum(w * v * abs(m - n) for w, m in samples for v, n in samples)
    return pairs + (weights**2 * lengths).sum() / 3


def test_distortion_equals_the_double_loop():
    generator = np.random.default_rng(0)
    weights = generator.dirichlet(np.ones(12), 3)
    edges = 2 + np.sort(generator.random((3, 13)), axis=1)
    expected = [distortion_by_loop(w, e) for w, e in zip(weights, edges, strict=True)]
    found = distortion(jnp.asarray(weights, "f4"), jnp.asarray(edges, "f4"))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)


def test_distortion_prefers_one_surface_to_two_and_has_none_for_an_empty_ray():
    edges = jnp.linspace(0, 1, 11)
    one, two = jnp.zeros((2, 10)).at[0, 3].set(1.0).at[1, 3].set(0.5).at[1, 8].set(0.5)
    np.testing.assert_allclose(distortion(one, edges), 0.1 / 3, rtol=1e-4)
    np.testing.assert_allclose(distortion(two, edges), 2 * 0.25 * 0.5 + 2 * 0.25 * 0.1 / 3, rtol=1e-4)
    assert distortion(jnp.zeros(10), edges) == 0


def test_total_variation_of_a_ramp_and_of_a_constant():
    ramp = jnp.broadcast_to(3.0 * jnp.arange(5)[:, None, None, None], (5, 5, 5, 2))
    # Four of five vertices have a next neighbour along x, three away in value.
    np.testing.assert_allclose(total_variation(ramp), 3 * 4 / 5, rtol=1e-3)
    np.testing.assert_allclose(total_variation(jnp.full((4, 4, 4, 1), 7.0)), 0, atol=1e-9)
    np.testing.assert_allclose(roughness(ramp), 9 / 3, rtol=1e-5)
    assert roughness(jnp.full((4, 4, 4, 1), 7.0)) == 0


def test_a_face_towards_the_camera_costs_nothing_and_one_away_its_square():
    normals = jnp.array([[[0.0, 0.0, -1.0], [0.0, 0.0, 0.5], [1.0, 0.0, 0.0]]])
    found = orientation(jnp.array([[0.5, 0.4, 0.1]]), normals, jnp.array([[0.0, 0.0, 1.0]]))
    np.testing.assert_allclose(found, [0.4 * 0.25], rtol=1e-6)


def test_half_opaque_pixels_cost_one_bit_and_clear_or_solid_ones_nothing():
    found = half_opacity(jnp.array([0.0, 0.11, 0.5, 1.0]))
    np.testing.assert_allclose(found, [0, 0.499916, 1, 0], atol=1e-4)


def test_no_penalty_on_half_opacity_pushes_harder_than_twenty():
    slope = jax.vmap(jax.grad(half_opacity))(jnp.array([0.0, 1e-30, 1e-6, 0.5, 1 - 1e-6, 1.0]))
    assert jnp.isfinite(slope).all()
    assert jnp.abs(slope).max() < 22
    assert slope[3] == 0


def cases():
    keys = jax.random.split(jax.random.key(0), 3)
    weights = jax.random.uniform(keys[0], (3, 6)) / 6
    edges = jnp.sort(jax.random.uniform(keys[1], (3, 7)), axis=-1)
    vectors = jax.random.normal(keys[2], (3, 6, 3))
    grid = jax.random.normal(keys[0], (4, 3, 5, 2))
    opacity = jax.random.uniform(keys[1], (2, 3, 4), minval=0.1, maxval=0.9)
    return {
        "opacity_target": (lambda o: opacity_target(o, 0.95), (opacity,)),
        "distortion": (distortion, (weights, edges)),
        "total_variation": (total_variation, (grid,)),
        "roughness": (roughness, (grid,)),
        "orientation": (orientation, (weights, vectors, vectors[:, 0])),
        "half_opacity": (half_opacity, (opacity,)),
    }


@pytest.mark.parametrize("name", cases())
def test_gradients_equal_differences(name):
    function, arguments = cases()[name]
    check_grads(jax.jit(function), arguments, order=1, modes=["rev"], rtol=2e-2, atol=2e-3)


@pytest.mark.parametrize("name", cases())
@pytest.mark.parametrize("scale", [0.0, 1e-20, 1e-6, 1.0])
def test_values_and_gradients_are_finite_at_every_scale(name, scale):
    function, arguments = cases()[name]
    arguments = tuple(scale * argument for argument in arguments)
    every = tuple(range(len(arguments)))
    value, gradients = jax.jit(jax.value_and_grad(lambda *a: jnp.sum(function(*a)), every))(*arguments)
    assert jnp.isfinite(value)
    assert all(jnp.isfinite(gradient).all() for gradient in gradients)
