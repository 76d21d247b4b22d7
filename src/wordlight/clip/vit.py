"""CLIP's vision transformer.

Notation: b batch, p patches, d width, e embedding.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from wordlight.clip.config import VitConfig
from wordlight.clip.layers import (
    Params,
    init_linear,
    init_norm,
    init_transformer,
    layer_norm,
    linear,
    transformer,
)
from wordlight.clip.pooling import init_pool, pooled_features
from wordlight.typing import Pixels


def patchify(pixels: Pixels, patch_size: int) -> Float[Array, "b p i"]:
    """Cut images into flat square patches, row by row; features are ordered (row, column, channel).

    Pixels that do not fill a patch are dropped, as a strided convolution does.
    """
    b, height, width, channels = pixels.shape
    rows, columns = height // patch_size, width // patch_size
    patches = pixels[:, : rows * patch_size, : columns * patch_size].reshape(
        b, rows, patch_size, columns, patch_size, channels
    )
    return patches.swapaxes(2, 3).reshape(b, rows * columns, patch_size * patch_size * channels)


def vit_tokens(params: Params, pixels: Pixels, config: VitConfig) -> Float[Array, "b q d"]:
    """Return the tokens that are pooled, after the last block, before the final norm.

    Those are all, the class token first, or the class token alone where that is pooled.
    """
    tokens = linear(params["patch"], patchify(pixels, config.patch_size))
    if config.class_token:
        first = params["class_token"][None, None, :]
        first = jnp.broadcast_to(first, (tokens.shape[0], 1, tokens.shape[2]))
        tokens = jnp.concatenate([first, tokens], axis=1)
    tokens = tokens + params["positions"][None]
    if config.pre_norm:
        tokens = layer_norm(params["norm_pre"], tokens, config.transformer.norm_epsilon)
    read = 0 if config.pooling == "token" else None
    return transformer(params["blocks"], tokens, config.transformer, read=read)


def vit_features(params: Params, pixels: Pixels, config: VitConfig) -> Float[Array, "b e"]:
    """Return projected, unnormalised image features of preprocessed pixels."""
    features = pooled_features(params, vit_tokens(params, pixels, config), config)
    return features @ params["projection"] if config.projection else features


def init_vit(key: PRNGKeyArray, config: VitConfig, embed_dim: int) -> Params:
    """Return random weights of the tower."""
    keys, d = jax.random.split(key, 6), config.transformer.width
    patch = init_linear(keys[0], 3 * config.patch_size**2, d)
    last = embed_dim if config.pooling == "queries" else d
    pool = init_pool(keys[5], config, embed_dim)
    params: Params = {
        "patch": patch if config.patch_bias else {"weight": patch["weight"]},
        "positions": d**-0.5 * jax.random.normal(keys[2], (config.tokens, d)),
        "blocks": init_transformer(keys[3], config.transformer),
        "norm_post": init_norm(last),
    }
    if config.class_token:
        params["class_token"] = d**-0.5 * jax.random.normal(keys[1], (d,))
    if config.pre_norm:
        params["norm_pre"] = init_norm(d)
    if config.projection:
        params["projection"] = d**-0.5 * jax.random.normal(keys[4], (last, embed_dim))
    return params | ({"pool": pool} if pool else {})
