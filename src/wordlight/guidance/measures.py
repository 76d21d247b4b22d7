"""The losses of every view against every target, as tables.

Notation: p targets, n negatives, e embedding, v views of an image.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float

from wordlight import losses


def measured(
    measure: Callable[[Array, Array], Array],
    embeds: Float[Array, "*v e"],
    targets: Float[Array, "p e"],
    negatives: Float[Array, "n e"],
) -> Float[Array, "*v p"]:
    """Return a measure of distance to each target, minus its mean over the negatives."""
    wanted = measure(embeds[..., None, :], _lifted(targets, embeds.ndim))
    if not len(negatives):
        return wanted
    unwanted = measure(embeds[..., None, :], _lifted(negatives, embeds.ndim))
    return wanted - jnp.mean(unwanted, axis=-1, keepdims=True)


def softmax(
    embeds: Float[Array, "*v e"],
    targets: Float[Array, "p e"],
    negatives: Float[Array, "n e"],
    *,
    scale: ArrayLike,
) -> Float[Array, "*v p"]:
    """Return the cross-entropy of each target against all negatives."""

    def one(target: Float[Array, "e"]) -> Float[Array, "*v"]:
        return losses.softmax_contrastive(embeds, target, negatives, scale=scale)

    return jnp.moveaxis(jax.vmap(one)(targets), 0, -1)


def sigmoid(
    embeds: Float[Array, "*v e"],
    targets: Float[Array, "p e"],
    negatives: Float[Array, "n e"],
    *,
    scale: ArrayLike,
    bias: ArrayLike,
) -> Float[Array, "*v p"]:
    """Return the sigmoid loss of each target as a match, plus that of every negative as none.

    One row of SigLIP's table of pairs (arXiv 2303.15343, eq. 1), summed as there.
    """
    images = embeds[..., None, :]
    wanted = losses.sigmoid(images, _lifted(targets, embeds.ndim), scale=scale, bias=bias)
    against = _lifted(negatives, embeds.ndim)
    unwanted = losses.sigmoid(images, against, scale=scale, bias=bias, match=-1.0)
    return wanted + jnp.sum(unwanted, axis=-1, keepdims=True)


def directional(
    embeds: Float[Array, "*v e"],
    source_embeds: Float[Array, "*#v e"],
    targets: Float[Array, "p e"],
    source_targets: Float[Array, "p e"],
) -> Float[Array, "*v p"]:
    """Return the directional loss from the source image and each source text."""
    images, sources = embeds[..., None, :], source_embeds[..., None, :]
    texts, source_texts = _lifted(targets, embeds.ndim), _lifted(source_targets, embeds.ndim)
    return losses.directional(images, sources, texts, source_texts)


def _lifted(embeds: Float[Array, "p e"], rank: int) -> Array:
    """Return `[p, e]` with leading axes of length one, to go with embeddings of the given rank."""
    return embeds.reshape((1,) * (rank - 1) + embeds.shape)
