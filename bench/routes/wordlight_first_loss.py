"""A checkpoint from disk to its first loss: Wordlight."""

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from bench.serve import Run, serve
from wordlight.clip.load import load
from wordlight.memory import give_back_memory


@jax.jit
def loss(model: Any, images: jax.Array, texts: jax.Array) -> jax.Array:
    """Return minus the mean cosine of images and texts."""
    return -jnp.mean(model.encode_image(images) @ texts.T)


def prepare(task: dict[str, Any]) -> Run:
    """Load the checkpoint and embed a prompt; `give_back` what compiling leaves, before the loss runs."""
    model = load(Path(task["folder"]))
    texts = model.encode_text("a yellow bulldozer")
    images = jnp.full((1, 224, 224, 3), 0.5)
    if not task["give_back"]:
        return lambda: float(loss(model, images, texts))
    compiled = loss.lower(model, images, texts).compile()
    give_back_memory()
    return lambda: float(compiled(model, images, texts))


if __name__ == "__main__":
    jax.block_until_ready(jax.jit(lambda x: x + 1)(jnp.zeros(1)))
    serve(prepare)
