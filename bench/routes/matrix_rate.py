"""A product of large square matrices in JAX: what the hardware gives to work that is all products."""

from typing import Any

import jax
import jax.numpy as jnp

from bench.serve import Run, serve


@jax.jit
def product(x: jax.Array, y: jax.Array) -> jax.Array:
    """Multiply, with float32 sums."""
    return jnp.matmul(x, y, preferred_element_type=jnp.float32)


def prepare(task: dict[str, Any]) -> Run:
    """Draw two matrices of the asked size and type."""
    keys = jax.random.split(jax.random.key(0))
    x, y = (jax.random.normal(k, (task["size"], task["size"])).astype(task["dtype"]) for k in keys)

    def run() -> None:
        jax.block_until_ready(product(x, y))

    return run


if __name__ == "__main__":
    serve(prepare)
