"""Losses on embeddings: values worked by hand, gradients against differences, finite at every extreme."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax.test_util import check_grads

from wordlight import losses

EAST, NORTH, WEST = jnp.array([1.0, 0.0]), jnp.array([0.0, 1.0]), jnp.array([-1.0, 0.0])
NOTHING = jnp.zeros(2)
FAR = jnp.array([300.0, -200.0])


def at(angle: float) -> jax.Array:
    return jnp.array([np.cos(angle), np.sin(angle)], jnp.float32)


def unit(seed: int, *shape: int) -> jax.Array:
    x = jax.random.normal(jax.random.key(seed), shape)
    return x / jnp.linalg.norm(x, axis=-1, keepdims=True)


PAIRWISE = {
    "cosine": losses.cosine,
    "spherical": losses.spherical,
    "consistency": losses.consistency,
    "directional": lambda a, b: losses.directional(a, WEST, b, WEST),
    "softmax": lambda a, b: losses.softmax_contrastive(a, b, jnp.stack([NORTH, WEST]), scale=100.0),
    "sigmoid": lambda a, b: losses.sigmoid(a, b, scale=100.0, bias=-10.0),
}


@functools.cache
def value_and_gradients(name: str):
    return jax.jit(jax.value_and_grad(PAIRWISE[name], argnums=(0, 1)))


@pytest.mark.parametrize(("angle", "value"), [(0.0, -1.0), (np.pi / 3, -0.5), (np.pi / 2, 0.0), (np.pi, 1.0)])
def test_cosine(angle, value):
    np.testing.assert_allclose(losses.cosine(at(angle), EAST), value, atol=1e-6)
    np.testing.assert_allclose(losses.cosine_similarity(at(angle), EAST), -value, atol=1e-6)


@pytest.mark.parametrize("angle", [0.0, 1e-4, 0.3, np.pi / 2, 3.0])
def test_spherical_is_half_the_squared_angle(angle):
    np.testing.assert_allclose(losses.spherical(at(angle), EAST), angle**2 / 2, rtol=1e-3, atol=1e-12)


def test_spherical_of_opposite_vectors_is_half_of_pi_squared():
    np.testing.assert_allclose(losses.spherical(EAST, WEST), np.pi**2 / 2, rtol=3e-3)


@pytest.mark.parametrize("angle", [0.0, 1e-4, 0.3, np.pi / 2, np.pi])
def test_consistency_is_one_minus_the_cosine_even_where_that_would_round_to_zero(angle):
    np.testing.assert_allclose(
        losses.consistency(at(angle), EAST), 2 * np.sin(angle / 2) ** 2, rtol=1e-3, atol=1e-12
    )


def test_consistency_pulls_unit_vectors_as_the_cosine_does():
    image, other = unit(0, 8), unit(1, 8)
    along = lambda loss: jax.grad(lambda x: loss(x / jnp.linalg.norm(x), other))(image)  # noqa: E731
    np.testing.assert_allclose(along(losses.consistency), along(losses.cosine), atol=1e-5)


def test_directional_looks_at_the_change_alone():
    north_east = losses.directional(EAST + NORTH, EAST, at(0.5) + 2 * NORTH, at(0.5))
    np.testing.assert_allclose(north_east, 0, atol=1e-6)
    np.testing.assert_allclose(losses.directional(NORTH, NOTHING, EAST, NOTHING), 1, atol=1e-6)
    np.testing.assert_allclose(losses.directional(WEST, NOTHING, EAST, NOTHING), 2, atol=1e-6)
    np.testing.assert_allclose(losses.directional(EAST, EAST, NORTH, EAST), 1)


def test_an_edit_that_starts_at_its_source_is_pulled_where_the_text_went():
    source, text, text_before = unit(0, 8), unit(1, 8), unit(2, 8)
    loss, gradient = jax.value_and_grad(losses.directional)(source, source, text, text_before)
    change = (text - text_before) / jnp.linalg.norm(text - text_before)
    assert loss == 1
    np.testing.assert_allclose(gradient, -change / 1e-3, rtol=1e-4)
    rounded = source + 1e-7 * unit(3, 8)
    np.testing.assert_allclose(losses.directional(rounded, source, text, text_before), 1, atol=1e-3)


def test_softmax_contrastive_is_the_cross_entropy_of_the_first():
    negatives = jnp.stack([NORTH, WEST])
    expected = -np.log(np.exp(2) / (np.exp(2) + 1 + np.exp(-2)))
    value = losses.softmax_contrastive(EAST, EAST, negatives, scale=2.0)
    np.testing.assert_allclose(value, expected, rtol=1e-6)
    assert losses.softmax_contrastive(EAST, EAST, jnp.zeros((0, 2)), scale=2.0) == 0


def test_sigmoid_of_pairs():
    np.testing.assert_allclose(
        losses.sigmoid(EAST, at(np.pi / 3), scale=4.0, bias=-1.0), np.log1p(np.exp(-1)), rtol=1e-6
    )
    np.testing.assert_allclose(
        losses.sigmoid(EAST, EAST, scale=4.0, bias=-1.0, match=-1.0), np.log1p(np.exp(3)), rtol=1e-6
    )
    match = 2 * jnp.eye(2) - 1
    images, texts = jnp.stack([EAST, NORTH]), jnp.stack([EAST, NORTH])
    table = losses.sigmoid(images[:, None], texts[None], scale=10.0, bias=-5.0, match=match)
    np.testing.assert_allclose(table, np.full((2, 2), np.log1p(np.exp(-5))), rtol=1e-5)


@pytest.mark.parametrize("name", PAIRWISE)
def test_agreement_is_the_least_loss(name):
    better, worse = PAIRWISE[name](at(0.1), at(0.1)), PAIRWISE[name](at(2.5), at(0.1))
    assert better < worse


@pytest.mark.parametrize("name", PAIRWISE)
def test_gradients_are_those_of_differences(name):
    loss = {
        "directional": lambda a, b: losses.directional(a, unit(2, 3, 8), b, unit(3, 3, 8)).sum(),
        "softmax": lambda a, b: losses.softmax_contrastive(a, b[0], unit(4, 2, 8), scale=3.0).sum(),
        "sigmoid": lambda a, b: losses.sigmoid(a, b, scale=3.0, bias=-1.0).sum(),
    }.get(name, lambda a, b: PAIRWISE[name](a, b).sum())
    pair = unit(0, 3, 8), unit(1, 3, 8)
    check_grads(jax.jit(loss), pair, order=1, modes=["rev"], rtol=0.02, atol=1e-2, eps=1e-2)


@pytest.mark.parametrize("name", PAIRWISE)
@pytest.mark.parametrize("first", [EAST, NORTH, NOTHING, WEST], ids=["east", "north", "zero", "west"])
@pytest.mark.parametrize("second", [EAST, NOTHING, WEST, FAR], ids=["east", "zero", "west", "far"])
def test_values_and_gradients_are_finite_at_the_extremes(name, first, second):
    value, gradients = value_and_gradients(name)(first, second)
    assert np.isfinite(value)
    assert np.isfinite(gradients[0]).all()
    assert np.isfinite(gradients[1]).all()


@pytest.mark.parametrize("scale", [0.0, 1e-6, 100.0, 1e6])
def test_any_temperature_is_finite(scale):
    def total(a):
        sharp = losses.softmax_contrastive(a, EAST, NORTH[None], scale=scale)
        return sharp + losses.sigmoid(a, EAST, scale=scale, bias=0.0, match=-1.0)

    value, gradient = jax.value_and_grad(total)(WEST)
    assert np.isfinite(value)
    assert np.isfinite(gradient).all()


@pytest.mark.parametrize("loss", [losses.cosine, losses.spherical, losses.consistency])
def test_leading_axes_are_broadcast(loss):
    images, texts = unit(0, 4, 1, 8), unit(1, 1, 3, 8)
    table = loss(images, texts)
    assert table.shape == (4, 3)
    np.testing.assert_allclose(table[2, 1], loss(images[2, 0], texts[0, 1]), rtol=1e-5)
    assert losses.softmax_contrastive(unit(0, 2, 5, 8), unit(1, 8), unit(2, 3, 8), scale=1.0).shape == (2, 5)


@given(st.floats(0, np.pi), st.floats(0, np.pi))
def test_every_measure_grows_with_the_angle(one, other):
    near, far = sorted((one, other))
    for loss in (losses.cosine, losses.spherical, losses.consistency):
        assert loss(at(near), EAST) <= loss(at(far), EAST) + 1e-5
