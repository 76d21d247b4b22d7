"""The gradient of a mean over rays, chunk by chunk: equal to the plain one, in less memory."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import wordlight as wl
from wordlight.radiance import MlpConfig, MlpField, Rays, camera_rays, orbit, render_rays

FIELD = MlpField.init(jax.random.key(0), MlpConfig(frequencies=3, hidden=(16, 16), skip=None))
RAYS = jax.tree.map(lambda x: x.reshape(-1, 3), camera_rays(orbit(0.4, 0.3, height=7, width=9)))
COLOURS = jax.random.uniform(jax.random.key(1), (63, 3))


def losses(field, batch, key):
    rays, colours = batch
    return jnp.mean((render_rays(field, rays, key, samples=8).colour - colours) ** 2, axis=-1)


def plain(field, batch, key=None):
    return jax.value_and_grad(lambda field: losses(field, batch, key).mean())(field)


@pytest.mark.parametrize("chunk", [1, 8, 63, 1000])
def test_chunks_give_the_loss_and_gradient_of_the_whole(chunk):
    step = jax.jit(wl.value_and_grad_over_rays(losses, chunk=chunk))
    loss, gradient = step(FIELD, (RAYS, COLOURS))
    expected, expected_gradient = plain(FIELD, (RAYS, COLOURS))
    np.testing.assert_allclose(loss, expected, rtol=1e-6)
    jax.tree.map(
        lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-7), gradient, expected_gradient
    )


def test_a_hand_worked_case():
    """Three rows in chunks of two: the mean of (p x)^2 for x = 1, 2, 3 at p = 2, and its slope."""
    step = wl.value_and_grad_over_rays(lambda p, x, key: (p * x) ** 2, chunk=2)
    loss, slope = step(2.0, jnp.array([1.0, 2.0, 3.0]))
    np.testing.assert_allclose([loss, slope], [4 * 14 / 3, 2 * 2 * 14 / 3], rtol=1e-6)


def test_every_chunk_has_a_key_of_its_own_and_the_same_one_each_time():
    step = jax.jit(
        wl.value_and_grad_over_rays(lambda p, x, key: x + jax.random.normal(key, x.shape), chunk=2)
    )
    first, again = (step(1.0, jnp.zeros(64), jax.random.key(3))[0] for _ in range(2))
    assert first == again
    assert abs(first) < 0.6  # the mean of 64 numbers; of 2 numbers 32 times over it is ten times as far off


def test_fields_of_several_kinds_of_leaves_keep_their_types():
    field = {"wide": jnp.ones(3), "narrow": jnp.ones(3, jnp.bfloat16)}
    step = wl.value_and_grad_over_rays(
        lambda f, x, key: x * (f["wide"].sum() + f["narrow"].sum().astype(jnp.float32)), chunk=2
    )
    _, gradient = step(field, jnp.ones(4))
    assert gradient["narrow"].dtype == jnp.bfloat16
    np.testing.assert_allclose(gradient["wide"], np.ones(3))


def test_memory_is_that_of_a_chunk_and_nothing_is_computed_twice():
    batch = jax.tree.map(lambda x: jnp.tile(x, (64, 1)), (RAYS, COLOURS))
    step = jax.jit(wl.value_and_grad_over_rays(losses, chunk=63)).lower(FIELD, batch).compile()
    whole = jax.jit(plain).lower(FIELD, batch).compile()
    kept = [program.memory_analysis().temp_size_in_bytes for program in (step, whole)]
    assert kept[0] < kept[1] / 8


def test_a_second_call_compiles_nothing():
    step = jax.jit(wl.value_and_grad_over_rays(losses, chunk=8))
    for seed in range(2):
        step(FIELD, (RAYS, COLOURS), jax.random.key(seed))
    assert step._cache_size() == 1


def test_a_batch_may_hold_keys():
    step = wl.value_and_grad_over_rays(lambda p, keys, key: jax.vmap(jax.random.uniform)(keys), chunk=2)
    keys = jax.random.split(jax.random.key(0), 3)
    np.testing.assert_allclose(step(1.0, keys)[0], jax.vmap(jax.random.uniform)(keys).mean(), rtol=1e-6)


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        ((RAYS, COLOURS[0]), r"shapes \[\(63, 3\), \(63, 3\), \(3,\)\].*let the loss function close over it"),
        ((RAYS, 1.0), r"shapes \[\(63, 3\), \(63, 3\), \(\)\]"),
        (Rays(jnp.ones((0, 3)), jnp.ones((0, 3))), "there must be rays"),
        ((), r"shapes \[\]"),
    ],
)
def test_a_batch_that_is_not_one_row_for_each_ray_is_refused(batch, message):
    with pytest.raises(ValueError, match=message):
        wl.value_and_grad_over_rays(losses, chunk=8)(FIELD, batch)


def test_chunks_of_nothing_are_refused():
    with pytest.raises(ValueError, match=r"Chunks of 0 rays were asked for.*rounds down.*at least 1"):
        wl.value_and_grad_over_rays(losses, chunk=0)


def test_losses_that_are_averaged_already_are_refused():
    step = wl.value_and_grad_over_rays(lambda *given: losses(*given).mean(), chunk=8)
    with pytest.raises(ValueError, match=r"have the shape \(\).*Return one loss for each ray"):
        step(FIELD, (RAYS, COLOURS))
