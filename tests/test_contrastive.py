"""The contrastive trainer: its loss against a loop, a short training, and batch norm's stored statistics."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

from tiny_clip import CONTEXT, RESNET, SIZE, VIT, VOCAB, pixels, tiny_clip
from wordlight.clip.config import ClipConfig, ResNetConfig, TextConfig, TransformerConfig, VitConfig
from wordlight.clip.model import init_params
from wordlight.clip.resnet import convolve, resnet_features
from wordlight.train.contrastive import (
    MAX_LOG_SCALE,
    Batch,
    TrainState,
    contrastive_loss,
    make_optimizer,
    perturb,
    train_step,
    training_image_features,
    truth_cross_entropy,
)
from wordlight.train.norm_statistics import with_statistics

BLOCKS = TransformerConfig(width=16, layers=1, heads=2, mlp_width=32)
TEXT = TextConfig(VOCAB, CONTEXT, BLOCKS, end_id=VOCAB - 1)
MODELS = {
    "vit": ClipConfig(16, VitConfig((SIZE, SIZE), 16, BLOCKS), TEXT),
    "resnet": ClipConfig(16, ResNetConfig((SIZE, SIZE), (1, 1, 1, 1), 4, 4), TEXT),
}
COLOURS = jnp.array([[1.0, -1.0, -1.0], [-1.0, 1.0, -1.0], [-1.0, -1.0, 1.0], [1.0, 1.0, -1.0]])


def colour_batch(seed: int = 0) -> Batch:
    """Noisy plain pictures of four colours, two of each, and one caption for each colour."""
    pictures = jnp.repeat(COLOURS, 2, axis=0)[:, None, None, :] + 0.3 * pixels(8, seed=seed)
    ids = jnp.stack([jnp.array([2, word, VOCAB - 1, *[0] * (CONTEXT - 3)]) for word in (3, 4, 5, 6)])
    return Batch(pictures, ids, jnp.repeat(jnp.eye(4), 2, axis=0))


def looped_cross_entropy(logits: np.ndarray, truth: np.ndarray) -> float:
    total = 0.0
    for row, true in zip(logits, truth, strict=True):
        normal = np.log(np.sum(np.exp(row)))
        total += float(np.average(normal - row, weights=true)) if true.any() else 0.0
    return float(total / len(logits))


# The loss


@pytest.mark.parametrize("seed", range(3))
def test_cross_entropy_is_that_of_a_loop(seed):
    rng = np.random.default_rng(seed)
    logits, truth = rng.standard_normal((6, 5)), rng.integers(0, 3, (6, 5))
    truth[2] = 0
    value = truth_cross_entropy(jnp.asarray(logits, jnp.float32), jnp.asarray(truth, jnp.float32))
    np.testing.assert_allclose(value, looped_cross_entropy(logits, truth), rtol=1e-5)


def test_cross_entropy_by_hand():
    logits, two = jnp.zeros((1, 4)), jnp.array([[1.0, 0.0, 1.0, 0.0]])
    np.testing.assert_allclose(truth_cross_entropy(logits, two), np.log(4), rtol=1e-6)
    sure = jnp.array([[100.0, -100.0]])
    assert truth_cross_entropy(sure, jnp.array([[1.0, 0.0]])) == 0
    np.testing.assert_allclose(truth_cross_entropy(sure, jnp.array([[0.0, 1.0]])), 200)
    assert truth_cross_entropy(sure, jnp.array([[0.0, 0.0]])) == 0


def test_a_true_caption_counts_by_its_weight():
    logits = jnp.log(jnp.array([[0.5, 0.25, 0.25]]))
    value = truth_cross_entropy(logits, jnp.array([[3.0, 1.0, 0.0]]))
    np.testing.assert_allclose(value, (3 * np.log(2) + np.log(4)) / 4, rtol=1e-6)


def test_cross_entropy_has_the_gradient_that_differences_give():
    truth = jnp.array([[3.0, 1.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    logits = jax.random.normal(jax.random.key(0), (3, 3))
    check_grads(
        jax.jit(lambda x: truth_cross_entropy(x, truth)), (logits,), order=1, modes=["rev"], rtol=0.02
    )


def test_the_contrastive_loss_is_that_of_the_models_logits():
    model, batch = tiny_clip(VIT), colour_batch()
    logits = np.asarray(model.logits(model.encode_pixels(batch.pixels), model.encode_tokens(batch.ids)))
    truth = np.asarray(batch.truth)
    expected = (looped_cross_entropy(logits, truth) + 0.5 * looped_cross_entropy(logits.T, truth.T)) / 1.5
    loss, accuracy = contrastive_loss(model.params, batch, VIT)
    np.testing.assert_allclose(loss, expected, rtol=1e-4)
    np.testing.assert_allclose(accuracy, np.mean(truth[np.arange(8), logits.argmax(-1)] > 0))


# The step


@pytest.mark.parametrize("name", MODELS)
def test_a_short_training_lowers_the_loss(name):
    config = MODELS[name]
    optimizer = make_optimizer(30)
    params = jax.tree.map(jnp.array, init_params(jax.random.key(0), config))
    state = TrainState(params, optimizer.init(params), jnp.zeros((), jnp.int32))
    losses = []
    for seed, key in enumerate(jax.random.split(jax.random.key(1), 30)):
        radius = jnp.float32(0.5 * (seed % 2))
        state, metrics = train_step(
            state, colour_batch(seed), key, radius=radius, config=config, optimizer=optimizer
        )
        losses.append(float(metrics.loss))
    assert np.isfinite(losses).all()
    assert np.mean(losses[-4:]) < 0.5 * np.mean(losses[:4])
    assert state.step == 30
    assert state.params["logit_scale"] <= MAX_LOG_SCALE
    assert train_step._cache_size() <= len(MODELS)  # pyright: ignore[reportFunctionMemberAccess]


def test_a_perturbation_climbs_the_loss_within_its_radius():
    params, batch = tiny_clip(VIT).params, colour_batch()
    attacked = perturb(jax.random.key(0), params, batch, VIT, jnp.float32(0.5))
    distance = np.linalg.norm((attacked.pixels - batch.pixels).reshape(8, -1), axis=-1)
    assert (distance > 0).all()
    assert (distance <= 0.5 + 1e-5).all()
    assert contrastive_loss(params, attacked, VIT)[0] > contrastive_loss(params, batch, VIT)[0]
    np.testing.assert_array_equal(attacked.ids, batch.ids)


# Batch norm


def test_training_uses_the_statistics_of_the_batch():
    model, x = tiny_clip(RESNET), pixels(4)
    own = training_image_features(model.params["vision"], x, RESNET)
    stored = resnet_features(model.params["vision"], x, RESNET.vision)  # pyright: ignore[reportArgumentType]
    assert np.abs(own - stored).max() > 1e-2
    scaled = training_image_features(model.params["vision"], 3 * x, RESNET)
    np.testing.assert_allclose(scaled, own, atol=1e-2)


def test_measured_statistics_are_those_of_numpy():
    model, batches = tiny_clip(RESNET), [2 * pixels(4, seed=s) + 1 for s in (0, 1)]
    measured = with_statistics(model.params, RESNET, batches)
    norm = measured["vision"]["stem"][0]["norm"]
    hidden = [convolve(model.params["vision"]["stem"][0]["conv"], x, stride=2) for x in batches]
    mean = np.mean([np.mean(h, axis=(0, 1, 2)) for h in hidden], axis=0)
    variance = np.mean([np.var(h, axis=(0, 1, 2)) for h in hidden], axis=0)
    np.testing.assert_allclose(norm["mean"], mean, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(norm["variance"], variance, rtol=1e-4)


def test_with_the_statistics_of_one_batch_inference_equals_training():
    model, x = tiny_clip(RESNET), pixels(4)
    measured = with_statistics(model.params, RESNET, [x])
    assert jax.tree.structure(measured) == jax.tree.structure(model.params)
    np.testing.assert_allclose(
        replace(model, params=measured).image_features(x),
        training_image_features(model.params["vision"], x, RESNET),
        atol=1e-4,
    )


def test_a_model_without_batch_norm_stays_as_it_is():
    params = tiny_clip(VIT).params
    assert with_statistics(params, VIT, [pixels(2)]) is params
