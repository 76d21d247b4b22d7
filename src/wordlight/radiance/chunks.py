"""Rows in groups of one size."""

import jax.numpy as jnp
from jaxtyping import Array


def in_chunks(rows: Array, chunk: int) -> Array:
    """Return rows `[n, ...]` as `[chunks, chunk, ...]`, the last group filled with copies of the last row."""
    fill = jnp.broadcast_to(rows[-1:], (-len(rows) % chunk, *rows.shape[1:]))
    return jnp.concatenate([rows, fill]).reshape(-1, chunk, *rows.shape[1:])
