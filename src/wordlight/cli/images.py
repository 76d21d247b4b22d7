"""Pictures that people bring, of any kind, as arrays."""

import warnings
from pathlib import Path

import numpy as np
from jaxtyping import Float32

from wordlight.errors import WordlightError


def read_image(path: Path) -> Float32[np.ndarray, "height width 3"]:
    """Return the picture in a file, in [0, 1], turned upright as its EXIF data says; transparent parts become
    white.

    Raises:
        WordlightError: the file is missing, no picture, damaged, too large, or holds numbers whose white is
            unknown.
    """
    from PIL import Image, ImageOps

    try:
        with warnings.catch_warnings(), _open(path) as image:
            return _as_rgb(ImageOps.exif_transpose(image), path)
    except WordlightError:
        raise
    except Image.DecompressionBombError as error:
        raise _too_large(path, error) from error
    # Decoders of damaged files raise many classes, SyntaxError and struct.error among them.
    except Exception as error:
        reason = str(error) or type(error).__name__
        raise WordlightError(
            f"The picture {path} cannot be read ({reason}). The path is misspelt, or the file is no picture "
            "or was cut short. Give a file that an image viewer opens, such as a PNG or a JPEG."
        ) from error


def _open(path: Path):
    from PIL import Image

    warnings.simplefilter("ignore", Image.DecompressionBombWarning)
    return Image.open(path)


def _too_large(path: Path, error: Exception) -> WordlightError:
    size = str(error).partition(",")[0]
    return WordlightError(
        f"The picture {path} is too large ({size}). A panorama, a scan or a map is the usual cause, and "
        "models look at a few hundred pixels a side. Make the picture smaller, or cut out what matters."
    )


def _as_rgb(image, path: Path) -> Float32[np.ndarray, "height width 3"]:
    from PIL import Image

    if image.mode.startswith(("I", "F")):
        return _from_deep_grey(np.asarray(image), path)
    if image.has_transparency_data:
        image = image.convert("RGBA")
        white = Image.new("RGBA", image.size, "white")
        image = Image.alpha_composite(white, image)
    return np.asarray(image.convert("RGB"), np.float32) / 255


def _from_deep_grey(values: np.ndarray, path: Path) -> Float32[np.ndarray, "height width 3"]:
    """Return 16-bit or floating-point grey as RGB: PIL would clip it to 8 bits."""
    full = 1 if values.dtype.kind == "f" else 65535
    low, high = values.min(), values.max()
    if not (low >= 0 and high <= full):  # NaN compares false
        raise WordlightError(
            f"The picture {path} holds numbers from {low:g} to {high:g}, and white is {full} in one of its "
            "kind. Measurements, such as depths or heights, are the usual cause. Scale them to the range "
            f"from 0 to {full}, or save them as an 8-bit picture."
        )
    return np.repeat(values.astype(np.float32)[..., None] / np.float32(full), 3, axis=-1)
