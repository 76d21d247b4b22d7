"""Where each weight lies in a checkpoint: the tensor names of the Hugging Face and the OpenCLIP layouts.

A layout is a tree of `Source` with the structure of `ClipModel.params`, so that reading and writing are one
`tree.map`.
"""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from wordlight.clip.config import ClipConfig, ResNetConfig, TextConfig, VitConfig
from wordlight.clip.layers import Params

Kind = Literal["same", "linear", "patch", "conv"]


@dataclass(frozen=True)
class Source:
    """Names of the tensors that make up one weight, and how theirs relates to ours.

    Attributes:
        names: tensors, joined along their first axis where there are several (query, key, value).
        kind: `"linear"` is [out, in] there and [in, out] here; `"conv"` is [out, in, rows, columns] there and
            [rows, columns, in, out] here; `"patch"` is such a convolution flattened to a matrix; `"same"` is
            as it is.
    """

    names: tuple[str, ...]
    kind: Kind = "same"

    def to_ours(self, tensors: list[np.ndarray], shape: tuple[int, ...]) -> np.ndarray:
        """Convert the named tensors to our weight of the given shape."""
        joined = tensors[0] if len(tensors) == 1 else np.concatenate(tensors)
        if self.kind == "linear":
            return joined.T
        if self.kind in ("conv", "patch"):
            return joined.transpose(2, 3, 1, 0).reshape(shape)
        return joined

    def theirs_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape each named tensor must have for our weight of the given shape."""
        count = len(self.names)
        if self.kind == "linear":
            return (shape[1] // count, shape[0])
        if self.kind == "conv":
            return (shape[3], shape[2], shape[0], shape[1])
        if self.kind == "patch":
            side = round((shape[0] / 3) ** 0.5)
            return (shape[1], 3, side, side)
        return (shape[0] // count, *shape[1:]) if count > 1 else shape

    def to_theirs(self, weight: np.ndarray) -> dict[str, np.ndarray]:
        """Convert our weight to the named tensors."""
        if self.kind == "linear":
            weight = weight.T
        elif self.kind == "conv":
            weight = weight.transpose(3, 2, 0, 1)
        elif self.kind == "patch":
            d, channels, side, _ = self.theirs_shape(weight.shape)
            weight = weight.reshape(side, side, channels, d).transpose(3, 2, 0, 1)
        return dict(
            zip(
                self.names,
                np.split(weight, len(self.names)) if len(self.names) > 1 else [weight],
                strict=True,
            )
        )


def _linear(*prefixes: str, bias: bool = True) -> Params:
    layer: Params = {"weight": Source(tuple(f"{p}.weight" for p in prefixes), "linear")}
    return layer | ({"bias": Source(tuple(f"{p}.bias" for p in prefixes))} if bias else {})


def _norm(prefix: str) -> Params:
    return {"scale": Source((f"{prefix}.weight",)), "bias": Source((f"{prefix}.bias",))}


def _one(name: str, kind: Kind = "same") -> Source:
    return Source((name,), kind)


def hf_layout(config: ClipConfig) -> Params:
    """Return the names that `transformers` gives a CLIP model with a vision transformer."""
    assert isinstance(config.vision, VitConfig)
    layout: Params = {
        "vision": _hf_vision(config.vision),
        "logit_scale": _one("logit_scale"),
    }
    return layout | ({"text": _hf_text(config.text)} if config.text else {})


def _hf_blocks(prefix: str, layers: int) -> list[Params]:
    return [_hf_block(f"{prefix}.encoder.layers.{i}") for i in range(layers)]


def _hf_block(prefix: str) -> Params:
    attention = f"{prefix}.self_attn"
    return {
        "norm1": _norm(f"{prefix}.layer_norm1"),
        "attention": {
            "qkv": _linear(*(f"{attention}.{name}_proj" for name in "qkv")),
            "out": _linear(f"{attention}.out_proj"),
        },
        "norm2": _norm(f"{prefix}.layer_norm2"),
        "mlp": {"up": _linear(f"{prefix}.mlp.fc1"), "down": _linear(f"{prefix}.mlp.fc2")},
    }


def _hf_vision(config: VitConfig) -> Params:
    base = "vision_model.embeddings"
    return {
        "patch": {"weight": _one(f"{base}.patch_embedding.weight", "patch")},
        "class_token": _one(f"{base}.class_embedding"),
        "positions": _one(f"{base}.position_embedding.weight"),
        "norm_pre": _norm("vision_model.pre_layrnorm"),
        "blocks": _hf_blocks("vision_model", config.transformer.layers),
        "norm_post": _norm("vision_model.post_layernorm"),
        "projection": _one("visual_projection.weight", "linear"),
    }


def _hf_text(config: TextConfig) -> Params:
    return {
        "tokens": _one("text_model.embeddings.token_embedding.weight"),
        "positions": _one("text_model.embeddings.position_embedding.weight"),
        "blocks": _hf_blocks("text_model", config.transformer.layers),
        "norm": _norm("text_model.final_layer_norm"),
        "projection": _one("text_projection.weight", "linear"),
    }


def open_clip_layout(config: ClipConfig) -> Params:
    """Return the names that OpenCLIP (and OpenAI) give a CLIP model."""
    vision = config.vision
    layout: Params = {
        "vision": _open_resnet(vision) if isinstance(vision, ResNetConfig) else _open_vit(vision),
        "logit_scale": _one("logit_scale"),
    }
    return layout | ({"text": _open_text(config.text)} if config.text else {})


def _open_block(prefix: str) -> Params:
    qkv = {
        "weight": _one(f"{prefix}.attn.in_proj_weight", "linear"),
        "bias": _one(f"{prefix}.attn.in_proj_bias"),
    }
    return {
        "norm1": _norm(f"{prefix}.ln_1"),
        "attention": {"qkv": qkv, "out": _linear(f"{prefix}.attn.out_proj")},
        "norm2": _norm(f"{prefix}.ln_2"),
        "mlp": {"up": _linear(f"{prefix}.mlp.c_fc"), "down": _linear(f"{prefix}.mlp.c_proj")},
    }


def _open_vit(config: VitConfig) -> Params:
    return {
        "patch": {"weight": _one("visual.conv1.weight", "patch")},
        "class_token": _one("visual.class_embedding"),
        "positions": _one("visual.positional_embedding"),
        "norm_pre": _norm("visual.ln_pre"),
        "blocks": [
            _open_block(f"visual.transformer.resblocks.{i}") for i in range(config.transformer.layers)
        ],
        "norm_post": _norm("visual.ln_post"),
        "projection": _one("visual.proj"),
    }


def _open_text(config: TextConfig) -> Params:
    return {
        "tokens": _one("token_embedding.weight"),
        "positions": _one("positional_embedding"),
        "blocks": [_open_block(f"transformer.resblocks.{i}") for i in range(config.transformer.layers)],
        "norm": _norm("ln_final"),
        "projection": _one("text_projection"),
    }


def _batch_norm(prefix: str) -> Params:
    statistics = {"mean": _one(f"{prefix}.running_mean"), "variance": _one(f"{prefix}.running_var")}
    return _norm(prefix) | statistics


def _open_resnet(config: ResNetConfig) -> Params:
    stem = [
        {"conv": _one(f"visual.conv{i}.weight", "conv"), "norm": _batch_norm(f"visual.bn{i}")}
        for i in (1, 2, 3)
    ]
    stages = [
        [_open_bottleneck(f"visual.layer{stage}.{i}", shortcut=i == 0) for i in range(count)]
        for stage, count in enumerate(config.blocks, start=1)
    ]
    names = {"query": "q_proj", "key": "k_proj", "value": "v_proj", "out": "c_proj"}
    pool: dict[str, Any] = {ours: _linear(f"visual.attnpool.{theirs}") for ours, theirs in names.items()}
    pool["positions"] = _one("visual.attnpool.positional_embedding")
    return {"stem": stem, "stages": stages, "pool": pool}


def _open_bottleneck(prefix: str, *, shortcut: bool) -> Params:
    params: Params = {}
    for i in (1, 2, 3):
        params[f"conv{i}"] = _one(f"{prefix}.conv{i}.weight", "conv")
        params[f"norm{i}"] = _batch_norm(f"{prefix}.bn{i}")
    if shortcut:
        params["shortcut"] = _one(f"{prefix}.downsample.0.weight", "conv")
        params["shortcut_norm"] = _batch_norm(f"{prefix}.downsample.1")
    return params
