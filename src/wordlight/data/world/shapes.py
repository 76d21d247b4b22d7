"""Signed distances of simple solids, and the ways to place and join them.

A point is three arrays of one shape (structure of arrays: it keeps the inner loops vectorised). Every
function here is 1-Lipschitz in the point, so what is built from them with `min`, `max` and `smooth_union`
may be sphere traced (J. C. Hart, "Sphere tracing", 1996, appendix A). `ellipsoid`, `cone` and `gable` are
lower bounds of the distance, the others exact.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float

Distance = Float[Array, "*n"]


class Point(NamedTuple):
    """Coordinates of points; x forward, y left, z up."""

    x: Float[Array, "*n"]
    y: Float[Array, "*n"]
    z: Float[Array, "*n"]

    def at(self, x: ArrayLike = 0.0, y: ArrayLike = 0.0, z: ArrayLike = 0.0) -> "Point":
        """Return the points as seen from a solid placed at (x, y, z)."""
        return Point(self.x - x, self.y - y, self.z - z)

    def pitch(self, angle: ArrayLike) -> "Point":
        """Return the points as seen from a solid turned about y, nose down for positive angles (radians)."""
        c, s = jnp.cos(angle), jnp.sin(angle)
        return Point(c * self.x - s * self.z, self.y, s * self.x + c * self.z)

    def roll(self, angle: ArrayLike) -> "Point":
        """Return the points as seen from a solid turned about x, from y towards z (radians)."""
        c, s = jnp.cos(angle), jnp.sin(angle)
        return Point(self.x, c * self.y + s * self.z, c * self.z - s * self.y)

    def yaw(self, angle: ArrayLike) -> "Point":
        """Return the points as seen from a solid turned about z, from x towards y (radians)."""
        c, s = jnp.cos(angle), jnp.sin(angle)
        return Point(c * self.x + s * self.y, c * self.y - s * self.x, self.z)

    def along_x(self) -> "Point":
        """Return the points as seen from a solid whose axis z was laid along x."""
        return Point(-self.z, self.y, self.x)

    def along_y(self) -> "Point":
        """Return the points as seen from a solid whose axis z was laid along y."""
        return Point(self.x, -self.z, self.y)

    def mirror_x(self) -> "Point":
        """Fold the half space x < 0 onto x > 0: a solid placed there appears twice."""
        return Point(jnp.abs(self.x), self.y, self.z)

    def mirror_y(self) -> "Point":
        """Fold the half space y < 0 onto y > 0: a solid placed there appears twice."""
        return Point(self.x, jnp.abs(self.y), self.z)

    def fold4(self) -> "Point":
        """Fold both x and y: a solid placed at x, y > 0 appears four times."""
        return self.mirror_x().mirror_y()

    def fold8(self) -> "Point":
        """Fold onto 0 < y < x: a solid placed there appears eight times."""
        x, y, z = self.fold4()
        return Point(jnp.maximum(x, y), jnp.minimum(x, y), z)


def length(*components: ArrayLike) -> Distance:
    """Return the Euclidean length; the tiny term keeps its derivative finite at zero."""
    return jnp.sqrt(sum(jnp.square(c) for c in components) + 1e-12)


def sphere(p: Point, radius: ArrayLike) -> Distance:
    """Ball about the origin."""
    return length(*p) - radius


def ellipsoid(p: Point, x: ArrayLike, y: ArrayLike, z: ArrayLike) -> Distance:
    """Ellipsoid with the given half axes: a lower bound of the distance, exact only on the shortest axis."""
    return (length(p.x / x, p.y / y, p.z / z) - 1.0) * jnp.minimum(x, jnp.minimum(y, z))


def box(p: Point, x: ArrayLike, y: ArrayLike, z: ArrayLike, *, rounding: float = 0.0) -> Distance:
    """Box with the given half sizes, which include the rounding of its edges."""
    qx, qy, qz = (jnp.abs(a) - (h - rounding) for a, h in zip(p, (x, y, z), strict=True))
    outside = length(*(jnp.maximum(q, 0.0) for q in (qx, qy, qz)))
    return outside + jnp.minimum(jnp.maximum(qx, jnp.maximum(qy, qz)), 0.0) - rounding


def cylinder(p: Point, radius: ArrayLike, half: ArrayLike, *, rounding: float = 0.0) -> Distance:
    """Cylinder about z of the given half height; both sizes include the rounding."""
    q = length(p.x, p.y) - (radius - rounding)
    h = jnp.abs(p.z) - (half - rounding)
    return length(jnp.maximum(q, 0.0), jnp.maximum(h, 0.0)) + jnp.minimum(jnp.maximum(q, h), 0.0) - rounding


def cone(p: Point, bottom: ArrayLike, top: ArrayLike, half: ArrayLike) -> Distance:
    """Frustum about z: radius `bottom` at -half and `top` at +half; its slant and its lids intersected."""
    bottom, top, half = jnp.asarray(bottom), jnp.asarray(top), jnp.asarray(half)
    slope = (bottom - top) / (2 * half)
    slant = (length(p.x, p.y) - (bottom + top) / 2 + slope * p.z) / jnp.sqrt(1.0 + slope * slope)
    return jnp.maximum(slant, jnp.abs(p.z) - half)


def capsule(p: Point, start: tuple, end: tuple, radius: ArrayLike) -> Distance:
    """Stick with round ends from `start` to `end`."""
    axis = [e - s for s, e in zip(start, end, strict=True)]
    rel = [a - s for a, s in zip(p, start, strict=True)]
    along = sum(r * a for r, a in zip(rel, axis, strict=True)) / sum(a * a for a in axis)
    along = jnp.clip(along, 0.0, 1.0)
    return length(*(r - along * a for r, a in zip(rel, axis, strict=True))) - radius


def torus(p: Point, ring: ArrayLike, radius: ArrayLike) -> Distance:
    """Torus about z: a tube of `radius` round a circle of radius `ring`."""
    return length(length(p.x, p.y) - ring, p.z) - radius


def gable(p: Point, x: ArrayLike, y: ArrayLike, z: ArrayLike) -> Distance:
    """Prism whose ridge runs along x: half length x, half width y at the base z = 0, ridge at height z."""
    slant = (jnp.abs(p.y) * z + p.z * y - y * z) / jnp.sqrt(y * y + z * z)
    return jnp.maximum(jnp.maximum(slant, -p.z), jnp.abs(p.x) - x)


def union(*distances: Distance) -> Distance:
    """Join solids."""
    joined = distances[0]
    for distance in distances[1:]:
        joined = jnp.minimum(joined, distance)
    return joined


def intersection(*distances: Distance) -> Distance:
    """Keep what all solids share; a lower bound of the distance."""
    return -union(*(-d for d in distances))


def subtract(solid: Distance, hole: Distance) -> Distance:
    """Cut a hole; a lower bound of the distance."""
    return jnp.maximum(solid, -hole)


def smooth_union(a: Distance, b: Distance, width: float) -> Distance:
    """Join two solids with a fillet of about `width`, by the quadratic blend, which stays 1-Lipschitz."""
    h = jnp.maximum(width - jnp.abs(a - b), 0.0) / width
    return jnp.minimum(a, b) - h * h * (width / 4)
