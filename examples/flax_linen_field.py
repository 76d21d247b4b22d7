"""Wordlight's loss with a Flax Linen module: a network from (x, y) to colour learns to look like a caption.

Run it: `python examples/flax_linen_field.py`. It needs flax and prints the loss as it falls.
"""

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from flax.training.train_state import TrainState

import wordlight as wl


class Painter(nn.Module):
    """Colour in [0, 1] of points in the plane."""

    @nn.compact
    def __call__(self, points: jax.Array) -> jax.Array:
        """Return `[..., 3]` for points `[..., 2]`."""
        hidden = jnp.sin(nn.Dense(32)(4 * points))
        return nn.sigmoid(nn.Dense(3)(nn.relu(nn.Dense(32)(hidden))))


PIXELS = jnp.stack(jnp.meshgrid(jnp.linspace(-1, 1, 72), jnp.linspace(-1, 1, 72)), axis=-1)


@jax.jit
def train_step(state: TrainState, guidance: wl.Guidance, key: jax.Array) -> tuple[TrainState, jax.Array]:
    """Take one step; the guide's weights are an argument, so they are no constants of the program."""

    def loss_fn(params):
        loss, _metrics = guidance(state.apply_fn(params, PIXELS), key)
        return loss

    loss, gradient = jax.value_and_grad(loss_fn)(state.params)
    return state.apply_gradients(grads=gradient), loss


def main(steps: int = 50) -> list[float]:
    """Train and return the losses."""
    guidance = wl.Guidance.from_prompts(wl.load("demo"), "a red mushroom")
    painter = Painter()
    params = painter.init(jax.random.key(0), PIXELS)
    state = TrainState.create(apply_fn=painter.apply, params=params, tx=optax.adam(3e-3))
    losses = []
    for key in jax.random.split(jax.random.key(1), steps):
        state, loss = train_step(state, guidance, key)
        losses.append(float(loss))
    print(f"loss {losses[0]:.3f} -> {losses[-1]:.3f}")
    return losses


if __name__ == "__main__":
    main()
