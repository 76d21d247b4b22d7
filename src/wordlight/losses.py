"""Losses on embeddings; no model, no images.

Embeddings are unit vectors along the last axis, `[..., embed]`, as `ClipModel` returns them. Every loss is
minimised to make image and text agree. Notation: p prompts, n negatives, e embedding.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float

from wordlight.numerics import safe_norm, safe_normalize


def cosine_similarity(first: Float[Array, "*#b e"], second: Float[Array, "*#b e"]) -> Float[Array, "*b"]:
    """Return the cosine of the angle between unit vectors, in [-1, 1]."""
    return jnp.sum(first * second, axis=-1)


def cosine(image_embeds: Float[Array, "*#b e"], text_embeds: Float[Array, "*#b e"]) -> Float[Array, "*b"]:
    """Return minus the cosine similarity, in [-1, 1] (Dream Fields, arXiv 2112.01455, eq. 3)."""
    return -cosine_similarity(image_embeds, text_embeds)


def spherical(image_embeds: Float[Array, "*#b e"], text_embeds: Float[Array, "*#b e"]) -> Float[Array, "*b"]:
    """Return half the squared angle between unit vectors, in [0, pi^2 / 2].

    The distance of CLIP-guided image synthesis (VQGAN-CLIP, arXiv 2204.08583). Written as
    `2 arcsin(|a - b| / 2)^2`, which stays exact for small angles. For opposite vectors the slope of the arc
    sine is infinite; the argument is held just below one there.
    """
    half_chord = jnp.minimum(safe_norm(image_embeds - text_embeds) / 2, 1 - 1e-6)
    return 2 * jnp.square(jnp.arcsin(half_chord))


def consistency(
    image_embeds: Float[Array, "*#b e"], other_embeds: Float[Array, "*#b e"]
) -> Float[Array, "*b"]:
    """Return half the squared distance of two images' embeddings, in [0, 2]: one minus their cosine.

    The semantic consistency loss of DietNeRF, arXiv 2104.00677, section 4.1: a view that no photograph shows
    should mean the same to the model as one that is known. Unlike one minus the cosine, it is exact and not
    rounded to zero for embeddings that nearly agree.
    """
    return jnp.sum(jnp.square(image_embeds - other_embeds), axis=-1) / 2


def directional(
    image_embeds: Float[Array, "*#b e"],
    source_image_embeds: Float[Array, "*#b e"],
    text_embeds: Float[Array, "*#b e"],
    source_text_embeds: Float[Array, "*#b e"],
    *,
    epsilon: float = 1e-3,
) -> Float[Array, "*b"]:
    """Return one minus the cosine between the images' and the texts' change, in [0, 2].

    StyleGAN-NADA, arXiv 2108.00946, eq. 2, but for images that hardly changed. There the plain cosine turns
    the rounding of the embeddings into a direction of unit length; here the image's change is divided by
    `sqrt(|change|^2 + epsilon^2)`. An edit that starts at its source so has a loss of one, and a gradient of
    length `1 / epsilon` that points where the text went. Where the text did not change the loss is one, with
    zero gradient.

    Args:
        image_embeds: images after the change.
        source_image_embeds: the same before it.
        text_embeds: texts after the change.
        source_text_embeds: texts before it.
        epsilon: length of a change of the image that counts as hardly any; unlike images are 0.1 and more
            apart, and float32 rounds at about 1e-6.
    """
    image_change = image_embeds - source_image_embeds
    length = jnp.sqrt(jnp.sum(jnp.square(image_change), axis=-1, keepdims=True) + epsilon**2)
    text_change = safe_normalize(text_embeds - source_text_embeds)
    return 1 - cosine_similarity(image_change / length, text_change)


def softmax_contrastive(
    image_embeds: Float[Array, "*b e"],
    text_embeds: Float[Array, "e"],
    negative_embeds: Float[Array, "n e"],
    *,
    scale: ArrayLike,
) -> Float[Array, "*b"]:
    """Return the cross-entropy of the prompt against the negatives (CLIP, arXiv 2103.00020, figure 3, one
    row).

    Args:
        image_embeds: images.
        text_embeds: the prompt they should show.
        negative_embeds: what they should not show; none gives a loss of zero.
        scale: inverse temperature of the logits, `exp(logit_scale)` for the model's own.
    """
    candidates = jnp.concatenate([text_embeds[None], negative_embeds])
    logits = jnp.asarray(scale) * (image_embeds @ candidates.T)
    return -jax.nn.log_softmax(logits, axis=-1)[..., 0]


def sigmoid(
    image_embeds: Float[Array, "*#b e"],
    text_embeds: Float[Array, "*#b e"],
    *,
    scale: ArrayLike,
    bias: ArrayLike,
    match: ArrayLike = 1.0,
) -> Float[Array, "*b"]:
    """Return the sigmoid loss of pairs (SigLIP, arXiv 2303.15343, eq. 1, without the mean).

    Args:
        image_embeds: images.
        text_embeds: texts.
        scale: inverse temperature, `exp(logit_scale)`.
        bias: added to the logits.
        match: 1 for pairs that belong together, -1 for others.
    """
    logits = jnp.asarray(scale) * cosine_similarity(image_embeds, text_embeds) + jnp.asarray(bias)
    return -jax.nn.log_sigmoid(jnp.asarray(match) * logits)
