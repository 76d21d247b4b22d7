"""Wordlight's loss with a Flax NNX module: a network from (x, y) to colour learns to look like a caption.

Run it: `python examples/flax_nnx_field.py`. It needs flax and prints the loss as it falls.
"""

import jax
import jax.numpy as jnp
import optax
from flax import nnx

import wordlight as wl


class Painter(nnx.Module):
    """Colour in [0, 1] of points in the plane."""

    def __init__(self, rngs: nnx.Rngs):
        self.first = nnx.Linear(2, 32, rngs=rngs)
        self.second = nnx.Linear(32, 32, rngs=rngs)
        self.last = nnx.Linear(32, 3, rngs=rngs)

    def __call__(self, points: jax.Array) -> jax.Array:
        """Return `[..., 3]` for points `[..., 2]`."""
        hidden = jnp.sin(self.first(4 * points))
        return nnx.sigmoid(self.last(nnx.relu(self.second(hidden))))


PIXELS = jnp.stack(jnp.meshgrid(jnp.linspace(-1, 1, 72), jnp.linspace(-1, 1, 72)), axis=-1)


@nnx.jit
def train_step(painter: Painter, optimizer: nnx.Optimizer, guidance: wl.Guidance, key: jax.Array):
    """Take one step in place; the guide's weights are an argument, so they are no constants."""
    loss, gradient = nnx.value_and_grad(lambda painter: guidance(painter(PIXELS), key)[0])(painter)
    optimizer.update(painter, gradient)
    return loss


def main(steps: int = 50) -> list[float]:
    """Train and return the losses."""
    guidance = wl.Guidance.from_prompts(wl.load("demo"), "a red mushroom")
    painter = Painter(nnx.Rngs(0))
    optimizer = nnx.Optimizer(painter, optax.adam(3e-3), wrt=nnx.Param)
    keys = jax.random.split(jax.random.key(1), steps)
    losses = [float(train_step(painter, optimizer, guidance, key)) for key in keys]
    print(f"loss {losses[0]:.3f} -> {losses[-1]:.3f}")
    return losses


if __name__ == "__main__":
    main()
