"""Captioned pictures of the world, batch by batch: what to draw is chosen on the host, drawing is traced.

Notation: b images, n captions.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray, UInt8

from wordlight.augment import random_views
from wordlight.data.world.captions import distractor_caption, pick_caption
from wordlight.data.world.colours import COLOUR_NAMES
from wordlight.data.world.compose import compose
from wordlight.data.world.distorted import DISTORTED_CAPTIONS
from wordlight.data.world.distractors import DISTRACTOR_CAPTIONS, distractors
from wordlight.data.world.objects import KIND_NAMES
from wordlight.data.world.trace import SIZE
from wordlight.viewpoints import VIEW_PHRASES, seen_from

UNTEXTURED = 0.15  # share of objects drawn in plain grey, so that shapes are known without their colours
DISTRACTORS = 0.1  # share of pictures that show no object
DISTORTED = 0.1  # share of a guide's pictures that show an object put together wrongly
NO_COLOUR = -1
FULL_WEIGHT = 4.0  # of a caption that names kind and colour; one that names either weighs 1


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


def draw_captions(rng: np.random.Generator) -> list[str]:
    """Return one random caption of every claim about the world, in this order.

    First "kind and colour" (row `kind * 10 + colour`), then kinds, then colours, then classes of distractors.
    """
    both = [pick_caption(rng, kind=kind, colour=colour) for kind in KIND_NAMES for colour in COLOUR_NAMES]
    kinds = [pick_caption(rng, kind=kind) for kind in KIND_NAMES]
    colours = [pick_caption(rng, colour=colour) for colour in COLOUR_NAMES]
    return both + kinds + colours + [distractor_caption(rng, i) for i in range(len(DISTRACTOR_CAPTIONS))]


def truth_weights(subjects: Subjects, classes: Int[np.ndarray, "d"]) -> Float[np.ndarray, "b n"]:
    """Return how much each caption of `draw_captions` is the one to find for each object and distractor.

    Zero where it is not true; a caption that names kind and colour weighs more than those that name one.
    """
    kinds, colours = len(KIND_NAMES), len(COLOUR_NAMES)
    truth = np.zeros(
        (len(subjects.kind) + len(classes), kinds * colours + kinds + colours + len(DISTRACTOR_CAPTIONS))
    )
    row, textured = np.arange(len(subjects.kind)), subjects.colour != NO_COLOUR
    truth[row, kinds * colours + subjects.kind] = 1.0
    painted, colour = row[textured], subjects.colour[textured]
    truth[painted, kinds * colours + kinds + colour] = 1.0
    truth[painted, subjects.kind[textured] * colours + colour] = FULL_WEIGHT
    truth[len(row) + np.arange(len(classes)), kinds * colours + kinds + colours + classes] = 1.0
    return truth


def draw_guide_captions(rng: np.random.Generator) -> list[str]:
    """Return one random caption of every claim that a guide knows beyond `draw_captions`, in this order.

    First "kind, colour and side" (row `(kind * 10 + colour) * 4 + side`), then "kind and side", then
    "distorted".
    """
    objects = [pick_caption(rng, kind=kind, colour=colour) for kind in KIND_NAMES for colour in COLOUR_NAMES]
    objects += [pick_caption(rng, kind=kind) for kind in KIND_NAMES]
    seen = [seen_from(caption, phrase) for caption in objects for phrase in VIEW_PHRASES]
    return [*seen, DISTORTED_CAPTIONS[int(rng.integers(len(DISTORTED_CAPTIONS)))]]


def guide_truth_weights(
    subjects: Subjects, shares: Float[np.ndarray, "o 4"], classes: Int[np.ndarray, "d"], distorted: int
) -> Float[np.ndarray, "b n"]:
    """Return how much each caption of `draw_captions` and then of `draw_guide_captions` is the one to find.

    Args:
        subjects: the objects.
        shares: how much of each object's view is front, side, back and overhead.
        classes: those of the distractors.
        distorted: how many of the objects, the last ones, are put together wrongly: no claim about an object
            is true of them.
    """
    kinds, colours, sides = len(KIND_NAMES), len(COLOUR_NAMES), len(VIEW_PHRASES)
    count = len(subjects.kind)
    seen = np.zeros((count + len(classes), kinds * colours + kinds, sides))
    row, textured = np.arange(count), subjects.colour != NO_COLOUR
    seen[row, kinds * colours + subjects.kind] = shares
    painted = subjects.kind[textured] * colours + subjects.colour[textured]
    seen[row[textured], painted] = FULL_WEIGHT * shares[textured]
    wrong = (row >= count - distorted)[:, None]
    truth = np.pad(
        np.concatenate([truth_weights(subjects, classes), seen.reshape(len(seen), -1)], axis=1),
        ((0, 0), (0, 1)),
    )
    truth[:count] *= ~wrong
    truth[:count, -1:] = wrong
    return truth


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
