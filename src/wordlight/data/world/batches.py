"""Captioned pictures of the world, batch by batch: what to draw is chosen on the host, drawing is traced.

Notation: b images, n captions.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, UInt8

from wordlight.augment import random_views
from wordlight.data.world.captions import caption, distractor_caption
from wordlight.data.world.colours import COLOUR_NAMES
from wordlight.data.world.compose import compose
from wordlight.data.world.distractors import DISTRACTOR_CAPTIONS, distractors
from wordlight.data.world.objects import KIND_NAMES
from wordlight.data.world.trace import SIZE

UNTEXTURED = 0.15  # share of objects drawn in plain grey, so that shapes are known without their colours
DISTRACTORS = 0.1  # share of pictures that show no object
NO_COLOUR = -1


class Subjects(NamedTuple):
    """What the objects of a batch are, one entry an image.

    Attributes:
        kind: index into `KIND_NAMES`.
        view: index into the table's views.
        colour: index into `COLOUR_NAMES`, -1 for untextured objects.
    """

    kind: Int[np.ndarray, "b"]
    view: Int[np.ndarray, "b"]
    colour: Int[np.ndarray, "b"]


def draw_subjects(rng: np.random.Generator, count: int, views: int) -> Subjects:
    """Choose objects at random."""
    colour = rng.integers(len(COLOUR_NAMES), size=count)
    colour = np.where(rng.random(count) < UNTEXTURED, NO_COLOUR, colour)
    return Subjects(rng.integers(len(KIND_NAMES), size=count), rng.integers(views, size=count), colour)


def draw_captions(
    rng: np.random.Generator, subjects: Subjects, classes: Int[np.ndarray, "d"]
) -> tuple[list[str], Bool[np.ndarray, "b n"]]:
    """Caption objects and distractors, and say which caption is true of which picture.

    A caption that names only the kind or only the colour is true of every picture that shows it.
    """
    names = [None if c == NO_COLOUR else COLOUR_NAMES[c] for c in subjects.colour]
    objects = [caption(rng, KIND_NAMES[k], colour=c) for k, c in zip(subjects.kind, names, strict=True)]
    texts = objects + [distractor_caption(rng, int(c)) for c in classes]
    pictures = [{KIND_NAMES[k], c} for k, c in zip(subjects.kind, names, strict=True)]
    pictures += [{_distractor(int(c))} for c in classes]
    claims = [_claims(text) for text in objects] + [{_distractor(int(c))} for c in classes]
    truth = np.array([[claim <= picture for claim in claims] for picture in pictures])
    return texts, truth


def _distractor(index: int) -> str:
    return f"no object: {DISTRACTOR_CAPTIONS[index][0]}"


def _claims(text: str) -> set[str]:
    """Return the kind and the colour that a caption names."""
    return set(text.split()) & {*KIND_NAMES, *COLOUR_NAMES}


@partial(jax.jit, static_argnames="distractor_count")
def draw_pictures(
    key: PRNGKeyArray,
    gbuffers: UInt8[Array, "o h w 6"],
    colour: Int[Array, "o"],
    *,
    distractor_count: int,
) -> tuple[Float[Array, "b h w 3"], Int[Array, "d"]]:
    """Compose objects and distractors, then shift, zoom, blur and speckle all of them.

    Returns:
        Pictures about [0, 1], the distractors last, and the distractors' classes.
    """
    object_key, distractor_key, view_key = jax.random.split(key, 3)
    pictures = compose(object_key, gbuffers, jnp.maximum(colour, 0), textured=colour != NO_COLOUR)
    others, classes = distractors(distractor_key, distractor_count)
    views = random_views(
        view_key,
        jnp.concatenate([pictures, others]),
        size=(SIZE, SIZE),
        zoom=(0.8, 1.15),
        shift=0.07,
        blur=(1.0, 2.5),
        noise=0.06,
    )
    return views, classes
