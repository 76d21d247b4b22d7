"""Preprocessing of traced images and its gradient: `jax.image.resize`, crop and normalisation by hand."""

from typing import Any

import jax
import jax.numpy as jnp

from bench.inputs import images_and_weights
from bench.serve import Run, serve

MEAN = jnp.array([0.48145466, 0.4578275, 0.40821073])
STD = jnp.array([0.26862954, 0.26130258, 0.27577711])


def preprocess(images: jax.Array, size: int) -> jax.Array:
    """Resize the shorter side, crop the middle, normalise."""
    batch, height, width, channels = images.shape
    shorter = min(height, width)
    rows, columns = round(height * size / shorter), round(width * size / shorter)
    resized = jax.image.resize(images, (batch, rows, columns, channels), "bicubic", antialias=True)
    top, left = (rows - size) // 2, (columns - size) // 2
    return (resized[:, top : top + size, left : left + size] - MEAN) / STD


@jax.jit
def step(images: jax.Array, weights: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return a weighted mean of the pixels and its gradient at the images."""
    return jax.value_and_grad(lambda images: jnp.mean(preprocess(images, 224) * weights))(images)


def prepare(task: dict[str, Any]) -> Run:
    """Draw the images."""
    images, weights = map(jnp.asarray, images_and_weights(task["batch"], task["size"], 224))
    return lambda: float(jax.block_until_ready(step(images, weights))[0])


if __name__ == "__main__":
    serve(prepare)
