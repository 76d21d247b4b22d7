"""What rendering refuses, before anything comes out that looks like a picture."""

import jax
import jax.numpy as jnp
import pytest

from wordlight.radiance import Rays, camera_rays, orbit, render_image, render_rays

pytestmark = pytest.mark.usefixtures("unchecked")
CAMERA = orbit(0.4, 0.3, height=4, width=6)
RAYS = camera_rays(CAMERA)
LEAD = RAYS.directions.shape[:-1]


def fog(points, directions):
    return jnp.ones(points.shape[:-1]), jnp.full(points.shape, 0.5)


def one_too_many(points, directions):
    return jnp.ones((*points.shape[:-1], 1)), jnp.full(points.shape, 0.5)


def grey(points, directions):
    return jnp.ones(points.shape[:-1]), jnp.full((*points.shape[:-1], 1), 0.5)


@pytest.mark.parametrize("samples", [4, 6, 9])
@pytest.mark.parametrize("field", [one_too_many, grey])
def test_a_field_answers_in_the_shape_of_its_points(field, samples):
    with pytest.raises(
        ValueError, match=r"The field returned densities of shape .*Return densities \(4, 6, "
    ):
        render_rays(field, RAYS, None, samples=samples)
    with pytest.raises(ValueError, match="A layer of width one leaves an axis behind the densities"):
        jax.jit(lambda camera: render_image(field, camera, samples=samples, chunk=6))(CAMERA)


@pytest.mark.parametrize(
    ("rays", "message"),
    [
        (Rays(RAYS.origins[:2], RAYS.directions), r"origins have the shape \(2, 6, 3\) and their directions"),
        (Rays(RAYS.origins, RAYS.directions[0, 0]), r"their directions \(3,\)"),
        (Rays(RAYS.origins[..., :2], RAYS.directions[..., :2]), r"\(4, 6, 2\)"),
        ((RAYS.origins, RAYS.directions), "a pair was passed. Pass Rays"),
    ],
)
def test_rays_are_two_vectors_each(rays, message):
    with pytest.raises(ValueError, match=message):
        render_rays(fog, rays, None)


def test_one_origin_serves_all_rays():
    whole = render_rays(fog, RAYS, None)
    shared = render_rays(fog, Rays(RAYS.origins[:1, :1], RAYS.directions), None)
    assert jnp.allclose(whole.colour, shared.colour, atol=1e-6)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"near": 4.0, "far": 2.0}, r"near is up to 4 and far down to 2.*Give near below far"),
        ({"near": jnp.ones(5)}, r"bounds have the shapes \{'near': \(5,\)\} and the rays \(4, 6\)"),
        (
            {"background": jnp.ones((5, 5, 3))},
            r"background has the shape \(5, 5, 3\) and the colours \(4, 6, 3\)",
        ),
        ({"background": jnp.ones((4, 6, 4))}, "or carries opacity"),
    ],
)
def test_bounds_and_backgrounds_go_with_the_rays(options, message):
    with pytest.raises(ValueError, match=message):
        render_rays(fog, RAYS, None, **options)


def test_traced_bounds_are_not_looked_into():
    jax.jit(lambda near: render_rays(fog, RAYS, None, near=near, far=2.0).colour)(4.0)


@pytest.mark.parametrize("size", [{"height": 0}, {"width": -3}])
def test_a_camera_has_pixels(size):
    with pytest.raises(ValueError, match=r"An image of .* pixels was asked for.*at least 1"):
        orbit(0.4, 0.3, **size)
