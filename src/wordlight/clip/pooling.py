"""From a vision transformer's tokens to one feature vector.

Notation: b batch, n tokens, d width, e embedding, q queries.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from wordlight.clip.config import VitConfig
from wordlight.clip.layers import (
    Params,
    dot_product_attention,
    init_linear,
    init_norm,
    layer_norm,
    linear,
    mlp,
)
from wordlight.typing import TokenFeatures


def pooled_features(params: Params, tokens: TokenFeatures, config: VitConfig) -> Float[Array, "b e"]:
    """Return the normed summary of the tokens after the last block, as `config.pooling` asks.

    Of a pooled class token, `tokens` may hold that one alone.
    """
    epsilon = config.transformer.norm_epsilon
    if config.pooling == "queries":
        return layer_norm(params["norm_post"], _query_pool(params["pool"], tokens, config), epsilon)
    if config.pooling == "token":
        return layer_norm(params["norm_post"], tokens[:, 0], epsilon)
    if config.pooling == "average" and config.norm_after_pool:
        return layer_norm(params["norm_post"], _patches(tokens, config).mean(1), epsilon)
    normed = layer_norm(params["norm_post"], tokens, epsilon)
    if config.pooling == "average":
        return _patches(normed, config).mean(1)
    return _latent_pool(params["pool"], normed, config)


def _patches(tokens: TokenFeatures, config: VitConfig) -> Float[Array, "b p d"]:
    return tokens[:, 1:] if config.class_token else tokens


def _latent_pool(params: Params, tokens: TokenFeatures, config: VitConfig) -> Float[Array, "b d"]:
    """Let one learned token attend to all others, and refine it (MAP, arXiv 2106.04560)."""
    latent = jnp.broadcast_to(params["latent"][None], (tokens.shape[0], 1, tokens.shape[2]))
    pooled = cross_attention(params["attention"], latent, tokens, config.pool_heads)
    normed = layer_norm(params["norm"], pooled, config.transformer.norm_epsilon)
    return (pooled + mlp(params["mlp"], normed, config.transformer.activation))[:, 0]


def _query_pool(params: Params, tokens: TokenFeatures, config: VitConfig) -> Float[Array, "b e"]:
    """Let learned queries attend to all tokens (CoCa, arXiv 2205.01917, section 3.2); the first is pooled."""
    epsilon = config.transformer.norm_epsilon
    query = layer_norm(params["norm_query"], params["queries"][:1], epsilon)
    repeated = jnp.broadcast_to(query[None], (tokens.shape[0], *query.shape))
    context = layer_norm(params["norm_key"], tokens, epsilon)
    return cross_attention(params["attention"], repeated, context, config.pool_heads)[:, 0]


def cross_attention(
    params: Params, query: Float[Array, "b q e"], context: TokenFeatures, heads: int
) -> Float[Array, "b q e"]:
    """Attend from queries to a context (arXiv 1706.03762, section 3.2.2).

    Args:
        params: `out`, and `qkv` [e, 3 e] where both have the same width; else `query` [e, e], `key` and
            `value` [d, e], and their joined `bias` [3 e].
        query: who looks.
        context: what is looked at.
        heads: number of heads.
    """
    if "qkv" in params:
        weights, bias = jnp.split(params["qkv"]["weight"], 3, axis=-1), params["qkv"]["bias"]
    else:
        weights, bias = [params[name] for name in ("query", "key", "value")], params["bias"]
    queries, keys, values = (
        linear({"weight": weight, "bias": part}, x)
        for weight, part, x in zip(weights, jnp.split(bias, 3), (query, context, context), strict=True)
    )
    mixed = dot_product_attention(queries, keys, values, heads, dtype=weights[0].dtype)
    return linear(params["out"], mixed)


def init_pool(key: PRNGKeyArray, config: VitConfig, embed_dim: int) -> Params:
    """Return random weights of the pooling, none for those that have none."""
    if config.pooling == "latent":
        return _init_latent_pool(key, config)
    return _init_query_pool(key, config, embed_dim) if config.pooling == "queries" else {}


def _init_latent_pool(key: PRNGKeyArray, config: VitConfig) -> Params:
    d, keys = config.transformer.width, jax.random.split(key, 5)
    return {
        "latent": d**-0.5 * jax.random.normal(keys[0], (1, d)),
        "attention": {"qkv": init_linear(keys[1], d, 3 * d), "out": init_linear(keys[2], d, d)},
        "norm": init_norm(d),
        "mlp": {
            "up": init_linear(keys[3], d, config.transformer.mlp_width),
            "down": init_linear(keys[4], config.transformer.mlp_width, d),
        },
    }


def _init_query_pool(key: PRNGKeyArray, config: VitConfig, embed_dim: int) -> Params:
    d, e, keys = config.transformer.width, embed_dim, jax.random.split(key, 5)
    names = ("query", "key", "value")
    layers = {n: init_linear(k, e if n == "query" else d, e) for n, k in zip(names, keys[1:4], strict=True)}
    if d == e:
        joined = jnp.concatenate([layers[n]["weight"] for n in names], axis=-1)
        attention: Params = {"qkv": {"weight": joined, "bias": jnp.zeros(3 * e)}}
    else:
        attention = {n: layers[n]["weight"] for n in names} | {"bias": jnp.zeros(3 * e)}
    return {
        "queries": jax.random.normal(keys[0], (config.pool_queries, e)),
        "norm_query": init_norm(e),
        "norm_key": init_norm(d),
        "attention": attention | {"out": init_linear(keys[4], e, e)},
    }
