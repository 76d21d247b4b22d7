"""Rays: where they start, where they meet the scene's box, and where along them to look.

Notation: `distances` are measured along unit directions in scene units; `near < far` bound them; `edges` are
    the `samples + 1` borders of the segments that the samples stand for.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from wordlight.numerics import safe_divide, safe_normalize
from wordlight.radiance.cameras import Camera
from wordlight.typing import Scalars, Vectors

# Below this slope a ray is parallel to a face: it drifts by a millionth of the distance travelled, and the
# gradient of its crossing, 1 / slope**2, stays far from overflow.
_PARALLEL = 1e-6
# An interval shorter than this (relative to its distance) is empty: a few dozen steps of float32.
_EMPTY = 1e-5


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Rays:
    """Half lines; a pytree with any leading axes.

    Attributes:
        origins: where the rays start, `[..., 3]`, world coordinates.
        directions: unit vectors, `[..., 3]`, world axes.
    """

    origins: Vectors
    directions: Vectors

    def at(self, distances: Float[Array, "*b samples"]) -> Float[Array, "*b samples 3"]:
        """Return the points at `distances` along each ray."""
        return self.origins[..., None, :] + distances[..., None] * self.directions[..., None, :]


def camera_rays(camera: Camera) -> Rays:
    """Return one ray through the centre of each pixel, `[*b, height, width, 3]`, row 0 at the top.

    Pixel centres are at half integers and the principal point is the image centre (OpenGL camera: x right, y
    up, looking along -z). Differentiable in the pose and the focal length.
    """
    columns = jnp.arange(camera.width) + 0.5 - camera.width / 2
    rows = camera.height / 2 - jnp.arange(camera.height) - 0.5
    y, x = jnp.meshgrid(rows, columns, indexing="ij")
    focal = jnp.asarray(camera.focal)[..., None, None, None]
    plane = jnp.expand_dims(jnp.stack([x, y], axis=-1), range(focal.ndim - 3)) / focal
    local = jnp.concatenate([plane, jnp.full_like(plane[..., :1], -1.0)], axis=-1)
    rotation = camera.pose[..., :3]
    directions = jnp.einsum("...ij,...hwj->...hwi", rotation, local, precision="highest")
    origins = jnp.broadcast_to(camera.pose[..., None, None, :, 3], directions.shape)
    return Rays(origins, safe_normalize(directions))


def intersect_box(rays: Rays, *, half_extent: float = 1.0) -> tuple[Scalars, Scalars]:
    """Return the distances `(near, far)` between which each ray is inside the cube `|x| <= half_extent`.

    Both are finite with `0 <= near < far` for every ray (slab method, Kay and Kajiya 1986). An origin inside
    the cube gives `near` zero. A ray that misses, or only touches an edge, or runs in the plane of a face, or
    has the cube behind it, gives an empty interval: `far - near = 1e-5 * (1 + near)`, at the point of the ray
    closest to the centre of the cube, which is outside the cube. Not differentiable where the first face hit
    changes.
    """
    parallel = jnp.abs(rays.directions) <= _PARALLEL
    first, last = _slabs(rays, half_extent, parallel)
    beside = jnp.any(parallel & (jnp.abs(rays.origins) >= half_extent), axis=-1)
    near = jnp.maximum(jnp.max(first, axis=-1), 0.0)
    far = jnp.min(last, axis=-1)
    return _interval_or_empty(rays, near, far, ~beside)


def intersect_ball(rays: Rays, *, radius: float = 1.0) -> tuple[Scalars, Scalars]:
    """Return the distances `(near, far)` between which each ray is inside the ball about the origin.

    As `intersect_box` does, finite with `0 <= near < far`, and an empty interval at the point of the ray
    closest to the origin where it misses, only grazes, or has the ball behind it.
    """
    closest = _closest(rays)
    nearest = rays.origins + closest[..., None] * rays.directions
    inside = radius**2 - jnp.sum(nearest**2, axis=-1)
    half = jnp.sqrt(jnp.where(inside > 0, inside, 1.0))
    return _interval_or_empty(rays, jnp.maximum(closest - half, 0.0), closest + half, inside > 0)


def _closest(rays: Rays) -> Scalars:
    """Return where each line comes closest to the origin; negative if that is behind the ray's start."""
    return -jnp.sum(rays.origins * rays.directions, axis=-1)


def _interval_or_empty(rays: Rays, near: Scalars, far: Scalars, possible: Array) -> tuple[Scalars, Scalars]:
    """Return the interval where it is possible and has a length, else an empty one at the closest point."""
    hit = possible & (far - near > _EMPTY * (1 + near))
    near = jnp.where(hit, near, jnp.maximum(_closest(rays), 0.0))
    return near, jnp.where(hit, far, near + _EMPTY * (1 + near))


def _slabs(rays: Rays, half_extent: float, parallel: Array) -> tuple[Array, Array]:
    """Return where each ray enters and leaves the slab of each axis; a parallel ray bounds nothing."""
    lower = safe_divide(-half_extent - rays.origins, rays.directions, epsilon=_PARALLEL)
    upper = safe_divide(half_extent - rays.origins, rays.directions, epsilon=_PARALLEL)
    first = jnp.where(parallel, -jnp.inf, jnp.minimum(lower, upper))
    return first, jnp.where(parallel, jnp.inf, jnp.maximum(lower, upper))


def stratified_distances(
    key: Key[Array, ""] | None, near: Scalars, far: Scalars, samples: int
) -> Float[Array, "*b samples"]:
    """Return one distance in each of `samples` equal parts of every interval, in increasing order.

    Uniformly random within its part (NeRF, arXiv 2003.08934, eq. 2); with `key=None` at its middle.
    """
    return near[..., None] + (far - near)[..., None] * _stratified(key, (*near.shape, samples))


def segment_edges(
    distances: Float[Array, "*b samples"], near: Scalars, far: Scalars
) -> Float[Array, "*b edges"]:
    """Return the `samples + 1` borders of the segments that sorted `distances` stand for.

    The borders lie midway between neighbours, the outer ones at `near` and `far`: whatever the jitter, the
    segments fill the interval, so the opacity of a uniform medium is exact.
    """
    middles = (distances[..., 1:] + distances[..., :-1]) / 2
    return jnp.concatenate([near[..., None], middles, far[..., None]], axis=-1)


def importance_distances(
    key: Key[Array, ""] | None,
    edges: Float[Array, "*b edges"],
    weights: Float[Array, "*b bins"],
    samples: int,
) -> Float[Array, "*b samples"]:
    """Return distances drawn from the piecewise constant density that has `weights` between `edges`.

    Inverse-transform sampling of stratified numbers (NeRF, arXiv 2003.08934, section 5.2), sorted; with
    `key=None` of the middles of equal parts. Where all weights are zero the bins are equally likely. No
    gradient passes.
    """
    edges, weights = jax.lax.stop_gradient((edges, weights))
    weights = weights + 1e-5  # NeRF's padding: every bin keeps a chance, and no bin divides by zero
    probabilities = weights / jnp.sum(weights, axis=-1, keepdims=True)
    above = jnp.minimum(jnp.cumsum(probabilities, axis=-1), 1.0)
    numbers = _stratified(key, (*weights.shape[:-1], samples))
    bins = jnp.sum(numbers[..., :, None] >= above[..., None, :-1], axis=-1)
    return _place_in(bins, numbers, edges, probabilities, above)


def _place_in(bins: Array, numbers: Array, edges: Array, probabilities: Array, above: Array) -> Array:
    """Return where in its bin each number falls; `above` is the running sum of `probabilities`."""
    values = (edges[..., :-1], jnp.diff(edges, axis=-1), probabilities, above)
    start, width, probability, upper = (jnp.take_along_axis(value, bins, axis=-1) for value in values)
    return start + width * jnp.clip(1 - (upper - numbers) / probability, 0.0, 1.0)


def _stratified(key: Array | None, shape: tuple[int, ...]) -> Array:
    """Return one number in each equal part of [0, 1] along the last axis; without a key its middle."""
    part = jax.lax.broadcasted_iota(jnp.float32, shape, len(shape) - 1)
    jitter = 0.5 if key is None else jax.random.uniform(key, shape)
    return (part + jitter) / shape[-1]
