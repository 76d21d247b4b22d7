"""Row 10: from a prompt to an object, and what its time goes into."""

import statistics
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from bench.report import OURS, Row
from bench.rows.starting import PROMPT, parts
from bench.serve import timed
from wordlight.clip.load import load
from wordlight.radiance.lighting import LitField
from wordlight.train.config import RunConfig
from wordlight.train.guide import RunGuide, make_guide
from wordlight.train.state import init_state
from wordlight.train.step import Views, render_ball, sample_views, train_step

KEY = jax.random.key(0)


def whole() -> Row:
    """Return the row of a run's parts; nothing is in the cache of compiled programs."""
    with tempfile.TemporaryDirectory() as cache, tempfile.TemporaryDirectory() as folder:
        seconds = parts(Path(folder), Path(cache))
    total = sum(seconds.values())
    notes = ("; ".join(f"{name} {value:.1f} s" for name, value in seconds.items()),)
    return Row("10", "wordlight dream, default preset, nothing cached", {OURS: total}, notes=notes)


def split(*, rounds: int) -> Row:
    """Return the row of a training step's parts."""
    config = RunConfig(PROMPT)
    guide = make_guide([load(name) for name in config.models], config)
    views = sample_views(KEY, config.cameras, count=config.views)
    field = init_state(KEY, config).field
    look = jax.jit(jax.vmap(lambda camera, key: _seen(field, config, camera, key)))
    images = look(views.cameras, views.keys)
    guided = jax.jit(jax.grad(_guided, argnums=1))
    rendered = jax.jit(jax.grad(_rendered), static_argnums=2)
    seconds = {
        OURS: median(_stepper(config, guide, views), rounds),
        "the guides and their gradient": median(lambda: guided(guide, images, views.keys), rounds),
        "the field, rendered, and its gradient": median(lambda: rendered(field, views, config), rounds),
    }
    seconds["the rest"] = seconds[OURS] - sum(list(seconds.values())[1:])
    size, samples = config.cameras.size, config.cameras.samples
    title = f"training step of dream, {config.views} views of {size}x{size}, {samples} samples"
    return Row("10", title, seconds)


def costs(*, rounds: int) -> list[Row]:
    """Return rows of a step's time against views, rays and samples."""
    base = RunConfig(PROMPT)
    cameras = base.cameras
    changes = {
        "views": {n: replace(base, views=n) for n in (2, 4, 8)},
        "pixels of a view": {n * n: replace(base, cameras=replace(cameras, size=n)) for n in (32, 48, 64)},
        "samples": {n: replace(base, cameras=replace(cameras, samples=n)) for n in (20, 40, 80)},
    }
    found = []
    for what, configs in changes.items():
        values = {f"{count} {what}": median(_own_stepper(c), rounds) for count, c in configs.items()}
        found.append(Row("10", f"training step of dream by {what}", values, ours=next(iter(values))))
    return found


def _own_stepper(config: RunConfig) -> Callable[[], Any]:
    guide = make_guide([load(name) for name in config.models], config)
    return _stepper(config, guide, sample_views(KEY, config.cameras, count=config.views))


def _stepper(config: RunConfig, guide: RunGuide, views: Views) -> Callable[[], Any]:
    kept = [init_state(KEY, config)]

    def step() -> Any:
        kept[0], metrics = train_step(kept[0], guide, views, config=config)
        return metrics

    return step


def _seen(field: Any, config: RunConfig, camera: Any, key: jax.Array) -> jax.Array:
    lit = LitField(field.voxels(), jnp.array([0.0, 0.0, 1.0]), jnp.float32(0.6))
    return render_ball(lit, camera, key, config).colour


def _guided(guide: RunGuide, images: jax.Array, keys: jax.Array) -> jax.Array:
    return jax.vmap(lambda image, key: guide.guide(image, key)[0])(images, keys).mean()


def _rendered(field: Any, views: Views, config: RunConfig) -> jax.Array:
    return jax.vmap(lambda c, k: _seen(field, config, c, k))(views.cameras, views.keys).mean()


def median(run: Callable[[], Any], rounds: int) -> float:
    """Return the median seconds of a run, after two that compile and warm up."""
    seconds = [timed(lambda: jax.block_until_ready(run())) for _ in range(2 + rounds)]
    return statistics.median(seconds[2:])
