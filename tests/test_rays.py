"""Rays, the scene's box, and the places of samples."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

from wordlight.radiance import (
    Camera,
    Rays,
    camera_rays,
    importance_distances,
    intersect_ball,
    intersect_box,
    look_at,
    orbit,
    segment_edges,
    stratified_distances,
)


def ray(origin, direction):
    direction = np.asarray(direction, np.float32)
    return Rays(jnp.asarray(origin, jnp.float32), jnp.asarray(direction / np.linalg.norm(direction)))


def is_empty(near, far):
    return bool(far - near < 1e-3 * (1 + near))


# Rays of a camera


def test_pixel_centres_are_at_half_integers_and_row_zero_is_the_top():
    camera = Camera(look_at(jnp.array([0.0, -3.0, 0.0]), jnp.zeros(3)), jnp.array(2.0), 2, 2)
    rays = camera_rays(camera)
    # Looking along +y, right is +x: the four centres are half a pixel from the axis at two pixels' distance.
    expected = np.array([[[-1, 4, 1], [1, 4, 1]], [[-1, 4, -1], [1, 4, -1]]]) / np.sqrt(18)
    np.testing.assert_allclose(rays.directions, expected, atol=1e-6)
    np.testing.assert_allclose(rays.origins, np.broadcast_to([0, -3, 0], (2, 2, 3)), atol=1e-6)


def test_a_batch_of_cameras_gives_a_batch_of_unit_rays():
    rays = camera_rays(orbit(jnp.linspace(0, 6, 6).reshape(2, 3), 0.4, height=5, width=7))
    assert rays.origins.shape == rays.directions.shape == (2, 3, 5, 7, 3)
    np.testing.assert_allclose(jnp.linalg.norm(rays.directions, axis=-1), 1, atol=1e-6)


def test_points_along_a_ray():
    np.testing.assert_allclose(ray([1, 0, 0], [0, 0, 1]).at(jnp.array([0.0, 2.5])), [[1, 0, 0], [1, 0, 2.5]])


# The box


@pytest.mark.parametrize(
    ("origin", "direction", "near", "far"),
    [
        ([-3, 0, 0], [1, 0, 0], 2, 4),
        ([0.5, 0.25, -2], [0, 0, 1], 1, 3),
        ([0, 0, 0], [1, 0, 0], 0, 1),
        ([0.5, 0, 0], [1, 1, 0], 0, 0.5 * np.sqrt(2)),
        ([-2, -2, -2], [1, 1, 1], np.sqrt(3), 3 * np.sqrt(3)),
        ([1, 0, 0], [-1, 0, 0], 0, 2),
    ],
)
def test_rays_that_hit_the_box(origin, direction, near, far):
    np.testing.assert_allclose(intersect_box(ray(origin, direction)), (near, far), atol=1e-5)


@pytest.mark.parametrize(
    ("origin", "direction"),
    [
        ([-3, 2, 0], [1, 0, 0]),  # beside the box, parallel to a face
        ([-3, 1, 0], [1, 0, 0]),  # in the plane of a face
        ([-3, -1, 0], [1, 0, 0]),  # in the plane of the opposite face
        ([1, 0, 0], [0, 1, 0]),  # starts on a face and stays on it
        ([-3, 1, 1], [1, 0, 0]),  # along an edge
        ([-3, 3, 0], [1, -0.1, 0]),  # past the box
        ([3, 0, 0], [1, 0, 0]),  # the box is behind
        ([1, 0, 0], [1, 0, 0]),  # leaves from a face
        ([2, 0, 0], [-1, 1, 0]),  # touches an edge
        ([1e20, 0, 0], [0, 1, 0]),  # far away
    ],
)
def test_rays_that_miss_the_box_have_an_empty_interval_outside_it(origin, direction):
    missing = ray(origin, direction)
    near, far = intersect_box(missing)
    assert jnp.isfinite(jnp.stack([near, far])).all()
    assert 0 <= near < far
    assert is_empty(near, far)
    assert jnp.max(jnp.abs(missing.at(near[None]))) > 1 - 1e-5


@pytest.mark.parametrize("half_extent", [0.1, 1.0, 50.0])
def test_the_points_of_an_interval_are_in_the_box(half_extent):
    origins, directions = jax.random.normal(jax.random.key(0), (2, 500, 3))
    rays = Rays(2 * half_extent * origins, directions / jnp.linalg.norm(directions, axis=-1, keepdims=True))
    near, far = intersect_box(rays, half_extent=half_extent)
    hit = far - near > 1e-3 * (1 + near)
    assert 50 < hit.sum() < 450
    inside = jnp.abs(rays.at((near + far)[:, None] / 2)).max(axis=(-1, -2)) <= half_extent
    np.testing.assert_array_equal(inside[hit], True)


def test_hits_and_misses_are_those_of_dense_marching():
    origins, directions = jax.random.normal(jax.random.key(1), (2, 200, 3))
    rays = Rays(2 * origins, directions / jnp.linalg.norm(directions, axis=-1, keepdims=True))
    inside = (jnp.abs(rays.at(jnp.broadcast_to(jnp.linspace(0, 12, 2401), (200, 2401)))) < 1).all(axis=-1)
    near, far = intersect_box(rays)
    np.testing.assert_allclose(jnp.where(inside.sum(1) > 2, far - near, 0), inside.sum(1) * 0.005, atol=0.011)


def awkward_rays():
    values = (-3.0, -1.0, -1e-7, 0.0, 0.5, 1.0, 1e6)
    slopes = (-1.0, -1e-5, -1e-7, 0.0, 1e-20, 1e-6, 1.0)
    origins = np.stack(np.meshgrid(values, values, [0.0, 1.0]), -1).reshape(-1, 3)
    directions = np.stack(np.meshgrid(slopes, slopes, slopes), -1).reshape(-1, 3)
    directions = directions[np.linalg.norm(directions, axis=1) > 0.5]
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    both = np.repeat(origins, len(directions), 0), np.tile(directions, (len(origins), 1))
    return Rays(*(jnp.asarray(x, jnp.float32) for x in both))


def test_every_awkward_ray_has_finite_bounds_and_gradients():
    rays = awkward_rays()
    near, far = intersect_box(rays)
    assert jnp.isfinite(near).all()
    assert jnp.isfinite(far).all()
    assert (near >= 0).all()
    assert (far > near).all()
    gradient = jax.grad(lambda rays: sum(jnp.sum(bound) for bound in intersect_box(rays)))(rays)
    assert all(jnp.isfinite(leaf).all() for leaf in jax.tree.leaves(gradient))


def test_the_gradient_of_the_bounds_equals_differences():
    rays = ray([-3, 0.2, 0.1], [1, 0.1, -0.05])
    bounds = jax.jit(lambda r: jnp.stack(intersect_box(r)))
    check_grads(bounds, (rays,), order=1, modes=["rev"], rtol=1e-2, atol=1e-2)


# Samples


def test_samples_without_a_key_are_the_middles_of_equal_parts():
    distances = stratified_distances(None, jnp.array([1.0, 0.0]), jnp.array([3.0, 0.4]), 4)
    np.testing.assert_allclose(distances, [[1.25, 1.75, 2.25, 2.75], [0.05, 0.15, 0.25, 0.35]], atol=1e-6)


def test_random_samples_stay_in_their_parts_and_fill_them():
    near, far = jnp.full(2000, 2.0), jnp.full(2000, 4.0)
    distances = stratified_distances(jax.random.key(0), near, far, 5)
    part = (distances - 2) / 0.4 - jnp.arange(5)[None, :]
    assert part.min() > -1e-5
    assert part.max() < 1 + 1e-5
    np.testing.assert_allclose(part.mean(axis=0), 0.5, atol=0.03)
    np.testing.assert_allclose(part.var(axis=0), 1 / 12, atol=0.01)


def test_the_same_key_gives_the_same_samples_and_another_key_others():
    def draw(seed):
        return stratified_distances(jax.random.key(seed), jnp.zeros(3), jnp.ones(3), 8)

    np.testing.assert_array_equal(draw(0), draw(0))
    assert jnp.abs(draw(0) - draw(1)).max() > 0.01


def test_segments_fill_the_interval_whatever_the_jitter():
    near, far = jnp.array([0.0, 1.0]), jnp.array([2.0, 1.5])
    distances = stratified_distances(jax.random.key(0), near, far, 16)
    edges = segment_edges(distances, near, far)
    assert edges.shape == (2, 17)
    assert (jnp.diff(edges) >= 0).all()
    np.testing.assert_allclose(jnp.diff(edges).sum(axis=-1), far - near, rtol=1e-5)


def importance_by_loop(edges, weights, numbers):
    """Inverse-transform sampling, one number at a time."""
    probabilities = (weights + 1e-5) / (weights + 1e-5).sum()
    places = []
    for number in numbers:
        below, index = 0.0, 0
        while index < len(weights) - 1 and number >= below + probabilities[index]:
            below, index = below + probabilities[index], index + 1
        inside = min((number - below) / probabilities[index], 1.0)
        places.append(edges[index] + inside * (edges[index + 1] - edges[index]))
    return np.array(places)


def test_importance_samples_equal_the_loop():
    generator = np.random.default_rng(0)
    weights, edges = generator.random(9), np.sort(generator.random(10)) * 3
    found = importance_distances(None, jnp.asarray(edges, "f4"), jnp.asarray(weights, "f4"), 50)
    np.testing.assert_allclose(
        found, importance_by_loop(edges, weights, (np.arange(50) + 0.5) / 50), atol=1e-4
    )


def test_importance_samples_follow_the_weights():
    edges = jnp.array([0.0, 1.0, 3.0, 4.0])
    weights = jnp.array([0.25, 0.0, 0.75])
    distances = importance_distances(jax.random.key(0), edges, weights, 4000)
    shares, _ = np.histogram(distances, edges)
    np.testing.assert_allclose(shares / 4000, weights, atol=2e-3)


def test_importance_samples_of_an_empty_ray_are_spread_over_the_bins():
    distances = importance_distances(None, jnp.linspace(0, 2, 5), jnp.zeros(4), 8)
    np.testing.assert_allclose(distances, (np.arange(8) + 0.5) / 4, atol=1e-5)


@pytest.mark.parametrize("scale", [0.0, 1e-30, 1e-5, 1.0, 1e30])
def test_importance_samples_are_sorted_finite_and_within_the_edges(scale):
    weights = scale * jax.random.uniform(jax.random.key(0), (20, 32)) ** 8
    edges = jnp.sort(jax.random.uniform(jax.random.key(1), (20, 33)), axis=-1)
    distances = importance_distances(jax.random.key(2), edges, weights, 64)
    assert jnp.isfinite(distances).all()
    assert (jnp.diff(distances, axis=-1) >= -1e-6).all()
    assert (distances >= edges[:, :1]).all()
    assert (distances <= edges[:, -1:]).all()


def test_no_gradient_passes_through_the_places_of_importance_samples():
    gradient = jax.grad(lambda w: importance_distances(None, jnp.linspace(0, 1, 5), w, 8).sum())(jnp.ones(4))
    np.testing.assert_array_equal(gradient, 0)


# The ball


def test_a_ray_through_the_middle_of_a_ball_meets_it_at_its_radius():
    near, far = intersect_ball(Rays(jnp.array([0.0, 0.0, 3.0]), jnp.array([0.0, 0.0, -1.0])), radius=0.5)
    assert (float(near), float(far)) == pytest.approx((2.5, 3.5))


def test_a_ray_beside_the_middle_meets_a_shorter_chord():
    near, far = intersect_ball(Rays(jnp.array([0.3, 0.0, 3.0]), jnp.array([0.0, 0.0, -1.0])), radius=0.5)
    assert (float(near), float(far)) == pytest.approx((2.6, 3.4))


def test_from_inside_a_ball_a_ray_starts_at_its_origin():
    near, far = intersect_ball(Rays(jnp.array([0.2, 0.0, 0.0]), jnp.array([1.0, 0.0, 0.0])), radius=0.5)
    assert (float(near), float(far)) == pytest.approx((0.0, 0.3))


@pytest.mark.parametrize(
    ("origin", "closest"),
    [((0.6, 0.0, 3.0), 3.0), ((0.5, 0.0, 3.0), 3.0), ((0.0, 0.0, -3.0), 0.0)],
    ids=["beside", "grazing", "behind"],
)
def test_a_ray_that_misses_a_ball_has_an_empty_interval(origin, closest):
    near, far = intersect_ball(Rays(jnp.array(origin), jnp.array([0.0, 0.0, -1.0])), radius=0.5)
    assert float(near) == pytest.approx(closest)
    assert 0 < float(far - near) < 1e-4


@pytest.mark.parametrize("origin", [(0.3, 0.1, 3.0), (0.5, 0.0, 3.0), (0.0, 0.0, 0.5), (0.0, 0.0, 0.0)])
def test_the_bounds_of_a_ball_have_finite_gradients(origin):
    def length(origin):
        near, far = intersect_ball(Rays(origin, jnp.array([0.0, 0.0, -1.0])), radius=0.5)
        return near * far

    assert jnp.isfinite(jax.grad(length)(jnp.array(origin))).all()
