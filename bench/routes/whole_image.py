"""The gradient of a whole image in the field's weights: in replayed chunks, or all at once."""

from typing import Any

import jax
import jax.numpy as jnp

from bench.serve import Run, serve
from wordlight.radiance import MlpField, camera_rays, orbit, render_image, render_rays


def prepare(task: dict[str, Any]) -> Run:
    """Compile the asked way."""
    size, field = task["size"], MlpField.init(jax.random.key(0))
    camera = orbit(0.3, 0.3, height=size, width=size)

    def image(field: MlpField) -> jax.Array:
        if task["way"] == "plain":
            return render_rays(field, camera_rays(camera), None, samples=16, background=1.0).colour
        return render_image(field, camera, chunk=4096, samples=16, background=1.0).colour

    @jax.jit
    def step(field: MlpField) -> MlpField:
        return jax.grad(lambda field: jnp.mean((image(field) - 0.3) ** 2))(field)

    return lambda: float(sum(abs(leaf).sum() for leaf in jax.tree.leaves(step(field))))


if __name__ == "__main__":
    serve(prepare)
