"""Encodings against their formulas."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

from wordlight.radiance import frequency_encoding, grid_lookup, spherical_harmonics
from wordlight.radiance.encodings import grid_entries

# Frequencies


def test_frequencies_are_sines_and_cosines_of_doubling_angles():
    encoded = frequency_encoding(jnp.array([0.5, -0.25, 1.0]), 2)
    point = np.array([0.5, -0.25, 1.0])
    angles = np.concatenate([np.pi * point, 2 * np.pi * point])
    np.testing.assert_allclose(encoded, np.concatenate([point, np.sin(angles), np.cos(angles)]), atol=1e-5)


def test_no_frequencies_leave_the_points():
    points = jax.random.normal(jax.random.key(0), (2, 5, 3))
    np.testing.assert_array_equal(frequency_encoding(points, 0), points)
    assert frequency_encoding(points, 6).shape == (2, 5, 39)


# Spherical harmonics


def sphere(count):
    """Points spread evenly over the unit sphere (a Fibonacci lattice)."""
    index = np.arange(count) + 0.5
    z, turn = 1 - 2 * index / count, np.pi * (1 + np.sqrt(5)) * index
    ring = np.sqrt(1 - z**2)
    return jnp.asarray(np.stack([ring * np.cos(turn), ring * np.sin(turn), z], -1), jnp.float32)


def test_spherical_harmonics_are_orthonormal():
    values = spherical_harmonics(sphere(20_000), 3)
    products = 4 * np.pi * np.asarray(values).T @ np.asarray(values) / 20_000
    np.testing.assert_allclose(products, np.eye(16), atol=1e-3)


def test_spherical_harmonics_of_one_degree_have_a_constant_sum_of_squares():
    values = np.asarray(spherical_harmonics(sphere(50), 3))
    for degree in range(4):
        squares = (values[:, degree**2 : (degree + 1) ** 2] ** 2).sum(axis=1)
        np.testing.assert_allclose(squares, (2 * degree + 1) / (4 * np.pi), rtol=1e-5)


def test_lower_degrees_are_the_front_of_higher_ones():
    directions = sphere(9)
    np.testing.assert_array_equal(
        spherical_harmonics(directions, 1), spherical_harmonics(directions, 3)[:, :4]
    )


@pytest.mark.parametrize("degree", [-1, 4])
def test_other_degrees_are_refused(degree):
    with pytest.raises(ValueError, match=rf"degree {degree} were asked for.*Pass a degree from 0 to 3"):
        spherical_harmonics(jnp.ones(3), degree)


# Grids


def interpolated(table, point, resolution):
    """Trilinear interpolation in a dense grid, vertex by vertex."""
    position = (np.clip(point, -1, 1) + 1) / 2 * (resolution - 1)
    cell = np.minimum(position.astype(int), resolution - 2)
    total = 0.0
    for corner in itertools.product((0, 1), repeat=3):
        vertex = cell + corner
        weight = np.prod(np.where(corner, position - cell, 1 - (position - cell)))
        total = total + weight * table[(vertex[0] * resolution + vertex[1]) * resolution + vertex[2]]
    return total


def test_a_dense_lookup_equals_the_loop_inside_and_outside():
    table = jax.random.normal(jax.random.key(0), (5**3, 2))
    points = jax.random.uniform(jax.random.key(1), (40, 3), minval=-1.2, maxval=1.2)
    expected = [interpolated(np.asarray(table), point, 5) for point in np.asarray(points)]
    np.testing.assert_allclose(grid_lookup(table, points, 5), expected, atol=1e-5)


def test_vertices_return_their_own_rows():
    table = jnp.arange(27.0)[:, None]
    axis = jnp.linspace(-1, 1, 3)
    vertices = jnp.stack(jnp.meshgrid(axis, axis, axis, indexing="ij"), axis=-1)
    np.testing.assert_allclose(grid_lookup(table, vertices, 3)[..., 0].ravel(), np.arange(27), atol=1e-5)


@pytest.mark.parametrize("entries", [64, 50])
def test_dense_and_hashed_lookups_of_a_constant_are_that_constant(entries):
    points = jax.random.uniform(jax.random.key(0), (30, 3), minval=-1, maxval=1)
    np.testing.assert_allclose(grid_lookup(jnp.full((entries, 2), 0.3), points, 4), 0.3, rtol=1e-6)


def test_a_hashed_vertex_reads_the_row_of_the_published_hash():
    entries, resolution = 1000, 33
    x, y, z = 7, 20, 31
    row = (x ^ (y * 2654435761 % 2**32) ^ (z * 805459861 % 2**32)) % entries
    vertex = jnp.array([x, y, z]) / 16 - 1
    found = grid_lookup(jnp.arange(float(entries))[:, None], vertex, resolution)
    np.testing.assert_allclose(found, row, atol=1e-2)


def test_hashed_vertices_are_spread_over_the_table():
    axis = jnp.linspace(-1, 1, 24)
    vertices = jnp.stack(jnp.meshgrid(axis, axis, axis, indexing="ij"), axis=-1)
    touched = jax.grad(lambda table: grid_lookup(table, vertices, 24).sum())(jnp.zeros((4096, 1)))
    assert (touched > 0).mean() > 0.9


@pytest.mark.parametrize("entries", [64, 20])
def test_the_gradients_of_a_lookup_equal_differences(entries):
    table = jax.random.normal(jax.random.key(0), (entries, 2))
    points = jnp.array([[0.1, -0.5, 0.55], [0.8, 0.9, -0.9]])
    check_grads(
        jax.jit(lambda t, p: grid_lookup(t, p, 4)),
        (table, points),
        order=1,
        modes=["rev"],
        rtol=1e-2,
        atol=1e-2,
    )


def test_points_that_are_no_numbers_or_far_away_read_inside_the_table():
    points = jnp.array([[jnp.inf, -jnp.inf, 1e30], [1.0, 1.0, 1.0], [-1.0, -1.0, -1.0]])
    table = jnp.arange(27.0)[:, None]
    np.testing.assert_allclose(grid_lookup(table, points, 3)[:, 0], [20, 26, 0], atol=1e-4)
    assert jnp.isnan(grid_lookup(table, jnp.full((1, 3), jnp.nan), 3)).all()


def test_a_level_is_dense_where_it_fits():
    assert grid_entries(16, 5000) == 4096
    assert grid_entries(18, 5000) == 5000
