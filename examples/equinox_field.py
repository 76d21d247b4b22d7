"""Wordlight's loss with an Equinox module: a network from (x, y) to colour learns to look like a caption.

Run it: `python examples/equinox_field.py`. It needs equinox and prints the loss as it falls.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax

import wordlight as wl

PIXELS = jnp.stack(jnp.meshgrid(jnp.linspace(-1, 1, 72), jnp.linspace(-1, 1, 72)), axis=-1)
optimizer = optax.adam(3e-3)


class Painter(eqx.Module):
    """Colour in [0, 1] of points in the plane."""

    network: eqx.nn.MLP

    def __init__(self, key: jax.Array):
        self.network = eqx.nn.MLP(2, 3, 32, 2, activation=jnp.sin, final_activation=jax.nn.sigmoid, key=key)

    def __call__(self, points: jax.Array) -> jax.Array:
        """Return `[height, width, 3]` for points `[height, width, 2]`."""
        return jax.vmap(jax.vmap(self.network))(4 * points)


@eqx.filter_jit
def train_step(painter: Painter, state: optax.OptState, guidance: wl.Guidance, key: jax.Array):
    """Take one step; the guide's weights are an argument, so they are no constants of the program."""
    loss, gradient = eqx.filter_value_and_grad(lambda painter: guidance(painter(PIXELS), key)[0])(painter)
    updates, state = optimizer.update(gradient, state)
    return eqx.apply_updates(painter, updates), state, loss


def main(steps: int = 50) -> list[float]:
    """Train and return the losses."""
    guidance = wl.Guidance.from_prompts(wl.load("demo"), "a red mushroom")
    painter = Painter(jax.random.key(0))
    state, losses = optimizer.init(eqx.filter(painter, eqx.is_inexact_array)), []
    for key in jax.random.split(jax.random.key(1), steps):
        painter, state, loss = train_step(painter, state, guidance, key)
        losses.append(float(loss))
    print(f"loss {losses[0]:.3f} -> {losses[-1]:.3f}")
    return losses


if __name__ == "__main__":
    main()
