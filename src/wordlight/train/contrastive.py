"""Contrastive training of a CLIP model on captioned images, as one pure step.

Notation: b images, n captions, e embedding. A caption may be true of several images of a batch, and an image
may have several true captions, so the targets are a matrix of weights and not the identity.
"""

from functools import partial
from typing import NamedTuple, cast

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray

from wordlight.clip.config import ClipConfig, ResNetConfig
from wordlight.clip.layers import Params
from wordlight.clip.resnet import batch_norm, resnet_features
from wordlight.clip.text import text_features
from wordlight.clip.vit import vit_features
from wordlight.numerics import safe_normalize
from wordlight.typing import Pixels

MAX_LOG_SCALE = 4.6051702  # log(100), the limit CLIP keeps (arXiv 2103.00020, section 2.5)


class TrainState(NamedTuple):
    """What a contrastive step takes and returns."""

    params: Params
    optimizer: optax.OptState
    step: Int[Array, ""]


class Metrics(NamedTuple):
    """Figures of one step: the loss and the share of images whose likeliest caption is true."""

    loss: Float[Array, ""]
    accuracy: Float[Array, ""]


class Batch(NamedTuple):
    """Preprocessed images, captions' ids, and which caption is true of which image.

    Attributes:
        pixels: `[b, height, width, 3]`, normalised.
        ids: `[n, length]`.
        truth: `[b, n]`, zero where a caption is not true of an image, else how much it counts.
    """

    pixels: Pixels
    ids: Int[Array, "n length"]
    truth: Float[Array, "b n"]


def training_image_features(params: Params, pixels: Pixels, config: ClipConfig) -> Float[Array, "b e"]:
    """Return unnormalised image features; batch norm uses the batch's own statistics."""
    if isinstance(config.vision, ResNetConfig):
        return resnet_features(params, pixels, config.vision, norm=batch_norm)
    return vit_features(params, pixels, config.vision)


def truth_cross_entropy(logits: Float[Array, "b n"], truth: Float[Array, "b n"]) -> Float[Array, ""]:
    """Mean cross-entropy against each row's true entries in proportion to their weights (UniCL, arXiv
    2204.03610, eq. 3, where they are equal).

    Rows with no true entry count as zero.
    """
    total = truth.sum(-1, keepdims=True)
    target = truth / jnp.where(total > 0, total, 1.0)
    return -jnp.mean(jnp.sum(target * jax.nn.log_softmax(logits, axis=-1), axis=-1))


def contrastive_loss(
    params: Params, batch: Batch, config: ClipConfig
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Return the symmetric contrastive loss and the accuracy over the batch's captions."""
    assert config.text is not None
    texts = safe_normalize(text_features(params["text"], batch.ids, config.text))
    images = safe_normalize(training_image_features(params["vision"], batch.pixels, config))
    logits = jnp.exp(params["logit_scale"]) * images @ texts.T
    loss = truth_cross_entropy(logits, batch.truth) + 0.5 * truth_cross_entropy(logits.T, batch.truth.T)
    hits = jnp.take_along_axis(batch.truth, logits.argmax(-1)[:, None], axis=1)
    return loss / 1.5, jnp.mean(hits > 0)


def perturb(
    key: PRNGKeyArray, params: Params, batch: Batch, config: ClipConfig, radius: Float[Array, ""]
) -> Batch:
    """Move every image up the gradient of its own loss by a random distance of at most `radius` (normalised
    pixels).

    A model trained on such images has input gradients that point along shapes and colours rather than along
    imperceptible patterns, which is what a guide needs (arXiv 1906.09453). One step of arXiv 1706.06083, eq.
    2.1, in the L2 norm.
    """
    gradient = jax.grad(lambda pixels: contrastive_loss(params, batch._replace(pixels=pixels), config)[0])(
        batch.pixels
    )
    direction = safe_normalize(gradient.reshape(gradient.shape[0], -1)).reshape(gradient.shape)
    distance = radius * jax.random.uniform(key, (gradient.shape[0], 1, 1, 1))
    return batch._replace(pixels=batch.pixels + distance * direction)


def make_optimizer(steps: int, *, rate: float = 1.0) -> optax.GradientTransformation:
    """Return Muon for matrices and convolutions, AdamW for the rest.

    The rate rises for 2 % of the steps, stays, and falls linearly to zero over the last 45 %. `rate` scales
    all of it.
    """

    def schedule(peak: float) -> optax.Schedule:
        rise = optax.linear_schedule(0.0, peak, max(steps // 50, 1))
        fall = optax.linear_schedule(peak, 0.0, int(steps * 0.45))
        return optax.join_schedules([rise, fall], [int(steps * 0.55)])

    return optax.contrib.muon(
        schedule(0.01 * rate),
        adam_learning_rate=schedule(0.002 * rate),
        adam_weight_decay=0.01,
        muon_weight_dimension_numbers=muon_dimensions,
    )


def muon_dimensions(params: optax.Params) -> optax.Params:
    """Return which axes of each leaf Muon takes as a matrix's rows and columns; None leaves it to AdamW.

    A convolution [rows, columns, in, out] maps patches, its first three axes together, to channels.
    """
    shapes = {
        2: optax.contrib.MuonDimensionNumbers(0, 1),
        4: optax.contrib.MuonDimensionNumbers((0, 1, 2), 3),
    }
    return jax.tree.map(lambda leaf: shapes.get(leaf.ndim), params)


@partial(jax.jit, static_argnames=("config", "optimizer"), donate_argnames="state")
def train_step(
    state: TrainState,
    batch: Batch,
    key: PRNGKeyArray,
    *,
    radius: Float[Array, ""],
    config: ClipConfig,
    optimizer: optax.GradientTransformation,
) -> tuple[TrainState, Metrics]:
    """Take one optimiser step on a batch, perturbed by up to `radius` where that is above zero."""
    attacked = jax.lax.cond(
        radius > 0, lambda: perturb(key, state.params, batch, config, radius), lambda: batch
    )
    value_and_grad = jax.value_and_grad(contrastive_loss, has_aux=True)
    (loss, accuracy), gradient = value_and_grad(state.params, attacked, config)
    updates, optimizer_state = optimizer.update(gradient, state.optimizer, state.params)
    params: Params = cast(Params, optax.apply_updates(state.params, updates))
    params = params | {"logit_scale": jnp.minimum(params["logit_scale"], MAX_LOG_SCALE)}
    return TrainState(params, optimizer_state, state.step + 1), Metrics(loss, accuracy)
