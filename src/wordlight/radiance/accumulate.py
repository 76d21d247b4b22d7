"""Gradients of losses that are means over rays, a few rays at a time."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from wordlight.radiance.checks import check_chunk
from wordlight.radiance.chunks import in_chunks

Losses = Callable[[Any, Any, Array | None], Float[Array, "rays"]]
ValueAndGrad = Callable[..., tuple[Float[Array, ""], Any]]


def value_and_grad_over_rays(losses: Losses, *, chunk: int) -> ValueAndGrad:
    """Return a function that gives the mean of a loss over rays, and its gradient, `chunk` rays at a time.

    It is called as `step(field, batch, key)`, with the key left out if nothing is random, and returns `(loss,
    gradient)` as `jax.value_and_grad` does. Every chunk runs forwards and backwards before the next begins,
    so a step needs the memory of one chunk, and nothing is computed twice; `render_image` has to, because
    its loss may mix all pixels. With a CPU a chunk whose activations fit the cache is also faster: for an
    8x256 network and 192 samples that is 8 rays. An accelerator wants as many as its memory holds.

    Args:
        losses: a function of the field, some rows of the batch, and a key of their own (None without one);
            returns a loss for each row, which may depend on no other row.
        chunk: rays at a time. The last chunk is filled up with copies of the final row, which do not count.

    Raises:
        ValueError: `chunk` is below 1; when called, the batch is empty, its leaves differ in length, or
            `losses` returns another shape than `[chunk]`.
    """
    check_chunk(chunk)

    def step(field: Any, batch: Any, key: Array | None = None) -> tuple[Array, Any]:
        count = _length(batch)
        size = min(chunk, count)
        share = jax.value_and_grad(partial(_share, losses, key, count))
        chunks = jnp.arange(0, count, size), jax.tree.map(lambda x: in_chunks(jnp.asarray(x), size), batch)

        def add(sums: Any, chunk: tuple[Array, Any]) -> tuple[Any, None]:
            return jax.tree.map(jnp.add, sums, share(field, *chunk)), None

        shapes = jax.eval_shape(share, field, *jax.tree.map(lambda x: x[0], chunks))
        zeros = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes)
        return jax.lax.scan(add, zeros, chunks)[0]

    return step


def _share(losses: Losses, key: Array | None, count: int, field: Any, start: Array, rows: Any) -> Array:
    """Return what a chunk that begins with row `start` adds to the mean over `count` rows."""
    size = _length(rows)
    found = losses(field, rows, None if key is None else jax.random.fold_in(key, start))
    _check_losses(found, size)
    return jnp.sum(jnp.where(start + jnp.arange(size) < count, found, 0.0)) / count


def _length(batch: Any) -> int:
    shapes = [jnp.shape(x) for x in jax.tree.leaves(batch)]
    lengths = {shape[0] if shape else None for shape in shapes}
    if len(lengths) != 1 or not lengths.isdisjoint({None, 0}):
        raise ValueError(
            f"The leaves of the batch have the shapes {shapes}. Every leaf needs a row for each ray, along "
            "its first axis, and there must be rays; something that all rays share is the usual cause. "
            "Repeat it for every ray, or let the loss function close over it."
        )
    return shapes[0][0]


def _check_losses(found: Any, size: int) -> None:
    if jnp.shape(found) != (size,):
        raise ValueError(
            f"The losses of {size} rays have the shape {jnp.shape(found)}. They were probably averaged, and "
            "then rays that fill up the last chunk would count. Return one loss for each ray."
        )
