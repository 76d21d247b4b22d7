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


def patchify(pixels: Float[Array, "b height width 3"], patch_size: int) -> Float[Array, "b p i"]:
    """Cut images into flat square patches, row by row; features are ordered (row, column, channel).

    Pixels that do not fill a patch are dropped, as a strided convolution does.
    """
    b, height, width, channels = pixels.shape
    rows, columns = height // patch_size, width // patch_size
    patches = pixels[:, : rows * patch_size, : columns * patch_size].reshape(
        b, rows, patch_size, columns, patch_size, channels
    )
    return patches.swapaxes(2, 3).reshape(b, rows * columns, patch_size * patch_size * channels)


def vit_tokens(
    params: Params, pixels: Float[Array, "b height width 3"], config: VitConfig
) -> Float[Array, "b n d"]:
    """Return the tokens after the last block, the class token first, before the final norm."""
    patches = linear(params["patch"], patchify(pixels, config.patch_size))
    first = jnp.broadcast_to(params["class_token"][None, None, :], (patches.shape[0], 1, patches.shape[2]))
    tokens = jnp.concatenate([first, patches], axis=1) + params["positions"][None]
    if config.pre_norm:
        tokens = layer_norm(params["norm_pre"], tokens, config.transformer.norm_epsilon)
    return transformer(params["blocks"], tokens, config.transformer)


def vit_features(
    params: Params, pixels: Float[Array, "b height width 3"], config: VitConfig
) -> Float[Array, "b e"]:
    """Return projected, unnormalised image features of preprocessed pixels."""
    pooled = vit_tokens(params, pixels, config)[:, 0]
    return layer_norm(params["norm_post"], pooled, config.transformer.norm_epsilon) @ params["projection"]


def init_vit(key: PRNGKeyArray, config: VitConfig, embed_dim: int) -> Params:
    """Return random weights of the tower."""
    keys, d = jax.random.split(key, 5), config.transformer.width
    patch = init_linear(keys[0], 3 * config.patch_size**2, d)
    rows, columns = config.grid
    params = {
        "patch": patch if config.patch_bias else {"weight": patch["weight"]},
        "class_token": d**-0.5 * jax.random.normal(keys[1], (d,)),
        "positions": d**-0.5 * jax.random.normal(keys[2], (1 + rows * columns, d)),
        "blocks": init_transformer(keys[3], config.transformer),
        "norm_post": init_norm(d),
        "projection": d**-0.5 * jax.random.normal(keys[4], (d, embed_dim)),
    }
    return params | ({"norm_pre": init_norm(d)} if config.pre_norm else {})
