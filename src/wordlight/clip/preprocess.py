"""Traced image preprocessing: resize, crop and normalisation as one linear map.

The resize and the crop are two small constant matrices (`kernels.py`), so the gradient is their transpose and
no callback is needed. Notation: h, w input height and width; y, x output; c channel.
"""

from typing import Literal, get_args

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from wordlight.clip.image_spec import ImageSpec
from wordlight.clip.kernels import AxisWeights, image_weights
from wordlight.errors import WordlightError

ValueRange = Literal["unit", "byte", "signed"]
Layout = Literal["HWC", "CHW"]

# (scale, shift): scale * value + shift lies in [0, 1].
_UNIT = {"unit": (1.0, 0.0), "byte": (1 / 255, 0.0), "signed": (0.5, 0.5)}
_OTHER = {"HWC": "CHW", "CHW": "HWC"}
_COLUMNS = {"HWC": "xw,...hwc->...hxc", "CHW": "xw,...chw->...chx"}


def preprocess(
    images: ArrayLike, spec: ImageSpec, *, value_range: ValueRange = "unit", layout: Layout = "HWC"
) -> Float[Array, "*batch height width 3"]:
    """Turn images of any size into the pixels an image tower takes.

    Linear in `images` (with `spec.rounding == "none"`), so differentiable everywhere; with `"pil"` the
    gradient is that of the map without rounding and clipping. Values outside the range are not clipped
    otherwise.

    Args:
        images: `[..., height, width, 3]` or, with layout `"CHW"`, `[..., 3, height, width]`; traced or not.
            Leading axes may be empty.
            Floats of any width are computed in float32. Integers are taken with value range `"byte"` only:
            they have no gradient.
        spec: the preprocessing, usually `model.image_spec`.
        value_range: `"unit"` [0, 1], `"byte"` [0, 255] or `"signed"` [-1, 1]. Never guessed from the values.
        layout: where the channels are.

    Returns:
        Normalised pixels, float32, channels last.

    Raises:
        WordlightError: shape, dtype, range or layout do not fit.
    """
    images = _checked(images, value_range, layout)
    axis = -3 if layout == "HWC" else -2
    rows, columns = image_weights((images.shape[axis], images.shape[axis + 1]), spec)
    images = jax.lax.slice_in_dim(images, rows.start, rows.stop, axis=axis % images.ndim)
    images = jax.lax.slice_in_dim(images, columns.start, columns.stop, axis=(axis + 1) % images.ndim)
    images = images.astype(jnp.float32)
    if spec.rounding == "pil":
        resized, scale, shift = _resize_8_bit(images, rows, columns, value_range, layout), 1 / 255, 0.0
    else:
        resized, (scale, shift) = _resize(images, rows, columns, layout), _UNIT[value_range]
    resized = resized if layout == "HWC" else jnp.moveaxis(resized, -3, -1)
    return _normalize(resized, spec, scale, shift, np.outer(rows.inside, columns.inside))


def _resize(images: Array, rows: AxisWeights, columns: AxisWeights, layout: Layout) -> Array:
    return _resize_columns(_resize_rows(images, rows, layout), columns, layout)


def _resize_8_bit(
    images: Array, rows: AxisWeights, columns: AxisWeights, value_range: ValueRange, layout: Layout
) -> Array:
    """Resize as PIL does: columns first, every stage rounded and clipped to [0, 255]."""
    scale, shift = _UNIT[value_range]
    levels = images if value_range == "byte" else (images * scale + shift) * 255
    levels = _round_to_byte(_resize_columns(_round_to_byte(levels), columns, layout))
    return _round_to_byte(_resize_rows(levels, rows, layout))


# HIGHEST, as accelerators would else multiply with ten bits of mantissa and lose what parity promises.
_EXACT = jax.lax.Precision.HIGHEST


def _resize_rows(images: Array, rows: AxisWeights, layout: Layout) -> Array:
    # A product of its own for every image, its columns and channels as one axis: nothing has to be moved.
    across = images.shape[-2] * images.shape[-1]  # not -1, which an empty batch leaves undecided
    flat = images.reshape(*images.shape[:-2], across) if layout == "HWC" else images
    lead, inner = flat.shape[:-2], images.shape[-2:] if layout == "HWC" else images.shape[-1:]
    matrices = jnp.broadcast_to(rows.weights, (*lead, *rows.weights.shape))
    resized = jnp.matmul(matrices, flat, precision=_EXACT)
    return resized.reshape(*lead, len(rows.weights), *inner)


def _resize_columns(images: Array, columns: AxisWeights, layout: Layout) -> Array:
    return jnp.einsum(_COLUMNS[layout], columns.weights, images, precision=_EXACT)


@jax.custom_jvp
def _round_to_byte(levels: Array) -> Array:
    # Half up, as PIL's fixed-point arithmetic does.
    return jnp.clip(jnp.floor(levels + 0.5), 0, 255)


@_round_to_byte.defjvp
def _straight_through(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    return _round_to_byte(*primals), tangents[0]


def _normalize(resized: Array, spec: ImageSpec, scale: float, shift: float, inside: np.ndarray) -> Array:
    """Return ((scale * resized + shift) - mean) / std inside the image and (fill - mean) / std around it."""
    mean, std = np.asarray(spec.mean), np.asarray(spec.std)
    if inside.all():
        inside = np.ones((1, 1))
    offset = (np.where(inside[..., None], shift, spec.fill) - mean) / std
    lead = (1,) * (resized.ndim - 3)
    factor = np.asarray(scale / std, np.float32).reshape(*lead, 1, 1, 3)
    return resized * factor + np.asarray(offset, np.float32).reshape(*lead, *offset.shape)


def _checked(images: ArrayLike, value_range: ValueRange, layout: Layout) -> Array:
    _check_choice("value_range", value_range, get_args(ValueRange))
    check_layout(layout)
    images = images if isinstance(images, jax.Array) else _concrete(images)
    _check_dtype(images, value_range)
    if images.ndim < 3:
        raise WordlightError(
            f"An image of shape {images.shape} has {images.ndim} axes, not at least three. It is usually a "
            "grey image or a flat list of rendered rays. Reshape it to [..., height, width, 3]; repeat a "
            "grey image with jnp.stack([grey] * 3, axis=-1)."
        )
    _check_channels(images, layout)
    if 0 in images.shape[-3:]:
        raise WordlightError(
            f"An image of shape {images.shape} has no pixels. A crop or a slice before it usually came out "
            "empty. Give at least one row and one column."
        )
    return images


def _concrete(images: ArrayLike) -> Array:
    try:
        return jnp.asarray(images)
    except (TypeError, ValueError) as error:
        raise WordlightError(
            f"{type(images).__name__} is not an image array ({error}). It is usually a list of images of "
            "unlike sizes, or a picture object. Preprocess images of unlike sizes one by one, and open "
            "pictures with numpy.asarray."
        ) from error


def _check_dtype(images: Array, value_range: ValueRange) -> None:
    if jnp.issubdtype(images.dtype, jnp.floating):
        return
    if not jnp.issubdtype(images.dtype, jnp.integer):
        raise WordlightError(
            f"An image of dtype {images.dtype} is neither floats nor integers. Masks and Fourier images are "
            "not pictures. Convert it to float32 in [0, 1]."
        )
    if value_range != "byte":
        raise WordlightError(
            f"An image of dtype {images.dtype} came with value_range={value_range!r}. Integers hold [0, "
            "255], and nothing can be differentiated through them: under jax.grad a render cast to "
            "integers has no gradient. "
            'Pass floats in [0, 1] (drop the cast), or value_range="byte" if no gradient is wanted.'
        )


def _check_channels(images: Array, layout: Layout) -> None:
    axis, other = (-1, -3) if layout == "HWC" else (-3, -1)
    channels = images.shape[axis]
    if channels == 3:
        return
    likely = {
        1: f"A grey image has one channel: repeat it with jnp.repeat(image, 3, axis={axis}).",
        4: "The fourth channel is usually opacity: compose it, colour * alpha + background * (1 - alpha).",
    }.get(channels, "The axes are usually in another order: give channels last, or say layout='CHW'.")
    if images.shape[other] == 3:
        likely = f"The channels seem to lie at axis {other}: give layout={_OTHER[layout]!r}."
    raise WordlightError(
        f"An image of shape {images.shape} has {channels} channels at axis {axis}, not 3 (layout "
        f"{layout!r}). {likely}"
    )


def check_layout(layout: str) -> None:
    """Refuse what is not a layout.

    Raises:
        WordlightError: it is neither `"HWC"` nor `"CHW"`.
    """
    _check_choice("layout", layout, get_args(Layout))


def _check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise WordlightError(
            f"{name} {value!r} is none of {', '.join(map(repr, choices))}. It is said by the caller and "
            "never guessed from the values. Give one of these."
        )
