"""The pictures of the world in docs/demo.md: `python -m bench.world_pictures`."""

from collections.abc import Callable
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray, UInt8

from bench.workers import ROOT
from wordlight.data.world.colours import COLOUR_NAMES
from wordlight.data.world.compose import compose
from wordlight.data.world.dataset import render_table
from wordlight.data.world.distorted import mixed, squeezed, turned
from wordlight.data.world.objects import KINDS
from wordlight.data.world.trace import Views, trace
from wordlight.export.images import contact_sheet, save_png

FOLDER = ROOT / "docs" / "images"
GREY = 0.75
AZIMUTHS = (-45, 30, -20, 90, 180, -30, 0, 150)  # degrees; the last but two looks from above
ELEVATIONS = (20, 15, 10, 0, 30, 80, 5, 45)
DISTORTED = 10  # pictures of each way


def kinds() -> Float[np.ndarray, "height width 3"]:
    """Return every kind from eight sides, in yellow and another colour, two kinds a row."""
    yellow = jnp.full(len(AZIMUTHS), COLOUR_NAMES.index("yellow"))
    keys = jax.random.split(jax.random.key(0), len(KINDS))
    rows = [_pictures(key, trace(k, _all_round()), yellow) for key, k in zip(keys, KINDS, strict=True)]
    half = len(rows) // 2
    pairs = zip(rows[:half], rows[half:], strict=True)
    return contact_sheet([[*left, *right] for left, right in pairs], gap=0)


def distorted() -> Float[np.ndarray, "height width 3"]:
    """Return a row of pictures for each way in which an object is spoilt."""
    views = jnp.asarray(render_table(1, 1))[:, 0]
    ways: tuple[Callable[[PRNGKeyArray, Array], Array], ...] = (turned, squeezed, mixed)
    keys = jax.random.split(jax.random.key(0), len(ways))

    def row(key: PRNGKeyArray, way: Callable[[PRNGKeyArray, Array], Array]) -> Float[Array, "b h w 3"]:
        pick_key, colour_key, way_key, light_key = jax.random.split(key, 4)
        picked = jax.random.choice(pick_key, views, (DISTORTED,), replace=False)
        colours = jax.random.randint(colour_key, (DISTORTED,), 0, len(COLOUR_NAMES))
        return _pictures(light_key, way(way_key, picked), colours)

    return contact_sheet([row(key, way) for key, way in zip(keys, ways, strict=True)], gap=0)


def _all_round() -> Views:
    n, degrees = len(AZIMUTHS), jnp.pi / 180
    one, zero = jnp.ones(n), jnp.zeros(n)
    return Views(
        azimuth=jnp.array(AZIMUTHS) * degrees,
        elevation=jnp.array(ELEVATIONS) * degrees,
        radius=3.2 * one,
        field_of_view=0.7 * one,
        roll=zero,
        scale=one,
        offset=jnp.zeros((n, 3)),
        tilt=jnp.zeros((n, 2)),
        proportions=jnp.zeros((n, 4)),
    )


def _pictures(
    key: PRNGKeyArray, gbuffers: UInt8[Array, "b h w 6"], colours: Int[Array, "b"]
) -> Float[Array, "b h w 3"]:
    """Return pictures before grey; those of a row have lamps of their own."""
    return compose(key, gbuffers, colours, background=jnp.full((*gbuffers.shape[:-1], 3), GREY))


def main(folder: Path = FOLDER) -> None:
    """Write both sheets."""
    save_png(folder / "kinds.png", kinds())
    save_png(folder / "distorted.png", distorted())


if __name__ == "__main__":
    main()
