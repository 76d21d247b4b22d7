"""Rendering: worked scenes, empty and opaque rays, chunks of any size, every transformation."""

from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
from jax.test_util import check_grads
from jax.tree_util import Partial

from wordlight.radiance import (
    DensityConfig,
    GridConfig,
    GridField,
    MlpConfig,
    MlpField,
    Rays,
    VoxelConfig,
    VoxelField,
    camera_rays,
    orbit,
    render_image,
    render_rays,
    shade,
)

KEY = jax.random.key(0)
VOXELS = VoxelField.init(KEY, VoxelConfig(resolution=6, noise=1.0))
CAMERA = orbit(0.4, 0.3, height=6, width=9)
RAYS = camera_rays(CAMERA)


# Compiled once for all tests that share shapes and options.
render = jax.jit(render_rays, static_argnames=("samples", "importance_samples", "normals"))


def fog(density, colour=(1.0, 0.5, 0.25)):
    """The same density and colour everywhere, as a function that carries its numbers as leaves."""

    def field(density, colour, points, directions):
        return jnp.full(points.shape[:-1], density), jnp.broadcast_to(colour, points.shape)

    return Partial(field, jnp.float32(density), jnp.array(colour))


@Partial
def ball(points, directions):
    """A sharp ball of radius one half, red on the +x side and blue on the other."""
    density = 100 * jax.nn.sigmoid(50 * (0.5 - jnp.linalg.norm(points, axis=-1)))
    red = jax.nn.sigmoid(20 * points[..., 0])
    return density, jnp.stack([red, jnp.zeros_like(red), 1 - red], axis=-1)


@Partial
def wall(points, directions):
    """A thin wall across the middle."""
    return jnp.where(jnp.abs(points[..., 0]) < 0.02, 200.0, 0.0), jnp.ones_like(points)


def along_x(count=1):
    """Rays towards -x through the middle of the cube."""
    return Rays(
        jnp.tile(jnp.array([3.0, 0.0, 0.0]), (count, 1)), jnp.tile(jnp.array([-1.0, 0, 0]), (count, 1))
    )


def finite(tree):
    return all(bool(jnp.isfinite(leaf).all()) for leaf in jax.tree.leaves(tree))


# Values


@pytest.mark.parametrize("key", [None, KEY])
def test_fog_has_the_opacity_of_beer_and_lambert_with_or_without_jitter(key):
    seen = render(fog(0.6), along_x(), key, samples=7)
    opacity = 1 - np.exp(-0.6 * 2)
    np.testing.assert_allclose(seen.opacity, opacity, rtol=1e-5)
    np.testing.assert_allclose(seen.colour, [opacity * np.array([1.0, 0.5, 0.25])], rtol=1e-5)


def test_bounds_may_be_given():
    seen = render(fog(0.6), along_x(2), None, near=2.5, far=jnp.array([3.0, 3.5]))
    np.testing.assert_allclose(seen.opacity, 1 - np.exp(-0.6 * np.array([0.5, 1.0])), rtol=1e-5)


def test_a_ball_is_seen_where_it_is():
    image = render_image(ball, orbit(jnp.array([0.0, np.pi]), 0.0, height=33, width=33), samples=128)
    np.testing.assert_allclose(image.opacity[:, 16, 16], 1, atol=1e-3)
    np.testing.assert_allclose(image.opacity[:, 0, 0], 0, atol=1e-3)
    np.testing.assert_allclose(image.depth[:, 16, 16], 3.2 - 0.5, atol=0.05)
    np.testing.assert_allclose(image.colour[0, 16, 16], [1, 0, 0], atol=0.02)
    np.testing.assert_allclose(image.colour[1, 16, 16], [0, 0, 1], atol=0.02)


def test_the_background_shows_through_empty_rays_and_not_through_solid_ones():
    background = jnp.array([0.2, 0.4, 0.6])
    np.testing.assert_allclose(render(fog(0.0), along_x(), None, background=background).colour[0], background)
    solid = render(fog(1e6), along_x(), None, background=background)
    np.testing.assert_allclose(solid.colour[0], [1, 0.5, 0.25], atol=1e-6)


def test_importance_samples_find_a_thin_wall():
    rays = along_x(16)
    coarse = render(wall, rays, KEY, samples=24)
    fine = render(wall, rays, KEY, samples=24, importance_samples=48)
    exact = 3.0
    assert fine.samples is not None
    assert fine.samples.weights.shape == (16, 72)
    assert jnp.abs(fine.depth - exact).mean() < 0.5 * jnp.abs(coarse.depth - exact).mean()


def test_the_same_key_gives_the_same_picture_and_another_key_another():
    def draw(seed):
        return render(VOXELS, RAYS, jax.random.key(seed), importance_samples=4).colour

    np.testing.assert_array_equal(draw(1), draw(1))
    assert jnp.abs(draw(1) - draw(2)).max() > 1e-5


def test_normals_of_a_ball_face_the_camera_and_shade_it():
    camera = orbit(0.0, 0.0, height=33, width=33)
    image = render_image(ball, camera, samples=128, normals=True)
    assert image.normals is not None
    np.testing.assert_allclose(image.normals[16, 16], [1, 0, 0], atol=0.1)
    assert image.normals[8, 16, 2] > 0.3
    grey = shade(image, light=jnp.array([1.0, 0.0, 0.0]))
    np.testing.assert_allclose(grey[16, 16], 1, atol=0.05)
    np.testing.assert_allclose(grey[0, 0], 1, atol=1e-3)
    assert grey[8, 16, 0] < grey[16, 16, 0]
    np.testing.assert_array_equal(grey[..., 0], grey[..., 2])


# Rays with nothing and with everything


def total(field, rays):
    seen = render_rays(field, rays, None, samples=8, normals=True)
    values = seen.colour, seen.depth, seen.opacity, seen.normals
    return sum(jnp.sum(value**2) for value in values if value is not None)


total_gradient = jax.jit(jax.grad(total, argnums=(0, 1)))


def test_when_every_ray_is_empty_depth_and_gradient_are_finite_and_the_background_shows():
    empty = VoxelField(VOXELS.values.at[..., 0].set(-1e4), VOXELS.config)
    seen = render(empty, RAYS, None, background=jnp.array([0.1, 0.2, 0.3]))
    assert finite(seen)
    np.testing.assert_allclose(seen.opacity, 0)
    np.testing.assert_allclose(seen.colour, np.broadcast_to([0.1, 0.2, 0.3], (6, 9, 3)), rtol=1e-6)
    assert finite(total_gradient(empty, RAYS))


def test_when_every_ray_is_opaque_everything_is_finite():
    solid = VoxelField(VOXELS.values.at[..., 0].set(1e9), VOXELS.config)
    assert finite(render(solid, RAYS, None))
    assert finite(total_gradient(solid, RAYS))


def test_rays_that_miss_or_graze_the_box_hit_nothing_and_have_finite_gradients():
    origins = jnp.array([[3.0, 2, 0], [3.0, 1, 0], [3.0, 1, 1], [9.0, 0, 0], [1.0, 0, 0]])
    directions = jnp.array([[-1.0, 0, 0], [-1.0, 0, 0], [-1.0, 0, 0], [1.0, 0, 0], [0, 1.0, 0]])
    rays = Rays(origins, directions)
    solid = VoxelField(VOXELS.values.at[..., 0].set(10.0), VOXELS.config)
    seen = render(solid, rays, KEY, background=1.0)
    np.testing.assert_allclose(seen.opacity, 0, atol=2e-2)
    np.testing.assert_allclose(seen.colour, 1, atol=2e-2)
    assert finite(seen)
    assert finite(total_gradient(solid, rays))


def test_a_ray_parallel_to_a_face_inside_the_box_hits_what_is_there():
    rays = Rays(jnp.array([[3.0, 0.5, -0.5]]), jnp.array([[-1.0, 0.0, 0.0]]))
    np.testing.assert_allclose(render(fog(0.6), rays, None).opacity, 1 - np.exp(-1.2), rtol=1e-5)


FIELDS = [
    MlpField.init(KEY, MlpConfig(frequencies=2, hidden=(8, 8, 8))),
    VoxelField.init(KEY, VoxelConfig(resolution=4)),
    GridField.init(KEY, GridConfig(resolutions=(3, 5), table_size=60, hidden=(8,))),
]


@pytest.mark.parametrize("field", FIELDS, ids=[type(field).__name__ for field in FIELDS])
def test_the_gradient_of_a_picture_in_the_field_equals_differences(field):
    rays = camera_rays(orbit(0.4, 0.3, height=3, width=3))

    def loss(field):
        seen = render(field, rays, KEY, samples=10, importance_samples=0, background=0.3)
        return jnp.mean(seen.colour**2) + jnp.mean(seen.depth) + jnp.mean(seen.opacity**2)

    check_grads(jax.jit(loss), (field,), order=1, modes=["rev"], rtol=3e-2, atol=1e-3, eps=2e-3)


def test_the_gradient_of_a_picture_in_the_rays_equals_differences():
    smooth = VoxelField(VOXELS.values, VoxelConfig(resolution=6, density=DensityConfig(scale=1.0)))

    def loss(azimuth):
        rays = camera_rays(orbit(azimuth, 0.3, height=3, width=3))
        return jnp.mean(render(smooth, rays, None, samples=64, background=0.3).colour ** 2)

    check_grads(jax.jit(loss), (jnp.array(0.4),), order=1, modes=["rev"], rtol=5e-2, atol=1e-4, eps=1e-3)


# Images in chunks


@pytest.mark.parametrize("chunk", [1, 7, 54, 10_000])
def test_any_chunk_gives_the_same_image(chunk):
    background = jax.random.uniform(KEY, (6, 9, 3))
    options: dict[str, Any] = {
        "samples": 6,
        "importance_samples": 3,
        "normals": True,
        "background": background,
    }
    whole = jax.jit(lambda field, rays: render(field, rays, None, **options))(VOXELS, RAYS)
    image = jax.jit(lambda field, camera: render_image(field, camera, chunk=chunk, **options))(VOXELS, CAMERA)
    plain = replace(whole, samples=None)
    jax.tree.map(partial(np.testing.assert_allclose, atol=1e-4), image, plain)


def test_a_224_pixel_image_in_chunks_of_10000():
    image = jax.jit(partial(render_image, chunk=10_000, samples=4))(
        VOXELS, orbit(0.1, 0.2, height=224, width=224)
    )
    assert image.colour.shape == (224, 224, 3)
    assert finite(image)
    assert image.opacity[112, 112] > 0.3


def test_cameras_in_a_batch_give_images_in_a_batch():
    cameras = orbit(jnp.array([[0.0, 1.0, 2.0]]), 0.2, height=4, width=5)
    images = render_image(VOXELS, cameras, chunk=7, samples=6)
    assert images.colour.shape == (1, 3, 4, 5, 3)
    alone = render_image(VOXELS, orbit(1.0, 0.2, height=4, width=5), samples=6)
    np.testing.assert_allclose(images.colour[0, 1], alone.colour, atol=1e-5)


def test_the_memory_of_a_larger_image_is_that_of_its_buffers():
    def extra_bytes(size):
        camera = orbit(0.0, 0.3, height=size, width=size)
        compiled = jax.jit(partial(render_image, chunk=1024, samples=32)).lower(VOXELS, camera).compile()
        memory: Any = compiled.memory_analysis()
        return memory.temp_size_in_bytes

    # Beside one chunk there are only the rays, the background and the image: a few dozen numbers a pixel.
    assert extra_bytes(128) - extra_bytes(64) < 200 * (128**2 - 64**2)


# Transformations


def loss(field, rays, key):
    return jnp.mean(render_rays(field, rays, key, samples=8, background=0.5).colour ** 2)


compiled_loss = jax.jit(loss)


def test_a_second_call_compiles_nothing_and_calls_nothing_back():
    step: Any = jax.jit(jax.value_and_grad(loss))
    step(VOXELS, RAYS, KEY)
    step(
        jax.tree.map(lambda x: x + 1, VOXELS),
        camera_rays(orbit(1.0, 0.0, height=6, width=9)),
        jax.random.key(9),
    )
    assert step._cache_size() == 1
    assert "callback" not in str(jax.make_jaxpr(jax.grad(loss))(VOXELS, RAYS, KEY))


def views(count):
    return camera_rays(orbit(jnp.linspace(0, 5, count), 0.3, height=4, width=4)), jax.random.split(KEY, count)


def one_by_one(rays, keys):
    parts = [jax.tree.map(lambda x, i=i: x[i], rays) for i in range(len(keys))]
    return np.array([compiled_loss(VOXELS, part, key) for part, key in zip(parts, keys, strict=True)])


def test_vmap_scan_and_remat_equal_one_by_one():
    rays, keys = views(3)
    expected = one_by_one(rays, keys)
    np.testing.assert_allclose(jax.jit(jax.vmap(loss, (None, 0, 0)))(VOXELS, rays, keys), expected, rtol=1e-5)
    scanned = jax.jit(lambda *views: jax.lax.map(lambda view: loss(VOXELS, *view), views))(rays, keys)
    np.testing.assert_allclose(scanned, expected, rtol=1e-5)
    plain = jax.jit(jax.grad(loss))(VOXELS, RAYS, KEY).values
    remat = jax.jit(jax.grad(jax.checkpoint(loss)))(VOXELS, RAYS, KEY).values
    np.testing.assert_allclose(remat, plain, atol=1e-6)


def test_vmap_over_fields():
    fields = jax.vmap(lambda key: VoxelField.init(key, VoxelConfig(resolution=4)))(jax.random.split(KEY, 3))
    losses = jax.jit(jax.vmap(loss, (0, None, None)))(fields, RAYS, KEY)
    second = jax.tree.map(lambda x: x[1], fields)
    np.testing.assert_allclose(losses[1], compiled_loss(second, RAYS, KEY), rtol=1e-5)


def test_pmap_equals_one_by_one():
    rays, keys = views(4)
    losses = jax.pmap(loss, in_axes=(None, 0, 0))(VOXELS, rays, keys)
    np.testing.assert_allclose(losses, one_by_one(rays, keys), rtol=1e-5)


def test_shard_map_equals_one_by_one():
    rays, keys = views(4)
    mesh = Mesh(np.array(jax.devices()[:4]), ("views",))
    each = jax.vmap(loss, (None, 0, 0))
    sharded = jax.jit(
        jax.shard_map(each, mesh=mesh, in_specs=(P(), P("views"), P("views")), out_specs=P("views"))
    )
    np.testing.assert_allclose(sharded(VOXELS, rays, keys), one_by_one(rays, keys), rtol=1e-5)


def test_views_sharded_over_a_mesh_by_jit_give_the_same_gradient():
    rays, keys = views(4)
    mesh = Mesh(np.array(jax.devices()[:4]), ("views",))
    place = partial(jax.device_put, device=NamedSharding(mesh, P("views")))

    def mean(field, rays, keys):
        return jnp.mean(jax.vmap(loss, (None, 0, 0))(field, rays, keys))

    alone = jax.jit(jax.grad(mean))(VOXELS, rays, keys).values
    shared = jax.jit(jax.grad(mean))(VOXELS, place(rays), place(keys)).values
    np.testing.assert_allclose(shared, alone, atol=1e-6)


# Refusals


@pytest.mark.parametrize("options", [{"samples": 0}, {"importance_samples": -1}])
def test_no_samples_are_refused(options):
    with pytest.raises(ValueError, match=r"samples per ray were asked for.*48 and 0 are usual"):
        render_rays(VOXELS, RAYS, None, **options)


def test_an_empty_chunk_is_refused():
    with pytest.raises(ValueError, match=r"Chunks of 0 rays.*at least 1"):
        render_image(VOXELS, CAMERA, chunk=0)


def test_shading_without_normals_is_refused():
    with pytest.raises(ValueError, match=r"no normals.*Render with normals=True"):
        shade(render_rays(VOXELS, RAYS, None))
