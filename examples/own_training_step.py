"""Wordlight's loss in a training step of your own: a soft disc learns to look like a caption.

Run it: `python examples/own_training_step.py`. It prints the loss as it falls.
"""

import jax
import jax.numpy as jnp
import optax

import wordlight as wl

model = wl.load("demo")
guidance = wl.Guidance.from_prompts(model, "a red mushroom")
optimizer = optax.adam(0.05)


def render(params: dict[str, jax.Array]) -> jax.Array:
    """Return a picture, `[80, 100, 3]` in [0, 1]; anything differentiable will do."""
    y, x = jnp.mgrid[:80, :100] / 40.0 - 1.0
    distance = (x - params["x"]) ** 2 + (y - params["y"]) ** 2
    return jax.nn.sigmoid(params["colour"])[None, None, :] * jax.nn.sigmoid(8 * (0.5 - distance))[..., None]


@jax.jit
def train_step(params, optimizer_state, guidance, key):
    """Take one step; the model's weights come in through `guidance`, as an argument."""
    loss, gradient = jax.value_and_grad(lambda p: guidance(render(p), key)[0])(params)
    updates, optimizer_state = optimizer.update(gradient, optimizer_state)
    return optax.apply_updates(params, updates), optimizer_state, loss


def main(steps: int = 50) -> list[float]:
    """Train and return the losses."""
    params = {"x": jnp.array(0.2), "y": jnp.array(-0.1), "colour": jnp.zeros(3)}
    optimizer_state, losses = optimizer.init(params), []
    for key in jax.random.split(jax.random.key(0), steps):
        params, optimizer_state, loss = train_step(params, optimizer_state, guidance, key)
        losses.append(float(loss))
    print(f"loss {losses[0]:.3f} -> {losses[-1]:.3f}")
    return losses


if __name__ == "__main__":
    main()
