"""Cameras: where they stand, where they look, what they see where."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from wordlight.radiance import camera_rays, look_at, orbit
from wordlight.radiance.cameras import orbit_angles


@pytest.mark.parametrize(
    ("azimuth", "elevation", "position"),
    [
        (0.0, 0.0, (2, 0, 0)),
        (np.pi / 2, 0.0, (0, 2, 0)),
        (np.pi, 0.0, (-2, 0, 0)),
        (0.0, np.pi / 2, (0, 0, 2)),
    ],
)
def test_an_orbit_starts_at_plus_x_turns_towards_plus_y_and_rises_to_plus_z(azimuth, elevation, position):
    np.testing.assert_allclose(orbit(azimuth, elevation, radius=2.0).pose[:, 3], position, atol=1e-6)


@pytest.mark.parametrize("elevation", [-np.pi / 2, -1.0, 0.0, 1.2, np.pi / 2])
def test_poses_are_rotations_that_look_at_the_origin(elevation):
    pose = np.asarray(orbit(jnp.linspace(0, 6, 7), elevation).pose)
    rotation, position = pose[..., :3], pose[..., 3]
    np.testing.assert_allclose(rotation.mT @ rotation, np.broadcast_to(np.eye(3), (7, 3, 3)), atol=1e-5)
    np.testing.assert_allclose(np.linalg.det(rotation), 1, atol=1e-5)
    np.testing.assert_allclose(3.2 * rotation[..., 2], position, atol=1e-5)


def test_level_cameras_have_world_up_at_the_top():
    np.testing.assert_allclose(look_at(jnp.array([3.0, 0.0, 0.0]), jnp.zeros(3))[:, 1], [0, 0, 1], atol=1e-6)
    np.testing.assert_allclose(look_at(jnp.array([3.0, 0.0, 0.0]), jnp.zeros(3))[:, 0], [0, 1, 0], atol=1e-6)


def test_a_camera_at_its_target_is_finite():
    assert jnp.isfinite(look_at(jnp.zeros(3), jnp.zeros(3))).all()
    assert jnp.isfinite(jax.jacrev(look_at)(jnp.zeros(3), jnp.zeros(3))).all()


def test_the_field_of_view_is_the_vertical_one():
    camera = orbit(0.0, 0.0, radius=2.0, field_of_view=1.0, height=100, width=300)
    rays = camera_rays(camera)
    top, bottom = rays.directions[0, 150], rays.directions[-1, 150]
    inside = np.arccos(float(jnp.dot(top, bottom)))
    assert inside < 1.0
    np.testing.assert_allclose(inside, 2 * np.arctan(np.tan(0.5) * 99 / 100), atol=2e-4)


def test_a_resized_camera_sees_the_same_view():
    small = camera_rays(orbit(0.3, 0.2, height=20, width=30)).directions
    large = camera_rays(orbit(0.3, 0.2, height=20, width=30).resized(60, 90)).directions
    # The middle pixel of each 3 x 3 block has the centre of the small pixel.
    np.testing.assert_allclose(large[1::3, 1::3], small, atol=1e-6)


def test_batches_of_cameras_broadcast_and_go_through_jit():
    camera = jax.jit(lambda a: orbit(a, 0.1, height=4, width=6))(jnp.zeros((2, 3)))
    assert camera.pose.shape == (2, 3, 3, 4)
    assert camera.focal.shape == (2, 3)
    assert (camera.height, camera.width) == (4, 6)


def test_the_gradient_of_a_pose_in_its_angles_is_finite_overhead():
    jacobian = jax.jacrev(lambda angles: orbit(angles[0], angles[1]).pose)(jnp.array([0.0, np.pi / 2]))
    assert jnp.isfinite(jacobian).all()


def test_the_angles_of_an_orbit_are_those_it_was_made_with():
    azimuth, elevation = jnp.array([-2.5, 0.0, 1.0]), jnp.array([-0.1, 0.4, 1.4])
    found = orbit_angles(orbit(azimuth, elevation, radius=2.0))
    np.testing.assert_allclose(found, (azimuth, elevation), atol=1e-6)
