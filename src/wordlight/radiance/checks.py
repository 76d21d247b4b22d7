"""What rendering refuses before it starts: counts, shapes, intervals."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

Shape = tuple[int, ...]


def check_samples(samples: int, importance_samples: int) -> None:
    """Refuse counts of samples that leave nothing to ask the field for."""
    if samples < 1 or importance_samples < 0:
        raise ValueError(
            f"{samples} samples and {importance_samples} importance samples per ray were asked for. A count "
            "computed from a budget often rounds down to nothing. Pass samples of at least 1 and "
            "importance_samples of at least 0; 48 and 0 are usual."
        )


def check_chunk(chunk: int) -> None:
    """Refuse chunks without a ray."""
    if chunk < 1:
        raise ValueError(
            f"Chunks of {chunk} rays were asked for. A chunk computed from a memory budget often rounds down "
            "to nothing. Pass a chunk of at least 1; 4096 to 65536 are usual."
        )


def check_rays(rays: Any) -> Shape:
    """Return the leading axes of rays; refuse what is no pair of vectors."""
    origins, directions = (jnp.shape(getattr(rays, name, 0.0)) for name in ("origins", "directions"))
    if directions[-1:] != (3,) or origins[-1:] != (3,) or not _broadcasts(origins, directions):
        raise ValueError(
            f"The rays' origins have the shape {origins} and their directions {directions}. Both must be "
            "[..., 3], the directions with the leading axes of all rays. They come from two cameras, or a "
            "pair was passed. Pass Rays(origins, directions)."
        )
    return directions[:-1]


def check_answer(points: Shape, densities: Any, colours: Any) -> None:
    """Refuse what a field may not return for points of this shape."""
    found = jnp.shape(densities), jnp.shape(colours)
    if found != (points[:-1], points):
        raise ValueError(
            f"The field returned densities of shape {found[0]} and colours of shape {found[1]} for points of "
            f"shape {points}. A layer of width one leaves an axis behind the densities, and a grey field has "
            f"one channel. Return densities {points[:-1]} (drop the axis with [..., 0]) and colours {points}."
        )


def check_interval(near: Any, far: Any, shape: Shape) -> None:
    """Refuse bounds that do not go with the rays, or that are in the wrong order where they are known."""
    shapes = {name: jnp.shape(bound) for name, bound in (("near", near), ("far", far)) if bound is not None}
    if any(not _broadcasts(own, shape) for own in shapes.values()):
        raise ValueError(
            f"The bounds have the shapes {shapes} and the rays {shape}. They come from other rays, or have "
            "an axis left at their end. Give a number, or one for each ray."
        )
    known = not any(bound is None or isinstance(bound, Tracer) for bound in (near, far))
    if known and np.any(np.asarray(far) < np.asarray(near)):
        raise ValueError(
            f"The rays end before they begin: near is up to {np.max(np.asarray(near)):g} and far down to "
            f"{np.min(np.asarray(far)):g}. They were probably passed in the other order. Give near below far."
        )


def check_background(background: Any, shape: Shape) -> None:
    """Refuse a background that is not one colour, or one for each ray."""
    if background is not None and not _broadcasts(jnp.shape(background), (*shape, 3)):
        raise ValueError(
            f"The background has the shape {jnp.shape(background)} and the colours {(*shape, 3)}. It is an "
            "image of another size, or carries opacity. Give a number, a colour, or one colour for each ray."
        )


def check_size(height: int, width: int) -> None:
    """Refuse images without a pixel."""
    if height < 1 or width < 1:
        raise ValueError(
            f"An image of {height} by {width} pixels was asked for. A size divided by a scale often rounds "
            "down to nothing. Give a height and a width of at least 1."
        )


def _broadcasts(own: Shape, shape: Shape) -> bool:
    return len(own) <= len(shape) and all(a in (1, b) for a, b in zip(own[::-1], shape[::-1], strict=False))
