"""Rendering only what can show the object: the same picture for fewer rays."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from wordlight.radiance import DensityConfig, VoxelConfig, VoxelField, camera_rays, orbit, render_rays
from wordlight.radiance.fields import density
from wordlight.radiance.lighting import LitField
from wordlight.radiance.pyramid import PyramidConfig
from wordlight.train.config import CameraConfig, RunConfig
from wordlight.train.step import pixels_of_ball, render_ball

BOUND = DensityConfig(bias=1.0, bound=0.7)
CONFIG = RunConfig(
    "a red car", cameras=CameraConfig(size=40, samples=200), field=PyramidConfig(density=BOUND)
)
UNBOUND = replace(CONFIG, field=PyramidConfig(density=replace(BOUND, bound=None)))


def lit(config: RunConfig) -> LitField:
    voxels = VoxelConfig(8, noise=2.0, density=config.field.density)
    return LitField(VoxelField.init(jax.random.key(0), voxels), jnp.array([0.0, 0.0, 1.0]), jnp.float32(0.5))


def camera(radius: float):
    opening = float(np.deg2rad(CONFIG.cameras.field_of_view))
    return orbit(0.4, 0.3, radius=radius, field_of_view=opening, height=40, width=40)


def test_nothing_lies_beyond_the_bound():
    points = jnp.array([[0.0, 0.0, 0.69], [0.0, 0.0, 0.71], [0.6, 0.6, 0.6]])
    assert (density(jnp.zeros(3), points, BOUND) > 0).tolist() == [True, False, False]


@pytest.mark.parametrize("radius", CONFIG.cameras.radius)
def test_the_picture_of_the_ball_is_the_picture_of_all(radius):
    field = lit(CONFIG)
    whole = render_rays(field, camera_rays(camera(radius)), None, samples=1000)
    ball = jax.jit(lambda field, camera: render_ball(field, camera, None, CONFIG))(field, camera(radius))
    assert ball.colour.shape == whole.colour.shape
    # Both step across the ball's edge, each at other places.
    np.testing.assert_allclose(ball.opacity, whole.opacity, atol=0.02)
    np.testing.assert_allclose(ball.colour, whole.colour, atol=0.02)
    empty = np.asarray(ball.opacity) == 0
    assert (np.asarray(ball.depth)[empty] > 2).all()


def test_pixels_that_cannot_show_it_are_left_out():
    assert 0.2 < len(pixels_of_ball(CONFIG)) / 40**2 < 0.5


@pytest.mark.parametrize(
    "config", [UNBOUND, replace(CONFIG, cameras=replace(CONFIG.cameras, radius=(0.6, 1.0)))]
)
def test_without_a_ball_in_front_every_pixel_counts(config):
    assert len(pixels_of_ball(config)) == 40**2


@pytest.mark.parametrize("bound", [None, 1.5])
def test_a_field_that_reaches_the_cube_fills_it(bound):
    config = replace(CONFIG, field=PyramidConfig(density=replace(BOUND, bound=bound)))
    field = lit(config)
    ball = render_ball(field, camera(3.0), None, config)
    whole = render_rays(field, camera_rays(camera(3.0)), None, samples=200)
    np.testing.assert_allclose(ball.opacity, whole.opacity, atol=1e-5)


@pytest.mark.parametrize("bound", [0.0, -1.0])
def test_a_bound_that_leaves_nothing_is_refused(bound):
    with pytest.raises(ValueError, match=r"the bound .* Pass positive numbers"):
        DensityConfig(bound=bound)
