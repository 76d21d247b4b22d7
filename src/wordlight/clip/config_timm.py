"""The image towers that OpenCLIP takes from timm by name: SigLIP and SigLIP 2.

timm's name for such a tower holds its sizes, `vit_base_patch16_siglip_256`; the rest follows from its source.
"""

import re
from dataclasses import dataclass

from wordlight.clip.config import TransformerConfig, VitConfig, siglip_vision
from wordlight.clip.config_values import MOST_PIXELS, Json, check_patch, config_error, positive

NAME = re.compile(r"vit_(base|large|so400m|giantopt)_patch(\d{1,4})_siglip_(\d{1,5})")
# What decides for the tanh form of GELU in timm: (size, patch, side), side 0 for all.
TANH = (("base", 32, 0), ("large", 16, 512), ("so400m", 16, 0), ("giantopt", 16, 0))


@dataclass(frozen=True)
class Size:
    """The sizes behind a timm name."""

    width: int
    layers: int
    heads: int
    mlp_ratio: float = 4.0


def timm_vision(config: Json, embed_dim: int) -> VitConfig:
    """Return the image tower of a `vision_cfg` with a `timm_model_name`.

    Raises:
        WordlightError: another timm model, or a pooling or projection that its SigLIP towers do not have.
    """
    name = config["timm_model_name"]
    match = NAME.fullmatch(name) if isinstance(name, str) else None
    if match is None:
        raise config_error("vision_cfg.timm_model_name", name, "of timm's towers only SigLIP's are done")
    for key, wanted in (("timm_pool", "map"), ("timm_proj", "none")):
        if config.get(key) != wanted:
            raise config_error(f"vision_cfg.{key}", config.get(key), f"a SigLIP tower has {wanted!r}")
    size = _size(match[1])
    if size.width != embed_dim:
        raise config_error("embed_dim", embed_dim, f"{name} gives {size.width} features")
    layers = positive(config, "timm_layers", default=size.layers)
    return _tower(match, size, layers)


def _tower(match: re.Match[str], size: Size, layers: int) -> VitConfig:
    kind, patch, side = (
        match[1],
        int(match[2]),
        positive({"image_size": int(match[3])}, "image_size", most=MOST_PIXELS),
    )
    transformer = TransformerConfig(
        size.width,
        size.layers,
        size.heads,
        int(size.width * size.mlp_ratio),
        "gelu_tanh" if _is_tanh(kind, patch, side) else "gelu",
        1e-6,
    )
    return siglip_vision((side, side), check_patch(patch, (side, side)), transformer)


def _size(kind: str) -> Size:
    if kind == "base":
        return Size(768, 12, 12)
    if kind == "large":
        return Size(1024, 24, 16)
    if kind == "so400m":
        return Size(1152, 27, 16, 3.7362)
    return Size(1536, 40, 16)


def _is_tanh(kind: str, patch: int, side: int) -> bool:
    return any(kind == k and patch == p and s in (0, side) for k, p, s in TANH)
