"""Preprocessing of traced images and its gradient: Wordlight, or by hand with `jax.image.resize`."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from bench.inputs import images_and_weights
from bench.serve import Run, serve
from wordlight.clip.image_spec import ImageSpec
from wordlight.clip.preprocess import preprocess

SIZE = 224
MEAN = jnp.array([0.48145466, 0.4578275, 0.40821073])
STD = jnp.array([0.26862954, 0.26130258, 0.27577711])


def by_hand(images: jax.Array) -> jax.Array:
    """Resize the shorter side, crop the middle, normalise."""
    batch, height, width, channels = images.shape
    shorter = min(height, width)
    rows, columns = round(height * SIZE / shorter), round(width * SIZE / shorter)
    resized = jax.image.resize(images, (batch, rows, columns, channels), "bicubic", antialias=True)
    top, left = (rows - SIZE) // 2, (columns - SIZE) // 2
    return (resized[:, top : top + SIZE, left : left + SIZE] - MEAN) / STD


WAYS = {"wordlight": partial(preprocess, spec=ImageSpec((SIZE, SIZE))), "by hand": by_hand}


def prepare(task: dict[str, Any]) -> Run:
    """Draw the images and compile the asked way."""
    images, weights = map(jnp.asarray, images_and_weights(task["batch"], task["size"], SIZE))
    way = WAYS[task["way"]]

    @jax.jit
    def step(images: jax.Array, weights: jax.Array) -> tuple[jax.Array, jax.Array]:
        return jax.value_and_grad(lambda images: jnp.mean(way(images) * weights))(images)

    return lambda: float(jax.block_until_ready(step(images, weights))[0])


if __name__ == "__main__":
    serve(prepare)
