"""The loss inside other people's programs: one value and one gradient under every transformation."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

import wordlight as wl

DEVICES = 4
IMAGES = jax.random.uniform(jax.random.key(0), (DEVICES, 40, 48, 3))
KEYS = jax.random.split(jax.random.key(1), DEVICES)


@pytest.fixture(scope="module")
def guidance() -> wl.Guidance:
    return wl.Guidance.from_prompts(wl.load("demo"), "a yellow bulldozer")


def value_and_gradient(guidance, image, key):
    """What a training step asks for."""
    return jax.value_and_grad(lambda image: guidance(image, key)[0])(image)


@pytest.fixture(scope="module")
def expected(guidance):
    """Image by image, without any transformation of the whole."""
    step = jax.jit(value_and_gradient)
    found = [step(guidance, image, key) for image, key in zip(IMAGES, KEYS, strict=True)]
    return jax.tree.map(lambda *parts: jnp.stack(parts), *found)


def same(ours, expected):
    jax.tree.map(partial(np.testing.assert_allclose, rtol=1e-3, atol=1e-6), ours, expected)


def test_under_vmap(guidance, expected):
    same(jax.jit(jax.vmap(value_and_gradient, (None, 0, 0)))(guidance, IMAGES, KEYS), expected)


def test_under_pmap_with_a_mean_over_the_devices(guidance, expected):
    @partial(jax.pmap, axis_name="devices", in_axes=(None, 0, 0))
    def step(guidance, image, key):
        value, gradient = value_and_gradient(guidance, image, key)
        return jax.lax.pmean(value, "devices"), gradient

    values, gradients = step(guidance, IMAGES, KEYS)
    same(gradients, expected[1])
    np.testing.assert_allclose(values, jnp.mean(expected[0]), rtol=1e-4)


def test_under_shard_map_with_a_mean_over_the_devices(guidance, expected):
    mesh = Mesh(np.array(jax.devices()[:DEVICES]), ("views",))

    @jax.jit
    @partial(jax.shard_map, mesh=mesh, in_specs=(P(), P("views"), P("views")), out_specs=(P(), P("views")))
    def step(guidance, images, keys):
        values, gradients = jax.vmap(value_and_gradient, (None, 0, 0))(guidance, images, keys)
        return jax.lax.pmean(values.mean(), "views"), gradients

    value, gradients = step(guidance, IMAGES, KEYS)
    same(gradients, expected[1])
    np.testing.assert_allclose(value, jnp.mean(expected[0]), rtol=1e-4)


def test_inside_a_scan(guidance, expected):
    def body(guidance, view):
        return guidance, value_and_gradient(guidance, *view)

    same(jax.jit(lambda g: jax.lax.scan(body, g, (IMAGES, KEYS))[1])(guidance), expected)


def test_a_gradient_through_a_scan_of_steps(guidance):
    """A small inner optimisation, differentiated as a whole against a difference."""

    def last(image):
        def body(image, key):
            value, gradient = value_and_gradient(guidance, image, key)
            return image - 0.1 * gradient, value

        return jax.lax.scan(body, image, KEYS[:2])[1][-1]

    last = jax.jit(last)
    direction = jax.random.normal(jax.random.key(2), IMAGES[0].shape)
    slope = jnp.vdot(jax.jit(jax.grad(last))(IMAGES[0]), direction)
    step = 1e-2
    difference = (last(IMAGES[0] + step * direction) - last(IMAGES[0] - step * direction)) / (2 * step)
    np.testing.assert_allclose(slope, difference, rtol=0.1, atol=1e-4)


def test_nothing_is_compiled_again_for_another_image_or_prompt(guidance):
    step = jax.jit(value_and_gradient)
    step(guidance, IMAGES[0], KEYS[0])
    other = wl.Guidance.from_prompts(wl.load("demo"), "a red mushroom")
    step(other, IMAGES[1], KEYS[1])
    assert step._cache_size() == 1
    assert "callback" not in str(jax.make_jaxpr(value_and_gradient)(guidance, IMAGES[0], KEYS[0]))
