"""Sphere tracing of the world's objects into small geometry buffers.

A G-buffer holds, for each pixel, how much of it each material covers (3 values in [0, 1]) and the mean
world-space normal of what covers it (3 values in [-1, 1]); stored as bytes. Colours, lights and backgrounds
come later, in `compose`, anew at every training step. Sphere tracing: J. C. Hart, 1996.
"""

from dataclasses import replace
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray, Shaped, UInt8

from wordlight.data.world.objects import Kind, Parts
from wordlight.data.world.shapes import Point
from wordlight.radiance.cameras import Camera, orbit

SIZE = 64
SUPERSAMPLES = 2
BLOCK = 4  # one coarse cone stands for BLOCK x BLOCK fine rays
BOUND = 1.1  # objects lie in the ball of this radius, in their own units
COARSE_STEPS = 24
FINE_STEPS = 28
HIT = 2e-3


class Views(NamedTuple):
    """How objects stand before the camera; one row a view. Angles in radians, lengths in scene units.

    Attributes:
        azimuth: `[n]`, camera angle about +Z.
        elevation: `[n]`, camera angle above the horizon.
        radius: `[n]`, distance from the camera to the origin.
        field_of_view: `[n]`, opening angle.
        roll: `[n]`, camera turn about its viewing direction.
        scale: `[n]`, size of the object.
        offset: `[n, 3]`, position of the object.
        tilt: `[n, 2]`, turn of the object about x and y.
        proportions: `[n, 4]`, in [-1, 1], the variation of its shape.
    """

    azimuth: Float[Array, "n"]
    elevation: Float[Array, "n"]
    radius: Float[Array, "n"]
    field_of_view: Float[Array, "n"]
    roll: Float[Array, "n"]
    scale: Float[Array, "n"]
    offset: Float[Array, "n 3"]
    tilt: Float[Array, "n 2"]
    proportions: Float[Array, "n 4"]


def sample_views(key: PRNGKeyArray, count: int) -> Views:
    """Draw views all round the object, mostly 10 degrees below to 60 above level, one in seven up to 85."""
    keys = jax.random.split(key, 10)
    degrees = jnp.pi / 180

    def uniform(index: int, low: float, high: float, *shape: int) -> Float[Array, "..."]:
        return jax.random.uniform(keys[index], (count, *shape), minval=low, maxval=high)

    level = uniform(0, -10.0, 70.0) * degrees
    elevation = jnp.where(level > 60 * degrees, uniform(1, 60.0, 85.0) * degrees, level)
    return Views(
        azimuth=uniform(2, -jnp.pi, jnp.pi),
        elevation=elevation,
        radius=uniform(3, 3.0, 3.4),
        field_of_view=uniform(4, 0.66, 0.74),
        roll=uniform(5, -5.0, 5.0) * degrees,
        scale=uniform(6, 0.6, 1.1),
        offset=uniform(7, -0.15, 0.15, 3),
        tilt=uniform(8, -5.0, 5.0, 2) * degrees,
        proportions=uniform(9, -1.0, 1.0, 4),
    )


def cameras(views: Views) -> Camera:
    """Return the cameras of the views, rolled and zoomed."""
    around = jax.vmap(lambda a, e, r: orbit(a, e, radius=r, height=SIZE, width=SIZE))
    camera = around(views.azimuth, views.elevation, views.radius)
    c, s = jnp.cos(views.roll)[:, None], jnp.sin(views.roll)[:, None]
    right, up, backwards, position = (camera.pose[..., i] for i in range(4))
    pose = jnp.stack([c * right + s * up, c * up - s * right, backwards, position], axis=-1)
    return replace(camera, pose=pose, focal=SIZE / 2 / jnp.tan(views.field_of_view / 2))


def object_rotation(tilt: Float[Array, "n 2"]) -> Float[Array, "n 3 3"]:
    """Return the object-to-world rotation: about x by the first angle, then about y by the second."""
    c, s, o = jnp.cos(tilt), jnp.sin(tilt), jnp.zeros_like(tilt[:, 0])
    rows = lambda *r: jnp.stack([jnp.stack(x, axis=-1) for x in r], axis=-2)  # noqa: E731
    about_x = rows((o + 1, o, o), (o, c[:, 0], -s[:, 0]), (o, s[:, 0], c[:, 0]))
    about_y = rows((c[:, 1], o, s[:, 1]), (o, o + 1, o), (-s[:, 1], o, c[:, 1]))
    return about_y @ about_x


class Bundle(NamedTuple):
    """Rays of one view in object units: a shared origin `[3]` and unit directions, three arrays `[rays]`."""

    origin: Float[Array, "3"]
    directions: Point

    def points(self, distance: Float[Array, "rays"]) -> Point:
        """Return the points at the given distances."""
        return Point(*(self.origin[i] + distance * d for i, d in enumerate(self.directions)))

    def span(self) -> tuple[Float[Array, "rays"], Float[Array, "rays"]]:
        """Return where each ray enters and leaves the bounding ball; entry >= exit where it misses."""
        middle = -sum(self.origin[i] * d for i, d in enumerate(self.directions))
        square = BOUND**2 - jnp.sum(self.origin**2) + middle**2
        half = jnp.sqrt(jnp.maximum(square, 0.0))
        return middle - half, jnp.where(square > 0, middle + half, middle - half)


def _bundle(pose: Float[Array, "3 4"], focal: Float[Array, ""], per_pixel: float) -> Bundle:
    """Return rays through a grid of `per_pixel` samples a pixel along each axis."""
    centres = (np.arange(int(SIZE * per_pixel)) + 0.5) / per_pixel - SIZE / 2
    x, y = (a.ravel().astype(np.float32) for a in np.meshgrid(centres, -centres, indexing="xy"))
    unit = 1 / jnp.sqrt(x * x + y * y + focal * focal)
    directions = ((pose[i, 0] * x + pose[i, 1] * y - pose[i, 2] * focal) * unit for i in range(3))
    return Bundle(pose[:, 3], Point(*directions))


def _march(kind: Kind, vary: tuple, rays: Bundle, start, stop, threshold, steps: int):
    """Step along the rays until closer than `threshold(t)` or past `stop`; return distances along and to."""

    def step(state):
        i, t, gap, active = state
        moved = jnp.where(active, t + gap, t)
        gap = jnp.where(active, kind.parts(rays.points(moved), vary).distance(), gap)
        return i + 1, moved, gap, active & (gap > threshold(moved)) & (moved < stop)

    active = start < stop
    gap = jnp.where(active, 0.0, 1.0)
    _, t, gap, _ = jax.lax.while_loop(lambda s: (s[0] < steps) & jnp.any(s[3]), step, (0, start, gap, active))
    return t, gap


def _shade(kind: Kind, vary: tuple, points: Point) -> tuple[Parts, Float[Array, "3 rays"]]:
    """Return the parts' distances and the normal, from four evaluations at the corners of a tetrahedron."""
    corners = jnp.array([[1.0, -1.0, -1.0], [-1.0, -1.0, 1.0], [-1.0, 1.0, -1.0], [1.0, 1.0, 1.0]])
    around = jax.vmap(lambda e: kind.parts(points.at(*(4e-3 * e)), vary))(-corners)
    normal = corners.T @ around.distance()
    normal = normal / jnp.maximum(jnp.linalg.norm(normal, axis=0, keepdims=True), 1e-6)
    return jax.tree.map(lambda d: d.mean(axis=0), around), normal


def _spread(coarse: Shaped[Array, "cones"]) -> Shaped[Array, "rays"]:
    """Give each cone's value to the fine rays it stands for."""
    side = SIZE * SUPERSAMPLES // BLOCK
    return jnp.repeat(jnp.repeat(coarse.reshape(side, side), BLOCK, axis=0), BLOCK, axis=1).ravel()


def _pool(values: Float[Array, "rays c"]) -> Float[Array, "h w c"]:
    """Average the supersamples of each pixel."""
    return values.reshape(SIZE, SUPERSAMPLES, SIZE, SUPERSAMPLES, -1).mean(axis=(1, 3))


def _view(kind: Kind, pose, focal, rotation, proportions) -> UInt8[Array, "h w 6"]:
    """Trace one view: coarse cones first, then fine rays from where their cone came near a surface."""
    vary = tuple(proportions)
    cones = _bundle(pose, focal, SUPERSAMPLES / BLOCK)
    # The widest cone holds its block's corner rays: half a block's diagonal, over the focal length.
    spread = 0.75 * BLOCK / SUPERSAMPLES / focal
    enter, leave = cones.span()
    widest = spread * (jnp.linalg.norm(pose[:, 3]) + BOUND)
    near, gap = _march(kind, vary, cones, enter - widest, leave + widest, lambda t: spread * t, COARSE_STEPS)
    alive = gap <= spread * near + 0.02
    rays = _bundle(pose, focal, SUPERSAMPLES)
    _, leave = rays.span()
    start = jnp.where(_spread(alive), _spread(near), leave + 1.0)
    t, gap = _march(kind, vary, rays, start, leave, lambda t: HIT, FINE_STEPS)
    hit = (gap < 4 * HIT) & (t < leave)
    parts, normal = _shade(kind, vary, rays.points(t))
    nearest = jnp.argmin(jnp.stack(parts), axis=0)
    coverage = (nearest[:, None] == jnp.arange(3)[None, :]) & hit[:, None]
    normals = jnp.where(hit[:, None], (rotation @ normal).T, 0.0)
    return _pack(_pool(coverage.astype(jnp.float32)), _pool(normals))


def _pack(coverage: Float[Array, "h w 3"], normal_sum: Float[Array, "h w 3"]) -> UInt8[Array, "h w 6"]:
    """Store as bytes: coverage in 0..255, rounded down to add up to no more than 255; normals about 128."""
    normal = normal_sum / jnp.maximum(jnp.linalg.norm(normal_sum, axis=-1, keepdims=True), 1e-6)
    values = jnp.concatenate([jnp.floor(coverage * 255), jnp.round(normal * 127) + 128], axis=-1)
    return values.astype(jnp.uint8)


def unpack(gbuffer: UInt8[Array, "*b h w 6"]) -> tuple[Float[Array, "*b h w 3"], Float[Array, "*b h w 3"]]:
    """Return coverage in [0, 1] and normals in [-1, 1] (zero where nothing covers the pixel)."""
    values = gbuffer.astype(jnp.float32)
    return values[..., :3] / 255, (values[..., 3:] - 128) / 127


class Placed(NamedTuple):
    """Cameras as their objects see them; a row a view.

    Attributes:
        pose: `[n, 3, 4]`, camera to object units.
        focal: `[n]`, focal length in pixels.
        rotation: `[n, 3, 3]`, object to world.
        proportions: `[n, 4]`, the variation of the shape.
    """

    pose: Float[Array, "n 3 4"]
    focal: Float[Array, "n"]
    rotation: Float[Array, "n 3 3"]
    proportions: Float[Array, "n 4"]


@jax.jit
def place(views: Views) -> Placed:
    """Return the cameras of the views in the units of their objects."""
    camera, rotation = cameras(views), object_rotation(views.tilt)
    back = jnp.swapaxes(rotation, 1, 2)
    position = back @ (camera.pose[..., 3:] - views.offset[..., None]) / views.scale[:, None, None]
    pose = jnp.concatenate([back @ camera.pose[..., :3], position], axis=-1)
    return Placed(pose, camera.focal, rotation, views.proportions)


def trace(kind: Kind, views: Views) -> UInt8[Array, "n 64 64 6"]:
    """Trace views of one kind of object into packed G-buffers; compiled once a kind and batch size."""
    return _trace(kind, place(views))


@partial(jax.jit, static_argnames="kind")
def _trace(kind: Kind, placed: Placed) -> UInt8[Array, "n 64 64 6"]:
    return jax.lax.map(lambda row: _view(kind, *row), placed)
