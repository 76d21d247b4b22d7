"""CLIP's ModifiedResNet with attention pooling (arXiv 2103.00020, section 2.4).

It differs from the usual ResNet by a stem of three convolutions, by average pooling in front of every strided
convolution, and by a last pooling that is attention from the mean feature to all positions.

Convolution weights are [rows, columns, in, out]. Batch norm is a function argument, so that a trainer can use
the statistics of its batch while inference uses the stored ones.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from wordlight.clip.config import ResNetConfig
from wordlight.clip.layers import Params, dot_product_attention, init_linear, linear
from wordlight.numerics import at_least_float32
from wordlight.typing import Pixels

Norm = Callable[[Params, Float[Array, "b h w c"], float], Float[Array, "b h w c"]]
EXPANSION = 4


def stored_norm(params: Params, x: Float[Array, "b h w c"], epsilon: float) -> Float[Array, "b h w c"]:
    """Batch norm with the stored mean and variance (arXiv 1502.03167, algorithm 2)."""
    # The mean goes first: folded into the shift, it would cancel there and cost digits.
    scale = params["scale"] * jax.lax.rsqrt(at_least_float32(params["variance"]) + epsilon)
    centred = at_least_float32(x) - params["mean"][None, None, None, :]
    normed = centred * scale[None, None, None, :] + params["bias"][None, None, None, :]
    return normed.astype(x.dtype)


def batch_norm(params: Params, x: Float[Array, "b h w c"], epsilon: float) -> Float[Array, "b h w c"]:
    """Batch norm with the statistics of the batch itself, for training (arXiv 1502.03167, algorithm 1)."""
    mean, variance = batch_statistics(x)
    return stored_norm(params | {"mean": mean, "variance": variance}, x, epsilon)


def batch_statistics(x: Float[Array, "b h w c"]) -> tuple[Float[Array, "c"], Float[Array, "c"]]:
    """Return the mean and variance of every channel."""
    mean = x.mean((0, 1, 2))
    return mean, jnp.mean(jnp.square(x - mean[None, None, None, :]), (0, 1, 2))


def convolve(weight: Float[Array, "r s i o"], x: Float[Array, "b h w i"], *, stride: int = 1) -> Array:
    """Convolve with zero padding that keeps the size at stride 1."""
    pad = weight.shape[0] // 2
    return jax.lax.conv_general_dilated(
        x, weight, (stride, stride), [(pad, pad), (pad, pad)], dimension_numbers=("NHWC", "HWIO", "NHWC")
    )


def average_pool(x: Float[Array, "b h w c"], size: int) -> Float[Array, "b i j c"]:
    """Average non-overlapping squares; rows and columns that do not fill one are dropped."""
    b, height, width, channels = x.shape
    rows, columns = height // size, width // size
    x = x[:, : rows * size, : columns * size]
    return x.reshape(b, rows, size, columns, size, channels).mean((2, 4))


def attention_pool(params: Params, x: Float[Array, "b h w c"], heads: int) -> Float[Array, "b e"]:
    """Attend from the mean feature to the mean and every position, and project."""
    tokens = x.reshape(x.shape[0], x.shape[1] * x.shape[2], x.shape[3])
    tokens = jnp.concatenate([tokens.mean(1, keepdims=True), tokens], axis=1) + params["positions"][None]
    query = linear(params["query"], tokens[:, :1])
    key, value = linear(params["key"], tokens), linear(params["value"], tokens)
    dtype = params["query"]["weight"].dtype
    return linear(params["out"], dot_product_attention(query, key, value, heads, dtype=dtype)[:, 0])


def bottleneck(params: Params, x: Float[Array, "b h w c"], stride: int, norm: Norm, epsilon: float) -> Array:
    """One residual bottleneck; the stride is an average pooling in both of its branches."""
    hidden = jax.nn.relu(norm(params["norm1"], convolve(params["conv1"], x), epsilon))
    hidden = jax.nn.relu(norm(params["norm2"], convolve(params["conv2"], hidden), epsilon))
    if stride > 1:
        hidden, x = average_pool(hidden, stride), average_pool(x, stride)
    hidden = norm(params["norm3"], convolve(params["conv3"], hidden), epsilon)
    if "shortcut" in params:
        x = norm(params["shortcut_norm"], convolve(params["shortcut"], x), epsilon)
    return jax.nn.relu(hidden + x)


def resnet_features(
    params: Params,
    pixels: Pixels,
    config: ResNetConfig,
    *,
    norm: Norm = stored_norm,
) -> Float[Array, "b e"]:
    """Return projected, unnormalised image features of preprocessed pixels.

    Args:
        params: the tower's weights.
        pixels: preprocessed images.
        config: the tower's sizes.
        norm: `stored_norm` for inference, `batch_norm` for training.
    """
    x, epsilon = pixels.astype(params["stem"][0]["conv"].dtype), config.norm_epsilon
    for layer, stride in zip(params["stem"], (2, 1, 1), strict=True):
        x = jax.nn.relu(norm(layer["norm"], convolve(layer["conv"], x, stride=stride), epsilon))
    x = average_pool(x, 2)
    for stage, blocks in enumerate(params["stages"]):
        for index, block in enumerate(blocks):
            stride = 2 if stage > 0 and index == 0 else 1
            x = bottleneck(block, x, stride, norm, epsilon)
    return attention_pool(params["pool"], x, config.heads)


def init_resnet(key: PRNGKeyArray, config: ResNetConfig, embed_dim: int) -> Params:
    """Return random weights of the tower."""
    stem_key, stage_key, pool_key = jax.random.split(key, 3)
    return {
        "stem": _init_stem(stem_key, config.width),
        "stages": _init_stages(stage_key, config),
        "pool": _init_pool(pool_key, config, embed_dim),
    }


def _init_conv(key: PRNGKeyArray, size: int, inputs: int, outputs: int) -> Float[Array, "r s i o"]:
    return (2 / (size * size * inputs)) ** 0.5 * jax.random.normal(key, (size, size, inputs, outputs))


def _init_batch_norm(channels: int, scale: float = 1.0) -> Params:
    zeros, ones = jnp.zeros(channels), jnp.ones(channels)
    return {"scale": scale * ones, "bias": zeros, "mean": zeros, "variance": ones}


def _init_stem(key: PRNGKeyArray, width: int) -> list[Params]:
    channels = (3, width // 2, width // 2, width)
    pairs = zip(jax.random.split(key, 3), channels[:-1], channels[1:], strict=True)
    return [{"conv": _init_conv(k, 3, i, o), "norm": _init_batch_norm(o)} for k, i, o in pairs]


def _init_stages(key: PRNGKeyArray, config: ResNetConfig) -> list[list[Params]]:
    stages, inputs = [], config.width
    for stage, (count, k) in enumerate(zip(config.blocks, jax.random.split(key, 4), strict=True)):
        planes, blocks = config.width * 2**stage, []
        for index, block_key in enumerate(jax.random.split(k, count)):
            blocks.append(_init_bottleneck(block_key, inputs, planes, shortcut=index == 0))
            inputs = planes * EXPANSION
        stages.append(blocks)
    return stages


def _init_bottleneck(key: PRNGKeyArray, inputs: int, planes: int, *, shortcut: bool) -> Params:
    keys, outputs = jax.random.split(key, 4), planes * EXPANSION
    params: Params = {
        "conv1": _init_conv(keys[0], 1, inputs, planes),
        "norm1": _init_batch_norm(planes),
        "conv2": _init_conv(keys[1], 3, planes, planes),
        "norm2": _init_batch_norm(planes),
        "conv3": _init_conv(keys[2], 1, planes, outputs),
        "norm3": _init_batch_norm(outputs, scale=0.25),
    }
    if shortcut:
        params["shortcut"] = _init_conv(keys[3], 1, inputs, outputs)
        params["shortcut_norm"] = _init_batch_norm(outputs)
    return params


def _init_pool(key: PRNGKeyArray, config: ResNetConfig, embed_dim: int) -> Params:
    keys, d = jax.random.split(key, 5), config.features
    rows, columns = config.grid
    params = {name: init_linear(k, d, d) for name, k in zip(("query", "key", "value"), keys[:3], strict=True)}
    positions = d**-0.5 * jax.random.normal(keys[3], (1 + rows * columns, d))
    return params | {"out": init_linear(keys[4], d, embed_dim), "positions": positions}
