"""The text transformer.

Notation: b batch, n tokens, d width, e embedding.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from wordlight.clip.config import TextConfig
from wordlight.clip.layers import Params, Places, init_norm, init_transformer, layer_norm, transformer
from wordlight.numerics import at_least_float32


def end_positions(ids: Int[Array, "b n"], end_id: int | None) -> Int[Array, "b"]:
    """Return where each sequence is pooled: at its first end token, or at its largest id if none is named."""
    return jnp.argmax(ids if end_id is None else ids == end_id, axis=-1)


def text_features(
    params: Params, ids: Int[Array, "b n"], config: TextConfig, *, mask: Bool[Array, "b n"] | None = None
) -> Float[Array, "b e"]:
    """Return projected, unnormalised text features.

    Args:
        params: the tower's weights.
        ids: token ids, at most `config.context_length` of them. A tower that pools the last position was
            trained on full rows, so shorter ones are filled up with `config.pad_id`.
        config: the tower's sizes.
        mask: true for tokens that may be looked at. In a causal tower that pools the end token, padding
            behind it changes nothing.
    """
    if config.pooling == "last":
        ids, mask = _filled(ids, mask, config)
    tokens = at_least_float32(params["tokens"][ids])
    if config.pooling == "class":
        last = jnp.broadcast_to(params["class_token"][None, None, :], (len(ids), 1, tokens.shape[2]))
        tokens = jnp.concatenate([tokens, last], axis=1)
    tokens = tokens + params["positions"][None, : tokens.shape[1]]
    visible, read = _visible(ids, mask, config), _pooled_place(ids, config)
    tokens = transformer(params["blocks"], tokens, config.transformer, mask=visible, read=read)
    pooled = layer_norm(params["norm"], tokens[:, 0], config.transformer.norm_epsilon)
    if config.projection:
        pooled = pooled @ params["projection"]
    return pooled + params["projection_bias"][None, :] if config.projection_bias else pooled


def _filled(
    ids: Int[Array, "b n"], mask: Bool[Array, "b n"] | None, config: TextConfig
) -> tuple[Int[Array, "b m"], Bool[Array, "b m"] | None]:
    more = [(0, 0), (0, config.context_length - ids.shape[1])]
    ids = jnp.pad(ids, more, constant_values=config.pad_id)
    return ids, None if mask is None else jnp.pad(mask, more)


def _visible(
    ids: Int[Array, "b n"], mask: Bool[Array, "b n"] | None, config: TextConfig
) -> Bool[Array, "#b #m m"] | None:
    """Return which tokens (columns) each token (row) may look at; None for all."""
    length = ids.shape[1] + (config.pooling == "class")
    visible = jnp.tril(jnp.ones((1, length, length), bool)) if config.causal else None
    if config.pooling == "class":
        # OpenCLIP puts the class token's own column first in this mask, although the token comes last.
        own = jnp.ones((len(ids), 1), bool)
        mask = jnp.concatenate([own, ids != config.pad_id], axis=1)
    if mask is None:
        return visible
    return mask[:, None, :] if visible is None else visible & mask[:, None, :]


def _pooled_place(ids: Int[Array, "b n"], config: TextConfig) -> Places:
    if config.pooling == "end":
        return end_positions(ids, config.end_id)
    return 0 if config.pooling == "first" else -1


def init_text(key: PRNGKeyArray, config: TextConfig, embed_dim: int) -> Params:
    """Return random weights of the tower, with CLIP's scales (arXiv 2103.00020)."""
    keys, d = jax.random.split(key, 5), config.transformer.width
    params: Params = {
        "tokens": 0.02 * jax.random.normal(keys[0], (config.vocab_size, d)),
        "positions": 0.01 * jax.random.normal(keys[1], (config.tokens, d)),
        "blocks": init_transformer(keys[2], config.transformer),
        "norm": init_norm(d),
    }
    if config.pooling == "class":
        params["class_token"] = 0.01 * jax.random.normal(keys[4], (d,))
    if config.projection:
        params["projection"] = d**-0.5 * jax.random.normal(keys[3], (d, embed_dim))
    if config.projection_bias:
        params["projection_bias"] = jnp.zeros(embed_dim)
    return params
