"""transformers' CLIP image processor, for images that may be traced. Reached through `wordlight.hf`."""

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import PIL.Image
from jax.core import Tracer

from wordlight.clip.image_spec import ImageSpec
from wordlight.clip.preprocess import Layout, preprocess
from wordlight.errors import WordlightError
from wordlight.hf_base import BatchFeature, check_return_tensors, processing_of

# Floats beyond these are no pictures in [0, 1], however far a sharpening filter overshoots, and beyond the
# others not even normalised ones.
_PICTURES, _NORMALISED = (-0.5, 2.0), (-4.0, 4.0)
_LAYOUTS: dict[str, Layout] = {"channels_last": "HWC", "channels_first": "CHW"}


class CLIPImageProcessor:
    """Images of any size and kind to `pixel_values`."""

    def __init__(self, image_spec: ImageSpec):
        self.image_spec = image_spec

    @classmethod
    def from_pretrained(
        cls, pretrained_model_name_or_path: str | Path, **options: Any
    ) -> "CLIPImageProcessor":
        """Load as `CLIPProcessor.from_pretrained` does, with the same options."""
        return cls(processing_of(pretrained_model_name_or_path, **options).image_spec)

    def __call__(
        self,
        images: Any,
        *,
        return_tensors: str | None = None,
        do_resize: bool = True,
        do_center_crop: bool = True,
        do_rescale: bool | None = None,
        do_normalize: bool = True,
        input_data_format: str | None = None,
    ) -> BatchFeature:
        """Preprocess images.

        Args:
            images: an array `[h, w, 3]` or `[3, h, w]`, a batch of them, a PIL image, or a list of any of
                these, of any sizes; arrays may be traced. PIL images of other modes become RGB before the
                resize, without their opacity, as in transformers 4.57.
            return_tensors: `"jax"`, `"np"` (not for traced images), or None for a list of arrays.
            do_resize, do_center_crop, do_normalize: whether to do these steps of the checkpoint's
                preprocessing.
            do_rescale: whether to divide by 255. None divides integers and takes floats as [0, 1]; floats far
                outside are then refused, unless they are traced, which nothing can look into.
            input_data_format: `"channels_last"` or `"channels_first"`; None finds the axis of three channels.

        Returns:
            `pixel_values`, `[images, 3, height, width]`. Concrete integers are rounded to 8 bits within the
            resize, as PIL rounds; floats are not, so that they have a gradient.

        Not differentiable through integers: a traced integer image is refused unless `do_rescale` is given.
            Under
        `jax.grad` without `jax.jit` a render that was cast to integers arrives as a plain array, which
        nothing can tell from a photograph.

        Raises:
            WordlightError: something is not an image, or an option does not fit it.
        """
        check_return_tensors(return_tensors)
        spec = self._steps(do_resize, do_center_crop, do_normalize)
        batches = _joined(_batches(images, input_data_format))
        pixels = [_pixels(batch, spec, layout, do_rescale) for batch, layout in batches]
        return BatchFeature(pixel_values=_images_as(pixels, return_tensors))

    preprocess = __call__

    def _steps(self, do_resize: bool, do_center_crop: bool, do_normalize: bool) -> ImageSpec:
        spec = self.image_spec
        if not do_resize:
            spec = replace(spec, resize="none")
        if not do_center_crop:
            spec = replace(spec, crop=False)
        return spec if do_normalize else replace(spec, mean=(0.0, 0.0, 0.0), std=(1.0, 1.0, 1.0))


def _pixels(batch: Any, spec: ImageSpec, layout: Layout, do_rescale: bool | None) -> jax.Array:
    integers = not jnp.issubdtype(batch.dtype, jnp.floating)
    traced = isinstance(batch, Tracer)
    if integers and traced and do_rescale is None:
        raise WordlightError(
            f"A traced image has dtype {batch.dtype}. Under jax.grad nothing can be differentiated through "
            "integers, so a cast to uint8 before the processor loses the gradient. Pass floats in [0, 1] "
            "(drop the cast), or say do_rescale=True if no gradient is wanted."
        )
    if do_rescale is None and not integers and not traced and batch.size:
        _check_floats(batch, normalised=spec.std == (1.0, 1.0, 1.0))
    rescale = integers if do_rescale is None else do_rescale
    if rescale and integers and not traced:
        spec = replace(spec, rounding="pil")
    batch = batch if rescale or not integers else batch.astype(np.float32)
    return preprocess(batch, spec, value_range="byte" if rescale else "unit", layout=layout)


def _check_floats(batch: Any, *, normalised: bool) -> None:
    """Refuse what cannot be in [0, 1]; where no normalisation follows, it may have been normalised before."""
    numbers = np if isinstance(batch, np.ndarray) else jnp
    with jax.ensure_compile_time_eval():  # inside jax.jit, a plain array's extremes would be traced
        lowest, highest = float(numbers.min(batch)), float(numbers.max(batch))
    least, most = _NORMALISED if normalised else _PICTURES
    if lowest < least or highest > most:
        raise WordlightError(
            f"A float image holds values from {lowest:.4g} to {highest:.4g}, which are not in [0, 1]. Images "
            "in [0, 255] that were made floats look like this, and so do images in [-1, 1]. Give "
            "do_rescale=True for [0, 255], (image + 1) / 2 for [-1, 1], or do_rescale=False if the values "
            "are meant as they are."
        )


def _batches(images: Any, input_data_format: str | None) -> list[tuple[Any, Layout]]:
    """Return rank-4 arrays with their layouts, from one image, a batch, or any nesting of lists of them."""
    if isinstance(images, list | tuple):
        found = [batch for image in images for batch in _batches(image, input_data_format)]
        if not found:
            raise WordlightError(
                "There is no image: the list is empty. A folder may have held none, or a filter dropped "
                "them all. Give at least one image."
            )
        return found
    if isinstance(images, PIL.Image.Image):
        return [(np.asarray(images.convert("RGB"))[None], "HWC")]
    array = images if isinstance(images, jax.Array | np.ndarray) else _as_array(images)
    if array.ndim not in (3, 4):
        raise WordlightError(
            f"An image array of shape {array.shape} has rank {array.ndim}, not 3 (one image) or 4 (a "
            "batch). It is usually a flat list of rendered rays, or a grey image. Reshape it to [height, "
            "width, 3]."
        )
    return [(array if array.ndim == 4 else array[None], _layout(array.shape, input_data_format))]


def _as_array(image: Any) -> np.ndarray:
    if hasattr(image, "__array__"):
        return np.asarray(image)
    raise WordlightError(
        f"{type(image).__name__} {str(image)[:60]!r} is not an image. Paths, addresses and bare numbers are "
        "not opened here. Open a file with PIL.Image.open, or pass arrays."
    )


def _layout(shape: tuple[int, ...], input_data_format: str | None) -> Layout:
    if input_data_format is not None:
        if input_data_format not in _LAYOUTS:
            raise WordlightError(
                f"input_data_format={input_data_format!r} is unknown. It is probably misspelt. Give "
                "'channels_last' or 'channels_first'."
            )
        return _LAYOUTS[input_data_format]
    first, last = shape[-3] == 3, shape[-1] == 3
    if first and last:
        warnings.warn(
            f"An image of shape {shape} could have its channels first or last; first is taken, as "
            "transformers does. Say input_data_format to choose.",
            stacklevel=2,
        )
    return "CHW" if first else "HWC"


def _joined(batches: list[tuple[Any, Layout]]) -> list[tuple[Any, Layout]]:
    """Make one batch of them where they are alike, so that they are preprocessed at once."""
    kinds = {(batch.shape[1:], batch.dtype, layout, isinstance(batch, Tracer)) for batch, layout in batches}
    return [(_concatenate([batch for batch, _ in batches]), batches[0][1])] if len(kinds) == 1 else batches


def _concatenate(batches: list[Any]) -> Any:
    if len(batches) == 1:
        return batches[0]
    return (np if all(isinstance(b, np.ndarray) for b in batches) else jnp).concatenate(batches)


def _images_as(pixels: list[jax.Array], return_tensors: str | None) -> Any:
    channels_first = [jnp.moveaxis(batch, -1, -3) for batch in pixels]
    traced = any(isinstance(batch, Tracer) for batch in pixels)
    if return_tensors == "np" and traced:
        raise WordlightError(
            "return_tensors='np' was asked for traced images. NumPy arrays cannot hold values that jax.jit "
            "or jax.grad is still tracing. Give return_tensors='jax'."
        )
    if return_tensors is None:
        return [image if traced else np.asarray(image) for batch in channels_first for image in batch]
    if len({batch.shape[1:] for batch in channels_first}) > 1:
        raise WordlightError(
            f"Images came out at the sizes {sorted({batch.shape[2:] for batch in channels_first})} and "
            "cannot be one array. do_center_crop or do_resize is off. Turn it on, or give "
            "return_tensors=None for a list."
        )
    joined = _concatenate(channels_first)
    return joined if return_tensors == "jax" else np.asarray(joined)
