"""A voxel field under a lamp: where its surface looks, how bright it is, and what it is without colours."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from wordlight.radiance.fields import DensityConfig
from wordlight.radiance.grids import VoxelConfig, VoxelField
from wordlight.radiance.lighting import PLAIN, LitField, random_lamp, vertex_normals

RESOLUTION = 17
UP = jnp.array([0.0, 0.0, 1.0])
RED = jnp.array([4.0, -4.0, -4.0])


def ball() -> VoxelField:
    """A red ball about the origin: raw density falls with the distance."""
    config = VoxelConfig(RESOLUTION, density=DensityConfig(blob_strength=0.0))
    field = VoxelField(jnp.zeros((RESOLUTION, RESOLUTION, RESOLUTION, 4)), config)
    distance = jnp.linalg.norm(field.vertices(), axis=-1, keepdims=True)
    colours = jnp.broadcast_to(RED, (*distance.shape[:3], 3))
    return VoxelField(jnp.concatenate([6 - 12 * distance, colours], axis=-1), config)


def colour_at(field: LitField, point: list[float]) -> np.ndarray:
    points = jnp.array([point])
    return np.asarray(field(points, jnp.zeros_like(points)).colours[0])


def test_normals_of_a_ball_point_away_from_its_centre():
    field = ball()
    normals, vertices = vertex_normals(field), field.vertices()
    distance = jnp.linalg.norm(vertices, axis=-1)
    middle = (distance > 0.3) & (distance < 0.7)
    outwards = jnp.sum(normals * vertices, axis=-1) / distance
    assert outwards[middle].min() > 0.98


def test_the_lamp_lights_the_side_it_stands_on():
    lit = LitField(ball(), UP, jnp.float32(0.25))
    top, bottom = colour_at(lit, [0, 0, 0.5]), colour_at(lit, [0, 0, -0.5])
    albedo = np.asarray(jax.nn.sigmoid(RED))
    np.testing.assert_allclose(top, albedo, rtol=0.03)
    np.testing.assert_allclose(bottom, 0.25 * albedo, rtol=1e-5)


def test_with_all_light_from_everywhere_nothing_is_shaded():
    lit = LitField(ball(), UP, jnp.float32(1.0))
    np.testing.assert_allclose(colour_at(lit, [0, 0, -0.5]), jax.nn.sigmoid(RED), rtol=1e-5)


def test_without_texture_only_the_light_is_left():
    plain = LitField(ball(), UP, jnp.float32(0.25), jnp.float32(0.0))
    np.testing.assert_allclose(colour_at(plain, [0, 0, -0.5]), np.full(3, 0.25 * PLAIN), rtol=1e-5)


def test_densities_are_those_of_the_field_itself():
    points = jax.random.uniform(jax.random.key(0), (20, 3), minval=-1, maxval=1)
    lit = LitField(ball(), UP, jnp.float32(0.5), jnp.float32(0.0))
    expected = ball()(points, jnp.zeros_like(points)).densities
    np.testing.assert_allclose(lit(points, jnp.zeros_like(points)).densities, expected, rtol=1e-6)


@pytest.mark.parametrize("value", [-80.0, 0.0, 80.0])
def test_gradients_are_finite_on_flat_full_and_empty_fields(value):
    config = VoxelConfig(5)
    points = jax.random.uniform(jax.random.key(0), (20, 3), minval=-1, maxval=1)

    def total(values):
        sample = LitField(VoxelField(values, config), UP, jnp.float32(0.5))(points, jnp.zeros_like(points))
        return jnp.sum(sample.colours) + jnp.sum(sample.densities)

    assert np.isfinite(jax.grad(total)(jnp.full((5, 5, 5, 4), value))).all()


def test_lamps_are_unit_vectors_in_range_and_mostly_before_the_object():
    keys = jax.random.split(jax.random.key(0), 200)
    camera = jnp.array([3.0, 0.0, 0.5])
    lamps, ambient = jax.vmap(lambda key: random_lamp(key, camera, ambient=(0.2, 0.4)))(keys)
    np.testing.assert_allclose(jnp.linalg.norm(lamps, axis=-1), 1, atol=1e-5)
    assert ambient.min() >= 0.2
    assert ambient.max() <= 0.4
    assert np.mean(np.asarray(lamps @ camera) > 0) > 0.7
