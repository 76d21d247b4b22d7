"""Layers that both towers share: linear maps, layer norm, activations, attention, the transformer stack.

Notation: b batch, n tokens, d width, h heads, k features of a head, m MLP width. A linear layer is a
dictionary with `weight` [in, out] and `bias` [out]; a norm has `scale` and `bias` [d]. Products are computed
in the type of the weights; everything between them is float32.
"""

import math
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, Shaped

from wordlight.clip.config import Activation, TransformerConfig
from wordlight.clip.products import contract, matrix_product
from wordlight.numerics import at_least_float32
from wordlight.typing import TokenFeatures

Params = dict[str, Any]
Places = int | Int[Array, "b"]


def linear(params: Params, x: Float[Array, "*b i"]) -> Float[Array, "*b o"]:
    """Apply `x @ weight + bias`; a layer without a bias adds none."""
    y = matrix_product(x, params["weight"])
    if "bias" not in params:
        return y
    return y + jnp.expand_dims(params["bias"], range(y.ndim - 1))


def layer_norm(params: Params, x: Float[Array, "*b d"], epsilon: float) -> Float[Array, "*b d"]:
    """Normalise the last axis to zero mean and unit variance, scale and shift (arXiv 1607.06450, eq. 4)."""
    wide = at_least_float32(x)
    centred = wide - wide.mean(-1, keepdims=True)
    variance = jnp.mean(jnp.square(centred), -1, keepdims=True)
    axes = range(x.ndim - 1)
    scaled = centred * jax.lax.rsqrt(variance + epsilon) * jnp.expand_dims(params["scale"], axes)
    return (scaled + jnp.expand_dims(params["bias"], axes)).astype(x.dtype)


def activate(x: Float[Array, "*b d"], activation: Activation) -> Float[Array, "*b d"]:
    """Apply the configured activation. The three GELUs differ by up to 0.02, enough to break parity."""
    if activation == "quick_gelu":
        return x * jax.nn.sigmoid(1.702 * x)
    return jax.nn.gelu(x, approximate=activation == "gelu_tanh")


def attention(
    params: Params,
    x: TokenFeatures,
    heads: int,
    mask: Bool[Array, "#b #n n"] | None,
    *,
    read: Places | None = None,
) -> Float[Array, "b q d"]:
    """Multi-head self-attention with a fused query-key-value product (arXiv 1706.03762, eq. 1).

    Args:
        params: `qkv` [d, 3 d] and `out` [d, d].
        x: tokens.
        heads: number of heads.
        mask: true where a query (rows) may look at a key (columns).
        read: place of the only token that looks; all do if it is None.
    """
    query, key, value = jnp.split(linear(params["qkv"], x), 3, axis=-1)
    if read is not None:
        query = token_at(query, read)
        mask = mask if mask is None or mask.shape[1] == 1 else token_at(mask, read)
    mixed = dot_product_attention(query, key, value, heads, dtype=params["qkv"]["weight"].dtype, mask=mask)
    return linear(params["out"], mixed)


def dot_product_attention(
    query: Float[Array, "b q d"],
    key: TokenFeatures,
    value: TokenFeatures,
    heads: int,
    *,
    dtype: Any = jnp.float32,
    mask: Bool[Array, "#b #q n"] | None = None,
) -> Float[Array, "b q d"]:
    """Split into heads, weigh the values by the scaled softmax of query-key products, join again.

    Products are computed in `dtype`, the softmax in float32.
    """
    features = query.shape[-1] // heads
    query, key, value = (x.reshape(*x.shape[:-1], heads, features) for x in (query, key, value))
    scores = contract("bqhk,bnhk->bhqn", query * features**-0.5, key, dtype=dtype)
    if mask is not None:
        scores = jnp.where(mask[:, None], scores, jnp.finfo(scores.dtype).min)
    mixed = contract("bhqn,bnhk->bqhk", jax.nn.softmax(scores, axis=-1), value, dtype=dtype)
    return mixed.reshape(*mixed.shape[:-2], heads * features)


def mlp(params: Params, x: Float[Array, "*b d"], activation: Activation) -> Float[Array, "*b d"]:
    """Apply `down(activation(up(x)))`."""
    return linear(params["down"], activate(linear(params["up"], x), activation))


def block(
    params: Params,
    x: TokenFeatures,
    config: TransformerConfig,
    mask: Bool[Array, "#b #n n"] | None,
    *,
    read: Places | None = None,
) -> Float[Array, "b q d"]:
    """One pre-norm transformer block, of all tokens or only of the one at `read`."""
    seen = layer_norm(params["norm1"], x, config.norm_epsilon)
    mixed = attention(params["attention"], seen, config.heads, mask, read=read)
    x = x if read is None else token_at(x, read)
    x = x + _layer_scale(params, "scale1", mixed)
    hidden = mlp(params["mlp"], layer_norm(params["norm2"], x, config.norm_epsilon), config.activation)
    return x + _layer_scale(params, "scale2", hidden)


def token_at(x: Shaped[Array, "#b n d"], read: Places) -> Shaped[Array, "#b 1 d"]:
    """Return the token at one place, or at a place for each sequence."""
    if isinstance(read, int):
        return x[:, read][:, None]
    return jnp.take_along_axis(x, read[:, None, None], axis=1)


def _layer_scale(params: Params, name: str, x: TokenFeatures) -> TokenFeatures:
    return x * params[name][None, None, :] if name in params else x


def transformer(
    blocks: list[Params],
    x: TokenFeatures,
    config: TransformerConfig,
    *,
    mask: Bool[Array, "#b #n n"] | None = None,
    read: Places | None = None,
) -> Float[Array, "b q d"]:
    """Apply the blocks in turn.

    Args:
        blocks: their weights.
        x: tokens.
        config: sizes.
        mask: true where a token (rows) may look at another (columns).
        read: place of the only token that is wanted, `[b, 1, d]`. The last block then computes the keys and
            values of the others and no more: of twelve blocks, a sixteenth of the work less.
    """
    *first, last = blocks
    for params in first:
        x = block(params, x, config, mask)
    return block(last, x, config, mask, read=read)


def init_norm(width: int) -> Params:
    """Return a norm that changes nothing but the statistics."""
    return {"scale": jnp.ones(width), "bias": jnp.zeros(width)}


def init_linear(key: PRNGKeyArray, inputs: int, outputs: int, *, std: float | None = None) -> Params:
    """Return a linear layer with normal weights, of variance 1 / inputs unless `std` is given."""
    std = 1 / math.sqrt(inputs) if std is None else std
    return {"weight": std * jax.random.normal(key, (inputs, outputs)), "bias": jnp.zeros(outputs)}


def init_transformer(key: PRNGKeyArray, config: TransformerConfig) -> list[Params]:
    """Return the blocks' weights, residual branches scaled down by depth as in CLIP (arXiv 2103.00020)."""
    return [_init_block(k, config) for k in jax.random.split(key, config.layers)]


def _init_block(key: PRNGKeyArray, config: TransformerConfig) -> Params:
    d, keys = config.width, jax.random.split(key, 4)
    residual_std = (d * 2 * config.layers) ** -0.5
    scales = {name: 1e-4 * jnp.ones(d) for name in ("scale1", "scale2")} if config.layer_scale else {}
    return scales | {
        "norm1": init_norm(d),
        "attention": {
            "qkv": init_linear(keys[0], d, 3 * d),
            "out": init_linear(keys[1], d, d, std=residual_std),
        },
        "norm2": init_norm(d),
        "mlp": {
            "up": init_linear(keys[2], d, config.mlp_width, std=(2 * d) ** -0.5),
            "down": init_linear(keys[3], config.mlp_width, d, std=residual_std),
        },
    }
