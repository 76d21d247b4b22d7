"""Row 6, the grid field at equal quality: how long each field takes to show a scene equally well."""

import math
import time
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax.tree_util import Partial

from bench.report import Row
from bench.routes.wordlight_nerf import fields
from wordlight.radiance import Rays, camera_rays, orbit, render_rays, value_and_grad_over_rays

GOAL = 24.0  # dB on the held-out view, where shape and pattern are both there
SIZE, CAMERAS, BATCH, SAMPLES = 64, 16, 1024, 48
CHECK_EVERY, MOST_STEPS = 10, 1500
RATES = {"grid": 2e-2, "mlp": 5e-4}
CHUNKS = {"grid": BATCH, "mlp": 32}  # rays at a time


class Photographs(NamedTuple):
    """Rays and what they saw."""

    rays: Rays
    colours: jax.Array


@Partial
def scene(points: jax.Array, directions: jax.Array) -> tuple[jax.Array, jax.Array]:
    """A ball with a pattern in three colours."""
    density = 40 * jax.nn.sigmoid(40 * (0.6 - jnp.linalg.norm(points, axis=-1)))
    return density, 0.5 + 0.5 * jnp.sin(9 * points)


def measure() -> Row:
    """Return the row of the seconds that the grid field and the 8x256 network need."""
    found = {"grid": fit("grid"), "mlp": fit("mlp")}
    steps = {name: f"{count} steps" for name, (_, count) in found.items()}
    values = {"Wordlight, grid field": found["grid"][0], "Wordlight, 8x256 network": found["mlp"][0]}
    notes = (f"grid field {steps['grid']}, network {steps['mlp']}",)
    title = f"{CAMERAS} photographs of {SIZE}x{SIZE} to {GOAL:.0f} dB on another view"
    return Row("6", title, values, notes=notes, ours="Wordlight, grid field")


def fit(name: str) -> tuple[float, int]:
    """Return the seconds of training, compiling and checking apart, and the steps, until the goal."""
    seen, other = photograph(jnp.arange(CAMERAS) * 2.4, 0.3), photograph(jnp.array([0.7]), 0.5)
    field, optimizer = fields(name), optax.adam(RATES[name])
    state, seconds = optimizer.init(field), 0.0

    @jax.jit
    def step(field: Any, state: Any, key: jax.Array) -> tuple[Any, Any]:
        picked = jax.random.randint(key, (BATCH,), 0, len(seen.colours))
        some = jax.tree.map(lambda x: x[picked], seen)
        _, gradient = value_and_grad_over_rays(errors, chunk=CHUNKS[name])(field, some, key)
        updates, new = optimizer.update(gradient, state, field)
        return optax.apply_updates(field, updates), new

    judge = jax.jit(lambda field: errors(field, other, None).mean())
    jax.block_until_ready(step(field, state, jax.random.key(0)))
    for count in range(1, MOST_STEPS + 1):
        start = time.perf_counter()
        field, state = jax.block_until_ready(step(field, state, jax.random.key(count)))
        seconds += time.perf_counter() - start
        if count % CHECK_EVERY == 0 and -10 * math.log10(float(judge(field))) >= GOAL:
            return seconds, count
    return math.inf, MOST_STEPS


def photograph(azimuth: jax.Array, elevation: float) -> Photographs:
    """Return the pixels of cameras round the scene."""
    rays = camera_rays(orbit(azimuth, elevation, height=SIZE, width=SIZE))
    rays = jax.tree.map(lambda x: x.reshape(-1, 3), rays)
    return Photographs(rays, render_rays(scene, rays, None, samples=200, background=1.0).colour)


def errors(field: Any, some: Photographs, key: jax.Array | None) -> jax.Array:
    """Return the squared error of every ray's colour."""
    seen = render_rays(field, some.rays, key, samples=SAMPLES, background=1.0).colour
    return jnp.mean(optax.squared_error(seen, some.colours), axis=-1)
