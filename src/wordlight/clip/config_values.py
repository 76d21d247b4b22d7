"""Entries of a checkpoint's configuration file, checked one by one."""

from typing import Any

from wordlight.clip.config import TransformerConfig
from wordlight.errors import WordlightError

Json = dict[str, Any]

# Far beyond every published model; a damaged file must not make us plan for more than there is.
MOST = 1_000_000
MOST_LAYERS = 256
MOST_PIXELS = 16_384


def config_error(key: str, value: Any, wanted: str) -> WordlightError:
    """Return the refusal of one entry of a configuration file."""
    shown = repr(value)
    shown = shown if len(shown) <= 80 else f"{shown[:77]}..."
    return WordlightError(
        f"The model's configuration says {key} = {shown}, but {wanted}. The file was edited, belongs to "
        "another kind of model, or asks for something Wordlight does not do. Check it against the repository "
        "it came from."
    )


def positive(config: Json, key: str, *, default: Any = None, most: int = MOST) -> int:
    """Return a positive whole number of a configuration file, at most `most`.

    Raises:
        WordlightError: it is something else, or missing without a default.
    """
    value = config.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise config_error(key, value, f"a whole number from 1 to {most} is needed")
    return value


def fraction(config: Json, key: str, *, default: float) -> float:
    """Return a number between 0 and 1, both excluded, as the epsilon of a norm is.

    Raises:
        WordlightError: it is something else.
    """
    value = config.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1:
        raise config_error(key, value, "a number between 0 and 1 is needed")
    return float(value)


def flag(config: Json, key: str, *, default: bool = False) -> bool:
    """Return true or false.

    Raises:
        WordlightError: it is something else.
    """
    value = config.get(key, default)
    if not isinstance(value, bool):
        raise config_error(key, value, "true or false is needed")
    return value


def choice(config: Json, key: str, choices: tuple[str, ...], *, default: str) -> str:
    """Return one of several words.

    Raises:
        WordlightError: it is none of them.
    """
    value = config.get(key, default)
    if value not in choices:
        raise config_error(key, value, f"only {', '.join(map(repr, choices))} are done")
    return value


def token_id(config: Json, key: str, *, default: int) -> int:
    """Return a token id.

    Raises:
        WordlightError: it is something else than a whole number from 0.
    """
    value = config.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise config_error(key, value, "a whole number from 0 is needed")
    return value


def check_heads(config: TransformerConfig) -> TransformerConfig:
    """Return the configuration if its heads share the width evenly.

    Raises:
        WordlightError: they do not.
    """
    if config.width % config.heads:
        raise config_error("attention heads", config.heads, f"they must divide the width {config.width}")
    return config


def check_patch(patch_size: int, image_size: tuple[int, int]) -> int:
    """Return the patch size if at least one patch fits into the image.

    Raises:
        WordlightError: none does.
    """
    if patch_size > min(image_size):
        raise config_error("patch_size", patch_size, f"it must fit in the image size {image_size}")
    return patch_size


def square(config: Json, key: str, *, default: Any, most: int) -> int:
    """Return the side of a square that is given as a number or as a pair of equal ones.

    Raises:
        WordlightError: it is something else.
    """
    value = config.get(key, default)
    if isinstance(value, list | tuple) and len(value) == 2 and value[0] == value[1]:
        value = value[0]
    return positive({key: value}, key, most=most)
