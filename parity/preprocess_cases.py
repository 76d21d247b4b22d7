"""Preprocessing beside torchvision's antialiased path, transformers' processors and open_clip's transforms.

Each case is one image and one spec; `cases` gives what the reference programs make of it, for the golden
files, and `check_live` compares.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import PIL.Image
import torch
from open_clip.transform import image_transform
from torchvision.transforms import InterpolationMode
from torchvision.transforms.v2 import functional as tv
from transformers.models.clip.image_processing_clip import CLIPImageProcessor
from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil

from wordlight.clip.image_spec import ImageSpec
from wordlight.clip.preprocess import preprocess

GOLDEN = Path(__file__).parents[1] / "tests" / "golden" / "preprocess.npz"
GOLDEN_SIZES = ("-60x33", "-9x11")
SIDE = 24
SIZES = ((30, 40), (60, 33), (9, 11), (24, 24), (101, 27))
FLOAT_LIMIT = 1e-4  # of a normalised pixel
LEVEL_LIMIT = 1.01  # 8-bit levels


class Case(NamedTuple):
    """An image, the spec to prepare it by, and what the reference program gives, `[height, width, 3]`."""

    name: str
    image: np.ndarray
    spec: ImageSpec
    reference: np.ndarray


def picture(size: tuple[int, int], seed: int = 0) -> np.ndarray:
    """Return noise over a slope as bytes: every frequency, and a mean that shows a shifted crop."""
    rng = np.random.default_rng([seed, *size])
    slope = np.linspace(0, 1, size[0])[:, None, None] * np.linspace(0, 1, size[1])[None, :, None]
    return (255 * (0.5 * rng.random((*size, 3)) + 0.5 * slope)).astype(np.uint8)


def float_cases() -> Iterator[Case]:
    """Float images through torchvision's antialiased resize, centre crop and normalisation."""
    modes = {
        "bicubic": InterpolationMode.BICUBIC,
        "bilinear": InterpolationMode.BILINEAR,
        "lanczos": InterpolationMode.LANCZOS,
    }
    for size in SIZES:
        for kernel, mode in modes.items():
            for antialias in (True,) if kernel == "lanczos" else (True, False):
                spec = ImageSpec((SIDE, SIDE), mode="open_clip", interpolation=kernel, antialias=antialias)  # type: ignore[arg-type]
                image = picture(size).astype(np.float32) / 255
                reference = torchvision_pixels(image, spec, mode)
                yield Case(
                    f"torchvision-{kernel}-{'aa' if antialias else 'no-aa'}-{_text(size)}",
                    image,
                    spec,
                    reference,
                )


def torchvision_pixels(image: np.ndarray, spec: ImageSpec, mode: InterpolationMode) -> np.ndarray:
    """Return torchvision's pixels of a float image."""
    tensor = torch.tensor(image).permute(2, 0, 1)
    resized = tv.resize(tensor, [spec.height], interpolation=mode, antialias=spec.antialias)
    cropped = tv.center_crop(resized, list(spec.size))
    return tv.normalize(cropped, list(spec.mean), list(spec.std)).permute(1, 2, 0).numpy()


def processor_cases() -> Iterator[Case]:
    """8-bit images through transformers' two CLIP processors, PIL's and torchvision's."""
    for name, kind in (("hf-pil", CLIPImageProcessorPil), ("hf-torchvision", CLIPImageProcessor)):
        for label, options in _processor_options().items():
            processor = kind(**options)
            config = processor.to_dict()
            spec = replace(ImageSpec.from_hf(config, mode=name), rounding="pil")  # type: ignore[arg-type]
            for size in SIZES:
                image = picture(size)
                pixels = processor(PIL.Image.fromarray(image), return_tensors="pt")["pixel_values"][0]
                yield Case(f"{name}-{label}-{_text(size)}", image, spec, pixels.permute(1, 2, 0).numpy())


def _processor_options() -> dict[str, dict[str, Any]]:
    crop = {"crop_size": {"height": SIDE, "width": SIDE}}
    return {
        "clip": crop | {"size": {"shortest_edge": SIDE}},
        "larger": crop | {"size": {"shortest_edge": SIDE + 5}},
        "padded": crop | {"size": {"shortest_edge": SIDE - 5}},
        "squash": crop | {"size": {"height": SIDE, "width": SIDE}},
        "bilinear": crop | {"size": {"shortest_edge": SIDE}, "resample": 2},
    }


def open_clip_cases() -> Iterator[Case]:
    """8-bit images through open_clip's evaluation transforms."""
    for mode in ("shortest", "longest", "squash"):
        for output in ((SIDE, SIDE), (SIDE, 17)):
            transform: Callable[[Any], torch.Tensor] = image_transform(
                output, is_train=False, resize_mode=mode, interpolation="bilinear", fill_color=50
            )
            config = {"resize_mode": mode, "interpolation": "bilinear", "fill_color": 50}
            spec = replace(ImageSpec.from_open_clip(config, output), rounding="pil")
            for size in SIZES:
                image = picture(size)
                pixels = transform(PIL.Image.fromarray(image)).permute(1, 2, 0).numpy()
                yield Case(f"open_clip-{mode}-{_text(output)}-{_text(size)}", image, spec, pixels)


def all_cases() -> list[Case]:
    """Return every case."""
    return [*float_cases(), *processor_cases(), *open_clip_cases()]


def cases() -> dict[str, np.ndarray]:
    """Return image, spec (as JSON) and reference pixels of the cases that become the golden file."""
    kinds = (
        "torchvision-bicubic-antialias",
        "hf-pil-clip",
        "hf-torchvision-padded",
        "open_clip-longest-24x24",
    )
    kept = [c for c in all_cases() if c.name.startswith(kinds) and c.name.endswith(GOLDEN_SIZES)]
    arrays: dict[str, np.ndarray] = {}
    for case in kept:
        arrays[f"{case.name}/image"] = case.image
        arrays[f"{case.name}/spec"] = np.asarray(json.dumps(asdict(case.spec)))
        arrays[f"{case.name}/pixels"] = case.reference.astype(np.float32)
    return arrays


def write_golden() -> None:
    """Write the golden file that `tests/test_preprocess.py` reads."""
    np.savez_compressed(GOLDEN, **cases())  # type: ignore[arg-type]


def error(case: Case) -> float:
    """Return how far we are from the reference: normalised units for floats, 8-bit levels for bytes."""
    whole = case.image.dtype == np.uint8
    pixels = np.asarray(preprocess(case.image, case.spec, value_range="byte" if whole else "unit"))
    scale = 255 * np.asarray(case.spec.std) if whole else 1.0
    return float((np.abs(pixels - case.reference) * scale).max())


def check_live() -> dict[str, tuple[float, float]]:
    """Return (error, limit) of every case."""
    limits = {np.dtype(np.uint8): LEVEL_LIMIT, np.dtype(np.float32): FLOAT_LIMIT}
    return {case.name: (error(case), limits[case.image.dtype]) for case in all_cases()}


def _text(size: tuple[int, int]) -> str:
    return f"{size[0]}x{size[1]}"


if __name__ == "__main__":
    write_golden()
    results = check_live()
    for name, (value, limit) in results.items():
        print("ok  " if value <= limit else "FAIL", name, value)
    raise SystemExit(any(value > limit for value, limit in results.values()))
