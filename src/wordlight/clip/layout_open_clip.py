"""The tensor names that OpenCLIP (and OpenAI) give their models."""

from typing import Any

from wordlight.clip.config import ClipConfig, ResNetConfig, TextConfig, VitConfig
from wordlight.clip.layers import Params
from wordlight.clip.layout_timm import timm_layout
from wordlight.clip.source import linear, norm, one, packed


def open_clip_layout(config: ClipConfig, *, text_prefix: str = "") -> Params:
    """Return the names of a model; `text_prefix` comes before those of the text tower."""
    layout: Params = {"vision": _vision(config), "logit_scale": one("logit_scale")}
    if config.sigmoid:
        layout["logit_bias"] = one("logit_bias")
    return layout | ({"text": _text(config.text, text_prefix)} if config.text else {})


def _vision(config: ClipConfig) -> Params:
    if isinstance(config.vision, ResNetConfig):
        return _resnet(config.vision)
    if config.vision.pooling == "latent":
        return timm_layout(config.vision)
    return _vit(config.vision, config.embed_dim)


def _block(prefix: str, *, layer_scale: bool) -> Params:
    scales = {f"scale{i}": one(f"{prefix}.ls_{i}.gamma") for i in (1, 2)} if layer_scale else {}
    return scales | {
        "norm1": norm(f"{prefix}.ln_1"),
        "attention": packed(f"{prefix}.attn"),
        "norm2": norm(f"{prefix}.ln_2"),
        "mlp": {"up": linear(f"{prefix}.mlp.c_fc"), "down": linear(f"{prefix}.mlp.c_proj")},
    }


def _vit(config: VitConfig, embed_dim: int) -> Params:
    blocks, scaled = "visual.transformer.resblocks", config.transformer.layer_scale
    layout: Params = {
        "patch": {"weight": one("visual.conv1.weight", "patch")},
        "class_token": one("visual.class_embedding"),
        "positions": one("visual.positional_embedding"),
        "blocks": [_block(f"{blocks}.{i}", layer_scale=scaled) for i in range(config.transformer.layers)],
        "norm_post": norm("visual.ln_post"),
        "projection": one("visual.proj"),
    }
    if config.pre_norm:
        layout["norm_pre"] = norm("visual.ln_pre")
    same = config.transformer.width == embed_dim
    return layout | ({"pool": _query_pool(same)} if config.pooling == "queries" else {})


def _query_pool(same_width: bool) -> Params:
    """Return the names of CoCa's pooling; PyTorch joins its three matrices where they are of one width."""
    prefix = "visual.attn_pool"
    names: dict[str, Any] = {
        "queries": one(f"{prefix}.query"),
        "norm_query": norm(f"{prefix}.ln_q"),
        "norm_key": norm(f"{prefix}.ln_k"),
        "attention": packed(f"{prefix}.attn"),
    }
    if not same_width:
        separate = {n: one(f"{prefix}.attn.{n[0]}_proj_weight", "linear") for n in ("query", "key", "value")}
        bias = one(f"{prefix}.attn.in_proj_bias")
        names["attention"] = separate | {"bias": bias, "out": names["attention"]["out"]}
    return names


def _text(config: TextConfig, prefix: str) -> Params:
    blocks, scaled = f"{prefix}transformer.resblocks", config.transformer.layer_scale
    layout: Params = {
        "tokens": one(f"{prefix}token_embedding.weight"),
        "positions": one(f"{prefix}positional_embedding"),
        "blocks": [_block(f"{blocks}.{i}", layer_scale=scaled) for i in range(config.transformer.layers)],
        "norm": norm(f"{prefix}ln_final"),
    }
    if config.pooling == "class":
        layout["class_token"] = one(f"{prefix}cls_emb")
    if config.projection_bias:
        head = linear(f"{prefix}text_projection")
        return layout | {"projection": head["weight"], "projection_bias": head["bias"]}
    return layout | ({"projection": one(f"{prefix}text_projection")} if config.projection else {})


def _batch_norm(prefix: str) -> Params:
    statistics = {"mean": one(f"{prefix}.running_mean"), "variance": one(f"{prefix}.running_var")}
    return norm(prefix) | statistics


def _resnet(config: ResNetConfig) -> Params:
    stem = [
        {"conv": one(f"visual.conv{i}.weight", "conv"), "norm": _batch_norm(f"visual.bn{i}")}
        for i in (1, 2, 3)
    ]
    stages = [
        [_bottleneck(f"visual.layer{stage}.{i}", shortcut=i == 0) for i in range(count)]
        for stage, count in enumerate(config.blocks, start=1)
    ]
    names = {"query": "q_proj", "key": "k_proj", "value": "v_proj", "out": "c_proj"}
    pool: dict[str, Any] = {ours: linear(f"visual.attnpool.{theirs}") for ours, theirs in names.items()}
    pool["positions"] = one("visual.attnpool.positional_embedding")
    return {"stem": stem, "stages": stages, "pool": pool}


def _bottleneck(prefix: str, *, shortcut: bool) -> Params:
    params: Params = {}
    for i in (1, 2, 3):
        params[f"conv{i}"] = one(f"{prefix}.conv{i}.weight", "conv")
        params[f"norm{i}"] = _batch_norm(f"{prefix}.bn{i}")
    if shortcut:
        params["shortcut"] = one(f"{prefix}.downsample.0.weight", "conv")
        params["shortcut_norm"] = _batch_norm(f"{prefix}.downsample.1")
    return params
