"""CLIP's loss and its gradient at the pixels: the Flax classes of transformers 4.57."""

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from flax.traverse_util import flatten_dict, unflatten_dict
from safetensors.numpy import load_file
from transformers import CLIPConfig, FlaxCLIPModel  # pyright: ignore[reportMissingImports]

from bench.inputs import pixels_and_target
from bench.serve import Run, serve

THEIRS = {"kernel": "weight", "scale": "weight", "embedding": "weight"}


def read_params(folder: Path, shapes: Any) -> Any:
    """Return PyTorch's weights under Flax's names; its own conversion needs PyTorch."""
    tensors = load_file(folder / "model.safetensors")
    params = {}
    for path in flatten_dict(shapes):
        *prefix, last = map(str, path)
        value = tensors[".".join((*prefix, THEIRS.get(last, last)))]
        if last == "kernel":
            value = value.transpose(2, 3, 1, 0) if value.ndim == 4 else value.T
        params[path] = jnp.asarray(value)
    return unflatten_dict(params)


def prepare(task: dict[str, Any]) -> Run:
    """Load the checkpoint."""
    folder, config = Path(task["folder"]), CLIPConfig.from_pretrained(task["folder"])
    model = FlaxCLIPModel(config, _do_init=False)
    shapes = jax.eval_shape(lambda: model.init_weights(jax.random.key(0), model.input_shape))
    params = read_params(folder, shapes)
    size, embed = config.vision_config.image_size, config.projection_dim
    pixels, target = map(jnp.asarray, pixels_and_target(task["batch"], size, embed))

    @jax.jit
    def step(params: Any, pixels: jax.Array, target: jax.Array) -> Any:
        def loss(pixels: jax.Array) -> jax.Array:
            features = model.get_image_features(pixels, params=params)
            cosine = features @ target / jnp.linalg.norm(features, axis=-1)
            return -jnp.mean(cosine)

        return jax.value_and_grad(loss)(pixels)

    return lambda: float(jax.block_until_ready(step(params, pixels, target))[0])


if __name__ == "__main__":
    serve(prepare)
