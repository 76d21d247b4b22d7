"""Pictures of what was rendered: files, sheets, and depth and normals made visible.

Images are `[..., height, width, 3]` in [0, 1], sRGB values; everything here runs on the host, in NumPy, and
nothing is differentiable.
"""

import os
from collections.abc import Iterable, Sequence

import numpy as np
from jaxtyping import ArrayLike, Float32, UInt8

from wordlight.errors import WordlightError
from wordlight.export.colour import lightness_ramp
from wordlight.export.files import replacing

_LABEL_HEIGHT = 16
_SOLID = 0.5


def to_uint8(image: ArrayLike) -> UInt8[np.ndarray, "..."]:
    """Return `image` in 8-bit levels: clipped to [0, 1], rounded to the nearest level; NaN becomes 0.

    Bytes come back as they are.
    """
    image = np.asarray(image)
    if image.dtype == np.uint8:
        return image
    levels = np.nan_to_num(image.astype(np.float32), nan=0.0, posinf=1.0, neginf=0.0)
    return np.rint(np.clip(levels, 0.0, 1.0) * 255.0).astype(np.uint8)


def save_png(path: str | os.PathLike[str], image: ArrayLike) -> None:
    """Write one image `[height, width]`, `[height, width, 3]` or `[height, width, 4]` as a PNG file.

    The file appears whole or not at all; an older one at `path` stays until then.

    Raises:
        WordlightError: the array is no image.
    """
    from PIL import Image

    levels = to_uint8(image)
    if levels.ndim not in (2, 3) or (levels.ndim == 3 and levels.shape[2] not in (3, 4)) or 0 in levels.shape:
        raise WordlightError(
            f"An array of shape {levels.shape} is no image. "
            "A batch, or channels in front, is the usual cause. "
            "Pass [height, width], [height, width, 3] or [height, width, 4]."
        )
    with replacing(path) as partial:
        Image.fromarray(levels).save(partial, format="PNG")


def contact_sheet(
    rows: Sequence[Iterable[ArrayLike]],
    *,
    labels: Sequence[Sequence[str]] | None = None,
    gap: int = 4,
    background: float = 1.0,
) -> Float32[np.ndarray, "height width 3"]:
    """Lay rows of images of one size out on one sheet.

    Args:
        rows: each an array `[n, height, width, 3]` or a sequence of `[height, width, 3]`; short rows end in
            background.
        labels: text written below the images, nested like `rows`; a row without labels gets no space for
            them.
        gap: pixels between images and around them.
        background: grey level between images, in [0, 1].

    Raises:
        WordlightError: there is no image, or the images have several sizes.
    """
    images = [list(map(_as_floats, row)) for row in rows]
    height, width = _common_size(images)
    labels = labels or [()] * len(images)
    strips = [_LABEL_HEIGHT if any(texts) else 0 for texts in labels] + [0] * (len(images) - len(labels))
    columns = max(map(len, images))
    tops = gap + np.concatenate([[0], np.cumsum([height + strip + gap for strip in strips])]).astype(int)
    sheet = np.full((int(tops[-1]), gap + columns * (width + gap), 3), background, np.float32)
    for top, row in zip(tops[:-1], images, strict=True):
        for column, image in enumerate(row):
            left = gap + column * (width + gap)
            sheet[top : top + height, left : left + width] = image
    for top, texts in zip(tops[:-1] + height, labels, strict=False):
        for column, text in enumerate(texts):
            left = gap + column * (width + gap)
            sheet[top : top + _LABEL_HEIGHT, left : left + width] = _label(text, width, background)
    return sheet


def _as_floats(image: ArrayLike) -> np.ndarray:
    image = np.asarray(image)
    return image / np.float32(255) if image.dtype == np.uint8 else image.astype(np.float32)


def _common_size(images: list[list[np.ndarray]]) -> tuple[int, int]:
    shapes = {image.shape for row in images for image in row}
    sized = [shape for shape in shapes if len(shape) == 3 and shape[2] == 3]
    if len(shapes) != 1 or not sized:
        raise WordlightError(
            f"A contact sheet needs images of one shape, not {sorted(shapes) or 'none at all'}. "
            "Depth maps without colour, or renders at several sizes, are the usual cause. "
            "Pass images [height, width, 3] of one size; `colourize_depth` turns depth into such an image."
        )
    return sized[0][0], sized[0][1]


def _label(text: str, width: int, background: float) -> Float32[np.ndarray, "height width 3"]:
    """Return a strip with one line of text, cut at the width of the image above it."""
    from PIL import Image, ImageDraw, ImageFont

    strip = Image.new("L", (width, _LABEL_HEIGHT), round(background * 255))
    ink = 0 if background > 0.5 else 255
    ImageDraw.Draw(strip).text((1, 1), text, fill=ink, font=ImageFont.load_default(11))
    grey = np.asarray(strip, np.float32) / 255.0
    return np.repeat(grey[..., None], 3, axis=-1)


def colourize_depth(
    depth: ArrayLike,
    opacity: ArrayLike,
    *,
    near: float | None = None,
    far: float | None = None,
    background: float = 1.0,
) -> Float32[np.ndarray, "... 3"]:
    """Return depth as colour, near bright and far dark, over the background by opacity.

    Args:
        depth: distance along each ray in scene units, `[..., height, width]`; any value where `opacity` is 0.
        opacity: in [0, 1], the same shape.
        near: distance drawn brightest; by default the 1st percentile over the pixels of opacity above one
            half, of all images given, so that the images of one call share a scale.
        far: distance drawn darkest; by default the 99th percentile likewise.
        background: grey level in [0, 1] where nothing was hit.
    """
    depth, opacity = np.broadcast_arrays(np.asarray(depth, np.float32), np.asarray(opacity, np.float32))
    solid = depth[(opacity > _SOLID) & np.isfinite(depth)]
    measured = np.percentile(solid, [1, 99]) if solid.size else (0.0, 1.0)
    near = float(measured[0]) if near is None else near
    far = float(measured[1]) if far is None else far
    depth = np.where(np.isfinite(depth), depth, far)
    nearness = 1.0 - np.clip((depth - near) / max(far - near, 1e-6), 0.0, 1.0)
    return _over(lightness_ramp(nearness), opacity, background)


def shade_normals(
    normals: ArrayLike,
    opacity: ArrayLike,
    *,
    light: tuple[float, float, float] = (0.6, 0.35, 0.72),
    background: float = 1.0,
) -> Float32[np.ndarray, "... 3"]:
    """Return the shape without its texture: grey, lit by one far light, over the background by opacity.

    The shading is half Lambert, (0.5 n.l + 0.5)^2 (Mitchell et al. 2006, Shading in Valve's Source Engine),
    so that the side in shadow keeps its form. A zero normal is drawn as one at a right angle to the light.

    Args:
        normals: outward directions in world axes, any length, `[..., height, width, 3]`.
        opacity: in [0, 1], `[..., height, width]`.
        light: direction towards the light, in world axes.
        background: grey level in [0, 1] where nothing was hit.
    """
    normals = np.nan_to_num(np.asarray(normals, np.float32), nan=0.0, posinf=0.0, neginf=0.0)
    towards = np.asarray(light, np.float32)
    towards = towards / max(float(np.linalg.norm(towards)), 1e-12)
    lengths = np.linalg.norm(normals, axis=-1, keepdims=True)
    cosine = (normals / np.maximum(lengths, 1e-12)) @ towards
    grey = 0.08 + 0.84 * (0.5 * cosine + 0.5) ** 2
    return _over(np.repeat(grey[..., None], 3, axis=-1), np.asarray(opacity, np.float32), background)


def _over(colour: np.ndarray, opacity: np.ndarray, background: float) -> Float32[np.ndarray, "... 3"]:
    opacity = np.clip(np.nan_to_num(opacity, nan=0.0), 0.0, 1.0)[..., None]
    return (opacity * colour + (1.0 - opacity) * background).astype(np.float32)
