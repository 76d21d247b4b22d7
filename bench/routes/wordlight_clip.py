"""CLIP's loss and its gradient at the pixels: Wordlight."""

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from bench.inputs import pixels_and_target
from bench.serve import Run, serve
from wordlight.clip.load import load


@jax.jit
def step(model: Any, pixels: jax.Array, target: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return minus the mean cosine to the target, and its gradient at the pixels."""

    def loss(pixels: jax.Array) -> jax.Array:
        return -jnp.mean(jnp.sum(model.encode_pixels(pixels, layout="CHW") * target[None], axis=-1))

    return jax.value_and_grad(loss)(pixels)


def prepare(task: dict[str, Any]) -> Run:
    """Load the checkpoint in the asked type."""
    model = load(Path(task["folder"]), dtype=jnp.dtype(task["dtype"])).without_text()
    size, embed = model.config.vision.image_size[0], model.config.embed_dim
    pixels, target = map(jnp.asarray, pixels_and_target(task["batch"], size, embed))

    def run() -> float:
        loss, gradient = jax.block_until_ready(step(model, pixels, target))
        if "gradient" in task:
            np.save(task["gradient"], np.asarray(gradient, np.float32))
        return float(loss)

    return run


if __name__ == "__main__":
    serve(prepare)
