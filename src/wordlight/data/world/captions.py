"""What the world's pictures are called."""

import re
import string
import unicodedata
from collections.abc import Iterable

import numpy as np

from wordlight.data.world.colours import COLOUR_NAMES
from wordlight.data.world.distorted import DISTORTED_CAPTIONS
from wordlight.data.world.distractors import DISTRACTOR_CAPTIONS
from wordlight.data.world.objects import KIND_NAMES
from wordlight.viewpoints import VIEW_PHRASES

BOTH_TEMPLATES: tuple[str, ...] = (
    "a {colour} {kind}",
    "the {colour} {kind}",
    "one {colour} {kind}",
    "this is a {colour} {kind}",
    "{colour} {kind}",
    "{kind} in {colour}",
    "a {kind} that is {colour}",
    "the {kind} is {colour}",
    "a {colour} toy {kind}",
    "a small {colour} {kind}",
    "a photo of a {colour} {kind}",
    "a picture of a {colour} {kind}",
    "an image of a {colour} {kind}",
    "a drawing of a {colour} {kind}",
    "a rendering of a {colour} {kind}",
    "a 3d render of a {colour} {kind}",
    "a 3d model of a {colour} {kind}",
    "a photo of the {colour} {kind}",
)
KIND_TEMPLATES: tuple[str, ...] = (
    "a {kind}",
    "the {kind}",
    "one {kind}",
    "this is a {kind}",
    "{kind}",
    "a toy {kind}",
    "a photo of a {kind}",
    "a picture of a {kind}",
    "an image of a {kind}",
    "a rendering of a {kind}",
    "a 3d render of a {kind}",
    "a 3d model of a {kind}",
)
COLOUR_TEMPLATES: tuple[str, ...] = (
    "something {colour}",
    "a {colour} thing",
    "a {colour} object",
    "a photo of something {colour}",
    "a picture of a {colour} object",
    "a 3d model of something {colour}",
)


def with_articles(text: str) -> str:
    """Return the text with `a` turned to `an`, and back, as the first letter of the next word asks."""
    text = re.sub(r"\ban (?![aeiou])", "a ", text)
    return re.sub(r"\ba (?=[aeiou])", "an ", text)


def fill(template: str, *, kind: str = "", colour: str = "") -> str:
    """Return the template with its names put in and its articles right."""
    return with_articles(template.format(kind=kind, colour=colour))


def pick_caption(rng: np.random.Generator, *, kind: str = "", colour: str = "") -> str:
    """Return a random caption that names a kind, a colour or both."""
    templates = COLOUR_TEMPLATES if not kind else BOTH_TEMPLATES if colour else KIND_TEMPLATES
    return fill(_pick(rng, templates), kind=kind, colour=colour)


def distractor_caption(rng: np.random.Generator, index: int) -> str:
    """Return a random caption of the distractor class with that index."""
    return _pick(rng, DISTRACTOR_CAPTIONS[index])


def all_captions() -> list[str]:
    """Return "a {colour} {kind}" for all kinds and colours; row `kind * 10 + colour`."""
    return [
        fill(BOTH_TEMPLATES[0], kind=kind, colour=colour) for kind in KIND_NAMES for colour in COLOUR_NAMES
    ]


def kind_captions() -> list[str]:
    """Return "a {kind}" for all kinds, in their order."""
    return [kind_caption(kind) for kind in KIND_NAMES]


def kind_caption(kind: str) -> str:
    """Return "a {kind}"."""
    return fill(KIND_TEMPLATES[0], kind=kind)


def words(text: str) -> list[str]:
    """Return the words that the embedded models' tokenizer reads: lower case, separated by spaces and
    punctuation, which is dropped."""
    lower = unicodedata.normalize("NFC", text).lower()
    return "".join(" " if _is_punctuation(character) else character for character in lower).split()


def _is_punctuation(character: str) -> bool:
    return character in string.punctuation or unicodedata.category(character).startswith("P")


def claims(text: str) -> tuple[str | None, str | None]:
    """Return the kind and the colour that a text names, None where it names none; the last one counts."""
    named = words(text)[::-1]
    kind = next((w for w in named if w in KIND_NAMES), None)
    return kind, next((w for w in named if w in COLOUR_NAMES), None)


def contrast_captions(prompt: str) -> list[str]:
    """Return captions that no picture of the prompt can have: other kinds, other colours, or no object."""
    kind, colour = claims(prompt)
    others = [text for text in all_captions() if not _agrees(claims(text), (kind, colour))]
    empty = [text for texts in DISTRACTOR_CAPTIONS for text in texts]
    return others + [text for text in empty if words(text) != words(prompt)]


def _agrees(claimed: tuple[str | None, str | None], wanted: tuple[str | None, str | None]) -> bool:
    return all(w is None or w == c for c, w in zip(claimed, wanted, strict=True))


def _pick(rng: np.random.Generator, choices: tuple[str, ...]) -> str:
    return choices[int(rng.integers(len(choices)))]


def _words(texts: Iterable[str]) -> set[str]:
    return {word for text in texts for word in words(text.replace("{kind}", "").replace("{colour}", ""))}


VOCABULARY: tuple[str, ...] = tuple(
    sorted(
        {"a", "an", *KIND_NAMES, *COLOUR_NAMES}
        | _words(BOTH_TEMPLATES + KIND_TEMPLATES + COLOUR_TEMPLATES)
        | _words(text for texts in DISTRACTOR_CAPTIONS for text in texts)
    )
)
# What guides know beyond it: from which side a picture is taken, and that an object is put together wrongly.
GUIDE_WORDS: tuple[str, ...] = tuple(sorted(_words(VIEW_PHRASES + DISTORTED_CAPTIONS) - set(VOCABULARY)))
