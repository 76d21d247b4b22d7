"""CLIP's loss and its gradient at the pixels: the PyTorch model run by JAX, through torchax."""

from typing import Any

import jax
import jax.numpy as jnp
import torchax  # pyright: ignore[reportMissingImports]
from torch import tensor  # pyright: ignore[reportMissingImports]
from transformers import CLIPModel  # pyright: ignore[reportMissingImports]

from bench.inputs import pixels_and_target
from bench.routes.torch_clip import Loss
from bench.serve import Run, serve


def prepare(task: dict[str, Any]) -> Run:
    """Load the checkpoint and take its weights over to JAX."""
    model = CLIPModel.from_pretrained(task["folder"]).eval().requires_grad_(False)
    size, embed = model.config.vision_config.image_size, model.config.projection_dim
    pixels, target = pixels_and_target(task["batch"], size, embed)
    weights, run_model = torchax.extract_jax(Loss(model, tensor(target)).eval())
    given = jnp.asarray(pixels)

    @jax.jit
    def step(weights: Any, pixels: jax.Array) -> Any:
        return jax.value_and_grad(lambda pixels: run_model(weights, (pixels,)))(pixels)

    return lambda: float(jax.block_until_ready(step(weights, given))[0])


if __name__ == "__main__":
    serve(prepare)
