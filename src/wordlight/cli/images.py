"""Pictures that people bring, of any kind, as arrays."""

from pathlib import Path

import numpy as np
from jaxtyping import Float32

from wordlight.errors import WordlightError


def read_image(path: Path) -> Float32[np.ndarray, "height width 3"]:
    """Return the picture in a file, in [0, 1], turned upright as its EXIF data says; transparent parts become
    white.

    Raises:
        WordlightError: the file is missing, no picture, damaged, or too large.
    """
    from PIL import Image, ImageOps

    try:
        with Image.open(path) as image:
            return _as_rgb(ImageOps.exif_transpose(image))
    # Decoders of damaged files raise many classes, SyntaxError and struct.error among them.
    except Exception as error:
        reason = str(error) or type(error).__name__
        raise WordlightError(
            f"The picture {path} cannot be read ({reason}). The path is misspelt, or the file is no picture "
            "or was cut short. Give a file that an image viewer opens, such as a PNG or a JPEG."
        ) from error


def _as_rgb(image) -> Float32[np.ndarray, "height width 3"]:
    from PIL import Image

    if image.mode.startswith(("I", "F")):
        return _from_deep_grey(np.asarray(image))
    if image.has_transparency_data:
        image = image.convert("RGBA")
        white = Image.new("RGBA", image.size, "white")
        image = Image.alpha_composite(white, image)
    return np.asarray(image.convert("RGB"), np.float32) / 255


def _from_deep_grey(values: np.ndarray) -> Float32[np.ndarray, "height width 3"]:
    """Return 16-bit or floating-point grey as RGB: PIL would clip it to 8 bits. Floats are taken as [0,
    1]."""
    full = 1.0 if values.dtype.kind == "f" else 65535.0
    grey = np.clip(values.astype(np.float32) / full, 0.0, 1.0)
    return np.repeat(grey[..., None], 3, axis=-1)
