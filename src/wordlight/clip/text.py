"""CLIP's causal text transformer.

Notation: b batch, n tokens, d width, e embedding.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from wordlight.clip.config import TextConfig
from wordlight.clip.layers import Params, init_norm, init_transformer, layer_norm, transformer


def end_positions(ids: Int[Array, "b n"], end_id: int | None) -> Int[Array, "b"]:
    """Return where each sequence is pooled: at its first end token, or at its largest id if none is named."""
    return jnp.argmax(ids if end_id is None else ids == end_id, axis=-1)


def text_features(
    params: Params, ids: Int[Array, "b n"], config: TextConfig, *, mask: Bool[Array, "b n"] | None = None
) -> Float[Array, "b e"]:
    """Return projected, unnormalised text features.

    Args:
        params: the tower's weights.
        ids: token ids, at most `config.context_length` of them.
        config: the tower's sizes.
        mask: true for tokens that may be looked at. Padding behind the end token changes nothing, as the
            tower is causal and pooled at the end token.
    """
    length = ids.shape[1]
    tokens = params["tokens"][ids] + params["positions"][None, :length]
    visible = jnp.tril(jnp.ones((1, length, length), bool))
    if mask is not None:
        visible = visible & mask[:, None, :]
    tokens = transformer(params["blocks"], tokens, config.transformer, mask=visible)
    position = end_positions(ids, config.end_id)
    pooled = jnp.take_along_axis(tokens, position[:, None, None], axis=1)[:, 0]
    return layer_norm(params["norm"], pooled, config.transformer.norm_epsilon) @ params["projection"]


def init_text(key: PRNGKeyArray, config: TextConfig, embed_dim: int) -> Params:
    """Return random weights of the tower, with CLIP's scales (arXiv 2103.00020)."""
    keys, d = jax.random.split(key, 4), config.transformer.width
    return {
        "tokens": 0.02 * jax.random.normal(keys[0], (config.vocab_size, d)),
        "positions": 0.01 * jax.random.normal(keys[1], (config.context_length, d)),
        "blocks": init_transformer(keys[2], config.transformer),
        "norm": init_norm(d),
        "projection": d**-0.5 * jax.random.normal(keys[3], (d, embed_dim)),
    }
