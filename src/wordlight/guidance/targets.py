"""What a guidance is made from: texts, pictures and weights, checked and embedded on the host."""

import math
from collections.abc import Sequence
from functools import partial
from pathlib import PurePath

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from wordlight.clip.model import ClipModel
from wordlight.clip.preprocess import Layout, ValueRange
from wordlight.errors import WordlightError

Images = Array | np.ndarray | Sequence[Array | np.ndarray]


def as_list(texts: str | Sequence[str]) -> list[str]:
    """Return the texts as a list, one text as a list of one."""
    return [texts] if isinstance(texts, str) else list(texts)


def check_texts(prompts: Sequence[str], negatives: Sequence[str]) -> None:
    """Refuse an empty text, and no prompt at all."""
    given = [*prompts, *negatives]
    wrong = [text for text in given if not isinstance(text, str)]
    if wrong:
        raise WordlightError(
            f"A prompt is {wrong[0]!r} ({type(wrong[0]).__name__}), not text. Token ids or an index were "
            "probably passed. Give strings."
        )
    if prompts and all(text.strip() for text in given):
        return
    raise WordlightError(
        f"The prompts {list(prompts)} and negatives {list(negatives)} hold an empty text, or there is none. "
        "An empty prompt means nothing to the model, and usually comes from an unset variable. Say what the "
        "image should show."
    )


def positive_weights(weights: Sequence[float] | None, count: int, what: str) -> Float[Array, "p"]:
    """Return one weight for each, equal where none are given.

    Raises:
        WordlightError: there are too few or too many, or one is not a positive number.
    """
    given = [1.0] * count if weights is None else list(weights)
    if len(given) == count and all(0 < weight < math.inf for weight in given):
        return jnp.asarray(given, jnp.float32)
    raise WordlightError(
        f"The weights {given} do not go with {count} {what}. There must be one positive number for each. "
        "Push texts away with negatives, not with negative weights."
    )


def embed_images(
    model: ClipModel, images: Images, *, value_range: ValueRange, layout: Layout
) -> Float[Array, "q e"]:
    """Return embeddings of pictures: one, a batch, or a sequence of unlike sizes.

    Raises:
        WordlightError: there is none, one is refused by the preprocessing, or holds NaN or infinity.
    """
    if isinstance(images, str | PurePath):
        raise WordlightError(
            f"The target image is a name, {str(images)!r}. Files are not opened here. Read it first, for "
            "example jnp.asarray(PIL.Image.open(name)) / 255."
        )
    shown = [images] if isinstance(images, jax.Array | np.ndarray) else list(images)
    each = [_encode(model, jnp.asarray(image), value_range=value_range, layout=layout) for image in shown]
    embeds = jnp.concatenate([jnp.zeros((0, model.config.embed_dim)), *each])
    if not len(embeds):
        raise WordlightError(
            "There are no pictures to embed. The list or the batch is empty, usually because a filter or a "
            "folder held nothing. Give at least one."
        )
    _check_directions(embeds)
    return embeds


@partial(jax.jit, static_argnames=("value_range", "layout"))
def _encode(
    model: ClipModel, image: Array, *, value_range: ValueRange, layout: Layout
) -> Float[Array, "q e"]:
    embeds = model.encode_image(image, value_range=value_range, layout=layout)
    return embeds.reshape(-1, model.config.embed_dim)


def _check_directions(embeds: Float[Array, "q e"]) -> None:
    """Refuse what is not of unit length: NaN and infinity stay what they are, zero has no direction."""
    if isinstance(embeds, Tracer):
        return
    bad = np.flatnonzero(~(np.linalg.norm(np.asarray(embeds, np.float32), axis=-1) > 0.5)).tolist()
    if bad:
        raise WordlightError(
            f"The embeddings of pictures {bad} have no direction. The pictures hold NaN or infinity, as a "
            "failed render does, or the model's weights do. Look at them before they guide anything."
        )
