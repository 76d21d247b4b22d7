"""Encodings of points and directions: frequencies, spherical harmonics, grids of learned features."""

import math
from collections.abc import Sequence
from itertools import product
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from wordlight.typing import Vectors

# Multipliers of the spatial hash (Instant-NGP, arXiv 2201.05989, eq. 4).
_HASH_PRIMES = (1, 2654435761, 805459861)
_CORNERS = tuple(product((0, 1), repeat=3))


def frequency_encoding(points: Vectors, frequencies: int) -> Float[Array, "*b encoded"]:
    """Return the points and sines and cosines of `2**k * pi * points` for k below `frequencies`.

    The result has `3 + 6 * frequencies` channels (NeRF, arXiv 2003.08934, eq. 4, with the points themselves
    in front).
    """
    scales = math.pi * 2.0 ** jnp.arange(frequencies)
    angles = jnp.einsum("...c,k->...kc", points, scales, precision="highest")
    angles = angles.reshape(*points.shape[:-1], 3 * frequencies)
    return jnp.concatenate([points, jnp.sin(angles), jnp.cos(angles)], axis=-1)


def spherical_harmonics(directions: Vectors, degree: int) -> Float[Array, "*b coefficients"]:
    """Return the real spherical harmonics up to `degree` (0 to 3), `[..., (degree + 1)**2]`.

    Orthonormal on the unit sphere, ordered by degree l and then order m from -l to l, without the
    Condon-Shortley phase (Sloan 2013, "Efficient spherical harmonic evaluation"). `directions` are unit
    vectors.

    Raises:
        ValueError: `degree` is not 0, 1, 2 or 3.
    """
    if degree not in (0, 1, 2, 3):
        raise ValueError(
            f"Spherical harmonics of degree {degree} were asked for. They are written out for degrees 0 to "
            "3, which is as much as a view-dependent colour needs. Pass a degree from 0 to 3."
        )
    x, y, z = jnp.moveaxis(directions, -1, 0)
    terms = _harmonics(x, y, z)[: (degree + 1) ** 2]
    return jnp.stack(terms, axis=-1)


def _harmonics(x: Array, y: Array, z: Array) -> list[Array]:
    pi = math.pi
    first = math.sqrt(3 / (4 * pi))
    second = math.sqrt(15 / (4 * pi))
    outer, inner = math.sqrt(35 / (32 * pi)), math.sqrt(21 / (32 * pi))
    return [
        jnp.full_like(x, math.sqrt(1 / (4 * pi))),
        first * y,
        first * z,
        first * x,
        second * x * y,
        second * y * z,
        math.sqrt(5 / (16 * pi)) * (3 * z * z - 1),
        second * x * z,
        second / 2 * (x * x - y * y),
        outer * y * (3 * x * x - y * y),
        math.sqrt(105 / (4 * pi)) * x * y * z,
        inner * y * (5 * z * z - 1),
        math.sqrt(7 / (16 * pi)) * z * (5 * z * z - 3),
        inner * x * (5 * z * z - 1),
        math.sqrt(105 / (16 * pi)) * z * (x * x - y * y),
        outer * x * (x * x - 3 * y * y),
    ]


def grid_entries(resolution: int, table_size: int) -> int:
    """Return the rows of a grid's table: all `resolution**3` vertices where they fit `table_size`, else
    that many."""
    return min(resolution**3, table_size)


def grid_lookup(
    table: Float[Array, "entries features"], points: Vectors, resolution: int
) -> Float[Array, "*b features"]:
    """Return features interpolated trilinearly between the eight vertices around each point.

    The cube `|x| <= 1` has `resolution` vertices along each axis, the outer ones on its faces; points outside
    take the value at the nearest point of the cube. A table with `resolution**3` rows is dense (row `(ix *
    resolution + iy) * resolution + iz`); a shorter one is hashed (Instant-NGP, arXiv 2201.05989, eq. 4). The
    gradient in `points` jumps where they cross between cells.
    """
    # Coordinates apart, [...] each: arithmetic on long axes is vectorised, on an axis of three it is not.
    position = [(jnp.clip(points[..., axis], -1.0, 1.0) + 1) * ((resolution - 1) / 2) for axis in range(3)]
    # Clipped as integers, so that a point that is not a number still reads inside the table.
    cell = [jnp.clip(along.astype(jnp.int32), 0, resolution - 2) for along in position]
    fraction = [along - start for along, start in zip(position, cell, strict=True)]
    total = jnp.zeros((*points.shape[:-1], table.shape[-1]), table.dtype)
    for corner in _CORNERS:
        rows = _corner_rows(table, cell, corner, resolution)
        total = total + _corner_weight(fraction, corner)[..., None] * rows
    return total


def _corner_rows(table: Array, cell: list[Array], corner: tuple[int, ...], resolution: int) -> Array:
    """Return the table's rows at one corner of every cell."""
    entries = len(table)
    if entries != resolution**3:
        vertex = [start + step for start, step in zip(cell, corner, strict=True)]
        return table.at[_hash(vertex, entries)].get(mode="promise_in_bounds")
    # One index for all corners, into the table from each corner's offset on: computed once, not eight times.
    first, offset = _dense_row(cell, resolution), _dense_row(corner, resolution)
    last = _dense_row((1, 1, 1), resolution)
    return table[offset : entries - last + offset].at[first].get(mode="promise_in_bounds")


def _dense_row(vertex: Sequence[Any], resolution: int) -> Any:
    """Return the row of a vertex given by integers or by arrays of them."""
    return (vertex[0] * resolution + vertex[1]) * resolution + vertex[2]


def _corner_weight(fraction: list[Array], corner: tuple[int, ...]) -> Array:
    sides = [fraction[axis] if corner[axis] else 1 - fraction[axis] for axis in range(3)]
    return sides[0] * sides[1] * sides[2]


def _hash(vertex: list[Array], entries: int) -> Array:
    """Return the row of each vertex in a table of `entries` (Instant-NGP, arXiv 2201.05989, eq. 4)."""
    x, y, z = (v.astype(jnp.uint32) * jnp.uint32(p) for v, p in zip(vertex, _HASH_PRIMES, strict=True))
    return ((x ^ y ^ z) % jnp.uint32(entries)).astype(jnp.int32)
