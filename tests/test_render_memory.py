"""Gradients of whole images: equal to the plain ones, in memory that does not grow with the image."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from wordlight.clip.load import load
from wordlight.radiance import (
    MlpConfig,
    MlpField,
    Rendering,
    VoxelConfig,
    VoxelField,
    camera_rays,
    orbit,
    render_image,
    render_rays,
)

KEY = jax.random.key(0)
VOXELS = VoxelField.init(KEY, VoxelConfig(resolution=8, noise=1.0))
FIELDS = [VOXELS, MlpField.init(KEY, MlpConfig(frequencies=3, hidden=(16, 16), skip=None))]


def uneven(rendering: Rendering) -> jax.Array:
    """A loss that mixes all pixels: no chunk knows its cotangent before the whole image is there."""
    colour = rendering.colour
    return jnp.mean(colour**2) * jnp.max(rendering.opacity) + jnp.std(rendering.depth) * jnp.std(colour)


def in_chunks(field, camera, **options):
    return uneven(render_image(field, camera, background=0.3, **options))


def at_once(field, camera, **options):
    return uneven(render_rays(field, camera_rays(camera), None, background=0.3, **options))


def difference(ours: Any, plain: Any) -> float:
    """The norm of the difference over the norm, over all leaves together."""
    ours, plain = (jnp.concatenate([x.ravel() for x in jax.tree.leaves(t)]) for t in (ours, plain))
    return float(jnp.linalg.norm(ours - plain) / jnp.linalg.norm(plain))


@pytest.mark.parametrize("field", FIELDS, ids=["voxels", "mlp"])
@pytest.mark.parametrize("importance", [0, 4])
@pytest.mark.parametrize("chunk", [64, 100, 10_000])
def test_chunks_have_the_gradient_of_the_whole(field, importance, chunk):
    camera = orbit(0.4, 0.3, height=17, width=19)
    options: dict[str, Any] = {"samples": 8, "importance_samples": importance}
    plain = jax.jit(jax.grad(partial(at_once, **options), (0, 1)))(field, camera)
    ours = jax.jit(jax.grad(partial(in_chunks, chunk=chunk, **options), (0, 1)))(field, camera)
    assert difference(ours, plain) < 1e-5


def test_the_replay_has_the_jitter_of_the_rendering():
    """Were a chunk replayed with another key, the gradient would not be that of the value."""
    camera = orbit(0.4, 0.3, height=9, width=9)
    loss = jax.jit(lambda field: in_chunks(field, camera, key=KEY, chunk=16, samples=6))
    direction = jax.tree.map(lambda x: jax.random.normal(jax.random.key(1), x.shape), VOXELS)
    moved = [jax.tree.map(lambda x, d, t=t: x + t * d, VOXELS, direction) for t in (1e-2, -1e-2)]
    slope = (loss(moved[0]) - loss(moved[1])) / 2e-2
    gradient = jax.grad(loss)(VOXELS)
    np.testing.assert_allclose(jnp.sum(gradient.values * direction.values), slope, rtol=5e-3)


def gradient_bytes(size: int, field: VoxelField = VOXELS) -> int:
    """Temporary memory of a compiled gradient."""
    loss = partial(in_chunks, chunk=1024, samples=32)
    compiled = jax.jit(jax.grad(loss)).lower(field, orbit(0.0, 0.3, height=size, width=size)).compile()
    memory: Any = compiled.memory_analysis()
    return memory.temp_size_in_bytes


def test_the_memory_of_a_gradient_is_that_of_its_image_buffers():
    # A chunk's intermediate values would be some 32 samples times as many numbers a pixel.
    assert gradient_bytes(128) - gradient_bytes(64) < 200 * (128**2 - 64**2)


def test_the_field_is_kept_once_and_not_for_every_chunk():
    large = VoxelField.init(KEY, VoxelConfig(resolution=40))
    assert gradient_bytes(128, large) - gradient_bytes(64, large) < large.values.nbytes


def test_a_gradient_through_a_tower():
    """The whole image is one picture for the tower, whatever the chunks."""
    demo = load("demo")
    target = jnp.ones(demo.config.embed_dim)

    def loss(render, field, model, camera):
        return -jnp.sum(model.encode_image(render(field, camera).colour) @ target)

    def plain(field, camera):
        return render_rays(field, camera_rays(camera), None, samples=8)

    camera, model = orbit(0.0, 0.3, height=20, width=20), demo.without_text()
    whole = jax.jit(jax.grad(partial(loss, plain)))(VOXELS, model, camera)
    chunks = partial(loss, partial(render_image, chunk=128, samples=8))
    assert difference(jax.jit(jax.grad(chunks))(VOXELS, model, camera), whole) < 1e-5
