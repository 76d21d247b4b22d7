"""Preprocessing of traced images and its gradient: Wordlight."""

from typing import Any

import jax
import jax.numpy as jnp

from bench.inputs import images_and_weights
from bench.serve import Run, serve
from wordlight.clip.image_spec import ImageSpec
from wordlight.clip.preprocess import preprocess

SPEC = ImageSpec((224, 224))


@jax.jit
def step(images: jax.Array, weights: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return a weighted mean of the pixels and its gradient at the images."""
    return jax.value_and_grad(lambda images: jnp.mean(preprocess(images, SPEC) * weights))(images)


def prepare(task: dict[str, Any]) -> Run:
    """Draw the images."""
    images, weights = map(jnp.asarray, images_and_weights(task["batch"], task["size"], 224))
    return lambda: float(jax.block_until_ready(step(images, weights))[0])


if __name__ == "__main__":
    serve(prepare)
