"""Resampling kernels as constant weight matrices: one axis of a resize with its crop.

Everything here is NumPy on the host in float64, and cached: a size is worked out once.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from wordlight.clip.image_spec import ImageSpec, Mode

_RADIUS = {"nearest": 0.5, "box": 0.5, "bilinear": 1.0, "bicubic": 2.0, "lanczos": 3.0}


class AxisWeights(NamedTuple):
    """One axis of a resize and crop.

    Attributes:
        start, stop: the part of the input that the output depends on.
        weights: `[output, stop - start]`, float32. Rows sum to one; rows of padding are zero.
        inside: `[output]`, whether a row lies inside the image.
    """

    start: int
    stop: int
    weights: np.ndarray
    inside: np.ndarray


@lru_cache(maxsize=64)
def image_weights(image_size: tuple[int, int], spec: ImageSpec) -> tuple[AxisWeights, AxisWeights]:
    """Return the weights of the rows and of the columns that turn an image of `image_size` into pixels."""
    resized, output = spec.resized_size(image_size), spec.output_size(image_size)
    rows, columns = (_axis(image_size[k], resized[k], output[k], spec) for k in (0, 1))
    return rows, columns


def _axis(length: int, resized: int, output: int, spec: ImageSpec) -> AxisWeights:
    places = np.arange(output) + spec.crop_offset(resized, output)
    inside = (places >= 0) & (places < resized)
    weights = np.zeros((output, length))
    weights[inside] = resize_weights(length, resized, places[inside], spec)
    used = np.flatnonzero(weights.any(axis=0))
    start, stop = int(used[0]), int(used[-1]) + 1
    weights = np.ascontiguousarray(weights[:, start:stop], dtype=np.float32)
    weights.flags.writeable = inside.flags.writeable = False
    return AxisWeights(start, stop, weights, inside)


def resize_weights(length: int, resized: int, places: np.ndarray, spec: ImageSpec) -> np.ndarray:
    """Return float64 `[len(places), length]`: what each input pixel gives to the resized pixels at `places`.

    A resized pixel `i` is centred at `(i + 1/2) length / resized` of the input. PIL (`Resample.c`), PyTorch's
    antialiased kernels and TensorFlow's `scale_and_translate` all sum a kernel around it, `length / resized`
    times as wide when an image shrinks, over the pixels inside the image, with weights that add to one.
    """
    scale = length / resized
    centres = (places + 0.5) * scale
    if spec.interpolation == "nearest":
        return _nearest(length, resized, places, spec.mode)
    if not spec.antialias and spec.interpolation == "bicubic" and spec.mode != "big_vision":
        return _repeated_edges(length, centres)
    return _summed(spec.interpolation, length, centres, max(scale, 1.0) if spec.antialias else 1.0)


def bicubic_weights(length: int, resized: int, *, antialias: bool) -> np.ndarray:
    """Return float64 `[resized, length]` of PyTorch's bicubic resize of an axis."""
    scale = length / resized
    centres = (np.arange(resized) + 0.5) * scale
    if not antialias:
        return _repeated_edges(length, centres)
    return _summed("bicubic", length, centres, max(scale, 1.0))


def _summed(kernel: str, length: int, centres: np.ndarray, width: float) -> np.ndarray:
    """Return a kernel of a width about each centre, over the pixels there are, with rows that add to one."""
    weights = _kernel(kernel, (np.arange(length)[None, :] + 0.5 - centres[:, None]) / width)
    return weights / weights.sum(axis=1, keepdims=True)


def _nearest(length: int, resized: int, places: np.ndarray, mode: Mode) -> np.ndarray:
    # A centre on the edge between two pixels goes where floating point takes it: PyTorch multiplies in
    # float32, PIL adds step after step in float64.
    if mode == "hf-torchvision":
        centres = (np.arange(resized, dtype=np.float32) + np.float32(0.5)) * np.float32(length / resized)
    else:
        steps = np.full(resized, length / resized)
        steps[0] *= 0.5
        centres = np.cumsum(steps)
    sources = np.minimum(centres.astype(int), length - 1)[places]
    return (sources[:, None] == np.arange(length)[None, :]).astype(float)


def _repeated_edges(length: int, centres: np.ndarray) -> np.ndarray:
    """Return PyTorch's bicubic without antialias: a = -0.75, and pixels outside are those of the edge."""
    taps = np.floor(centres - 0.5).astype(int)[:, None] + np.arange(-1, 3)[None, :]
    values = _cubic(taps + 0.5 - centres[:, None], a=-0.75)
    weights = np.zeros((len(centres), length))
    np.add.at(weights, (np.arange(len(centres))[:, None], np.clip(taps, 0, length - 1)), values)
    return weights


def _kernel(name: str, x: np.ndarray) -> np.ndarray:
    if name == "box":
        return ((x > -0.5) & (x <= 0.5)).astype(float)
    if name == "bilinear":
        return np.maximum(1 - np.abs(x), 0)
    if name == "bicubic":
        return _cubic(x, a=-0.5)
    return np.where(np.abs(x) < _RADIUS[name], np.sinc(x) * np.sinc(x / 3), 0)


def _cubic(x: np.ndarray, a: float) -> np.ndarray:
    """Return Keys' cubic convolution kernel (IEEE Trans. ASSP 29, 1981, equation 4)."""
    x = np.abs(x)
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = (((x - 5) * x + 8) * x - 4) * a
    return np.where(x < 1, near, np.where(x < 2, far, 0))
