"""`ImageSpec`: how a checkpoint wants its images, read from the checkpoint's own files.

Sizes are (height, width). The order is: resize, centre crop or padding, mean and deviation.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from wordlight.errors import WordlightError

Mode = Literal["hf-pil", "hf-torchvision", "open_clip", "openai", "big_vision"]
Resize = Literal["shortest", "longest", "squash", "none"]
Interpolation = Literal["nearest", "bilinear", "bicubic", "lanczos", "box"]
Rounding = Literal["none", "pil"]
Family = Literal["clip", "siglip"]
Size = tuple[int, int]
Colour = tuple[float, float, float]

OPENAI_MEAN: Colour = (0.48145466, 0.4578275, 0.40821073)
OPENAI_STD: Colour = (0.26862954, 0.26130258, 0.27577711)
_SIGLIP_MEAN: Colour = (0.5, 0.5, 0.5)

_PIL_FILTERS: tuple[str, ...] = ("nearest", "lanczos", "bilinear", "bicubic", "box", "hamming")
_HF_STEPS = {"do_resize", "do_center_crop", "do_rescale", "do_normalize", "do_convert_rgb"}


@dataclass(frozen=True)
class ImageSpec:
    """How images are resized, cropped and normalised before an image tower.

    Attributes:
        size: output (height, width). Without `crop`, a resize that keeps the proportions gives other sizes.
        resize: `"shortest"` edge to `resize_to`, `"longest"` edge (then padded), `"squash"` to it, or
            `"none"`.
        resize_to: what the resize aims at; None is `size`.
        crop: cut `size` out of the middle, or pad to it, after the resize.
        interpolation: the kernel.
        antialias: widen the kernel when an image shrinks. Without it, bicubic is PyTorch's (a = -0.75, edges
            repeated), or TensorFlow's in mode `"big_vision"` (a = -0.5, weights renormalised).
        mean, std: per channel, for values in [0, 1].
        fill: what padding holds, in [0, 1], before normalisation.
        mode: whose rules round the resized size and place the crop:
            `"hf-pil"` and `"hf-torchvision"` (transformers) cut lengths down and offsets down, and differ in
            the odd pixel of a padding; `"open_clip"` and `"openai"` (torchvision) round offsets half to even,
            and open_clip rounds lengths for the longest edge and for outputs that are not square;
            `"big_vision"` rounds lengths, cuts offsets down and never pads.
        rounding: `"pil"` rounds and clips to 8 bits before, between and after the two passes as PIL does, and
            lets the gradient straight through; `"none"` does not.

    Raises:
        WordlightError: the values do not describe a preprocessing.
    """

    size: Size
    resize: Resize = "shortest"
    resize_to: Size | None = None
    crop: bool = True
    interpolation: Interpolation = "bicubic"
    antialias: bool = True
    mean: Colour = OPENAI_MEAN
    std: Colour = OPENAI_STD
    fill: float = 0.0
    mode: Mode = "hf-pil"
    rounding: Rounding = "none"

    def __post_init__(self) -> None:
        _check_choices(self)
        for name, size in (("size", self.size), ("resize_to", self.resize_to or self.size)):
            if not _is_size(size):
                raise _bad(f"{name} {size!r} is not a (height, width) of positive integers")
        if not (_is_colour(self.mean) and _is_colour(self.std) and min(self.std) > 0):
            raise _bad(
                f"mean {self.mean!r} and std {self.std!r} are not three finite numbers each, std positive"
            )
        if self.mode in ("hf-pil", "openai") and not self.antialias:
            raise _bad(f"antialias=False with mode {self.mode!r}: PIL always widens its kernel")
        if self.resize == "shortest" and self.mode != "open_clip" and self.target[0] != self.target[1]:
            raise _bad(
                f"resize_to {self.target} with the shortest edge in mode {self.mode!r}, which names one edge"
            )

    @property
    def height(self) -> int:
        """Rows of the output."""
        return self.size[0]

    @property
    def width(self) -> int:
        """Columns of the output."""
        return self.size[1]

    @property
    def target(self) -> Size:
        """What the resize aims at."""
        return self.size if self.resize_to is None else self.resize_to

    def resized_size(self, image_size: Size) -> Size:
        """Return the size an image of `image_size` is resized to, before the crop."""
        if self.resize == "none":
            return image_size
        if self.resize == "squash":
            return self.target
        keep = {"shortest": _shortest, "longest": _longest}[self.resize]
        height, width = keep(image_size, self.target, self.mode)
        return max(height, 1), max(width, 1)

    def output_size(self, image_size: Size) -> Size:
        """Return the size of the pixels made from an image of `image_size`."""
        return self.size if self.crop else self.resized_size(image_size)

    def crop_offset(self, resized: int, output: int) -> int:
        """Return where the output begins on a resized axis; negative for so many pixels of padding before it.

        Raises:
            WordlightError: the axis is too short and mode `"big_vision"` does not pad.
        """
        spare = resized - output
        if spare >= 0:
            return round(spare / 2) if self.mode in ("open_clip", "openai") else spare // 2
        if self.mode == "big_vision":
            raise _bad(
                f"an axis of {resized} pixels cannot be cropped to {output}: mode 'big_vision' never pads"
            )
        return spare // 2 if self.mode == "hf-pil" else -(-spare // 2)

    @classmethod
    def from_hf(
        cls,
        config: Mapping[str, Any],
        image_size: int | Size | None = None,
        *,
        family: Family = "clip",
        mode: Mode | None = None,
    ) -> "ImageSpec":
        """Read a `preprocessor_config.json`, or the `processor_config.json` that transformers 5 writes.

        Entries that are missing have the defaults of the class that the file names, and sizes those of the
        image tower. A step (`do_...`) that is null is left out. `image_mean`, `image_std` and sizes that are
        null count as missing; `resample` and `rescale_factor` are then refused, as in transformers.

        Args:
            config: the file's content; empty where a folder has no such file.
            image_size: what the image tower takes, to be checked against the file.
            family: whose class it is where the file names none: SigLIP squashes, and its mean and deviation
                are 0.5.
            mode: overrides the mode that the file implies: `"hf-torchvision"` for classes with a name that
                ends in Fast and for settings inside a `processor_config.json`, else `"hf-pil"`. transformers
                4 (with PIL) and 5 (with torchvision) write the same `preprocessor_config.json`, so one that
                5 wrote is read as `"hf-pil"` too; the place of an odd padding and `"nearest"` may differ.

        Raises:
            WordlightError: a value is of the wrong kind, the sizes disagree, or a step is unknown.
        """
        flat, nested = _image_processor(config)
        kind = str(flat.get("image_processor_type") or flat.get("feature_extractor_type") or family)
        fast = kind.endswith("Fast") or nested
        siglip = kind.lower().startswith("siglip")
        _refuse_other_steps(flat)
        steps = {name: _flag(flat, name, not (siglip and name == "do_center_crop")) for name in _HF_STEPS}
        tower = _pair(image_size, "image_size")
        resize, target = _hf_resize(flat, steps["do_resize"], siglip, tower or (224, 224))
        cropped = _pair(flat.get("crop_size"), "crop_size") or tower or (224, 224)
        mean, std = _hf_statistics(flat, steps, siglip)
        spec = cls(
            size=_agreed(cropped if steps["do_center_crop"] else target, tower),
            resize=resize,
            resize_to=target,
            crop=steps["do_center_crop"],
            interpolation=_interpolation(
                flat.get("resample", "bicubic") if steps["do_resize"] else "bicubic"
            ),
            mean=mean,
            std=std,
            mode=mode or ("hf-torchvision" if fast else "hf-pil"),
        )
        if not spec.crop and spec.resize != "squash":
            raise _bad(f"do_center_crop is false and size {flat.get('size')!r} keeps the proportions")
        return spec

    @classmethod
    def from_open_clip(cls, config: Mapping[str, Any], image_size: int | Size | None = None) -> "ImageSpec":
        """Read an `open_clip_config.json`, or its `preprocess_cfg` alone with `image_size` or its own `size`.

        The image tower's own size wins over the one in `preprocess_cfg`, as in open_clip.

        Raises:
            WordlightError: a value is of the wrong kind, or no size is named.
        """
        flat = config.get("preprocess_cfg", {}) if "model_cfg" in config else config
        tower = (
            config.get("model_cfg", {}).get("vision_cfg", {}).get("image_size")
            if "model_cfg" in config
            else None
        )
        named = next((s for s in (image_size, tower, flat.get("size")) if s is not None), None)
        size = _pair(named, "size")
        if size is None:
            raise _bad("the open_clip configuration names no image size")
        if flat.get("mode", "RGB") != "RGB":
            raise _bad(f"open_clip image mode {flat['mode']!r} is not 'RGB'")
        resize = flat.get("resize_mode") or "shortest"
        interpolation = flat.get("interpolation") or "bicubic"
        # open_clip resizes to an output that is not square with its default kernel, whatever the file says.
        bicubic = interpolation == "random" or (resize == "shortest" and size[0] != size[1])
        return cls(
            size=size,
            resize=resize,
            crop=resize != "squash",
            interpolation="bicubic" if bicubic else _interpolation(interpolation),
            mean=_colour(flat.get("mean") or OPENAI_MEAN, "mean"),
            std=_colour(flat.get("std") or OPENAI_STD, "std"),
            fill=_number(flat.get("fill_color", 0), "fill_color") / 255,
            mode="open_clip",
        )


def _shortest(image_size: Size, target: Size, mode: Mode) -> Size:
    """Keep the proportions so that the image covers the target."""
    height, width = image_size
    if mode == "open_clip" and target[0] != target[1]:
        ratio = min(height / target[0], width / target[1])
        return round(height / ratio), round(width / ratio)
    short, long = sorted(image_size)
    if mode == "big_vision":
        factor = target[0] / short
        return round(height * factor), round(width * factor)
    new_long = int(target[0] * long / short)
    return (new_long, target[0]) if width <= height else (target[0], new_long)


def _longest(image_size: Size, target: Size, mode: Mode) -> Size:
    """Keep the proportions so that the image fits into the target."""
    height, width = image_size
    if mode in ("hf-pil", "hf-torchvision"):
        scale = min(target[0] / height, target[1] / width)
        return int(height * scale), int(width * scale)
    ratio = max(height / target[0], width / target[1])
    return round(height / ratio), round(width / ratio)


def _image_processor(config: Mapping[str, Any]) -> tuple[Mapping[str, Any], bool]:
    """Return the settings, and whether they are part of a `processor_config.json`."""
    nested = config.get("image_processor")
    if nested is not None and not isinstance(nested, Mapping):
        raise _bad(f"image_processor {nested!r} is not an object")
    return (config, False) if nested is None else (nested, True)


def _hf_resize(
    config: Mapping[str, Any], do_resize: bool, siglip: bool, default: Size
) -> tuple[Resize, Size]:
    """Return the rule and the target of transformers' `size`, which has been written in many ways."""
    size = config.get("size")
    if not do_resize:
        return "none", default
    if size is None:
        return ("squash", default) if siglip else ("shortest", (min(default), min(default)))
    if not isinstance(size, Mapping):
        edges = _pair(size, "size") or default
        return ("shortest" if isinstance(size, int) else "squash"), edges
    named = {name: value for name, value in size.items() if value is not None}
    keys = set(named)
    if keys == {"shortest_edge"}:
        return "shortest", _require_size((named["shortest_edge"],) * 2)
    if keys == {"height", "width"}:
        return "squash", _require_size((named["height"], named["width"]))
    if keys == {"max_height", "max_width"}:
        return "longest", _require_size((named["max_height"], named["max_width"]))
    raise _bad(
        f"size {dict(size)!r} is neither shortest_edge, nor height and width, nor max_height and max_width"
    )


def _hf_statistics(
    config: Mapping[str, Any], steps: Mapping[str, bool], siglip: bool
) -> tuple[Colour, Colour]:
    """Return mean and deviation for [0, 1], with the file's own rescaling folded in."""
    factor = _number(config.get("rescale_factor", 1 / 255), "rescale_factor") if steps["do_rescale"] else 1.0
    if factor <= 0:
        raise _bad(f"rescale_factor {factor!r} is not positive")
    default = (_SIGLIP_MEAN, _SIGLIP_MEAN) if siglip else (OPENAI_MEAN, OPENAI_STD)
    mean, std = (
        _colour(default[k] if config.get(name) is None else config[name], name)
        for k, name in enumerate(("image_mean", "image_std"))
    )
    if not steps["do_normalize"]:
        mean, std = (0.0, 0.0, 0.0), (1.0, 1.0, 1.0)
    scale = 255 * factor
    if math.isclose(
        scale, 1.0, rel_tol=1e-6
    ):  # 0.00392156862745098 and its shorter spellings are all 1 / 255
        return mean, std
    return _scaled(mean, scale), _scaled(std, scale)


def _scaled(colour: Colour, scale: float) -> Colour:
    red, green, blue = colour
    return red / scale, green / scale, blue / scale


def _refuse_other_steps(config: Mapping[str, Any]) -> None:
    """A step that would change the pixels and is not known here must not be skipped silently."""
    unknown = sorted(k for k, v in config.items() if k.startswith("do_") and v is True and k not in _HF_STEPS)
    unknown += [k for k in ("max_num_patches", "use_square_size") if config.get(k) not in (None, False)]
    if unknown:
        raise _bad(f"the image processor also asks for {', '.join(unknown)}, which is not supported")


def _agreed(size: Size, tower: Size | None) -> Size:
    if tower is not None and size != tower:
        raise _bad(f"the preprocessing gives {size} pixels and the image tower takes {tower}")
    return size


def _pair(value: Any, name: str) -> Size | None:
    """Return (height, width) from an integer, a pair or transformers' mapping; None for None."""
    if value is None:
        return None
    if isinstance(value, Mapping):
        keys = ("shortest_edge",) * 2 if "shortest_edge" in value else ("height", "width")
        value = tuple(value.get(key) for key in keys)
    elif isinstance(value, int) and not isinstance(value, bool):
        value = (value, value)
    elif isinstance(value, list | tuple) and len(value) == 1:
        value = (value[0], value[0])
    if not isinstance(value, list | tuple):
        raise _bad(f"{name} {value!r} is not a positive size")
    return _require_size(tuple(value))


def _require_size(value: tuple[Any, ...]) -> Size:
    if not _is_size(value):
        raise _bad(f"size {value!r} is not a (height, width) of positive integers")
    return value[0], value[1]


def _interpolation(value: Any) -> Interpolation:
    """Return the kernel from PIL's number (as HF writes it) or a name."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < len(_PIL_FILTERS):
        value = _PIL_FILTERS[value]
    name = str(value).lower()
    if name not in get_args(Interpolation):
        raise _bad(f"resample {value!r} is none of {', '.join(get_args(Interpolation))}")
    return name  # type: ignore[return-value]


def _flag(config: Mapping[str, Any], name: str, default: bool) -> bool:
    value = config.get(name, default)
    if value is not None and not isinstance(value, bool):
        raise _bad(f"{name} {value!r} is not true or false")
    return bool(value)


def _number(value: Any, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise _bad(f"{name} {value!r} is not a finite number")
    return float(value)


def _colour(value: Any, name: str) -> Colour:
    values = tuple(value) if isinstance(value, list | tuple) else (value,) * 3
    if len(values) != 3:
        raise _bad(f"{name} {value!r} has {len(values)} numbers, not 3")
    red, green, blue = (_number(v, name) for v in values)
    return red, green, blue


def _is_size(value: Any) -> bool:
    whole = isinstance(value, tuple) and all(isinstance(v, int) and not isinstance(v, bool) for v in value)
    return whole and len(value) == 2 and min(value) > 0


def _is_colour(value: Any) -> bool:
    whole = isinstance(value, tuple) and all(isinstance(v, int | float) for v in value)
    return whole and len(value) == 3 and all(math.isfinite(v) for v in value)


def _check_choices(spec: ImageSpec) -> None:
    kinds = {"resize": Resize, "interpolation": Interpolation, "mode": Mode, "rounding": Rounding}
    for name, kind in kinds.items():
        value = getattr(spec, name)
        if value not in get_args(kind):
            raise _bad(f"{name} {value!r} is none of {', '.join(map(repr, get_args(kind)))}")


def _bad(what: str) -> WordlightError:
    return WordlightError(
        f"Not an image preprocessing: {what}. The checkpoint's preprocessor_config.json or "
        "open_clip_config.json is usually damaged, written for another model, or uses a step this program "
        "lacks. Correct that file, or give the model an ImageSpec of your own: dataclasses.replace(model, "
        "image_spec=ImageSpec(...))."
    )
