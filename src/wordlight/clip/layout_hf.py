"""The tensor names that `transformers` gives CLIP and SigLIP models."""

from wordlight.clip.config import ClipConfig, TextConfig, VitConfig
from wordlight.clip.layers import Params
from wordlight.clip.source import linear, mlp, norm, one, packed


def hf_layout(config: ClipConfig) -> Params:
    """Return the names of a model with a vision transformer."""
    assert isinstance(config.vision, VitConfig)
    layout: Params = {"vision": _vision(config.vision), "logit_scale": one("logit_scale")}
    if config.sigmoid:
        layout["logit_bias"] = one("logit_bias")
    return layout | ({"text": _text(config.text)} if config.text else {})


def _blocks(prefix: str, layers: int) -> list[Params]:
    return [_block(f"{prefix}.encoder.layers.{i}") for i in range(layers)]


def _block(prefix: str) -> Params:
    attention = f"{prefix}.self_attn"
    return {
        "norm1": norm(f"{prefix}.layer_norm1"),
        "attention": {
            "qkv": linear(*(f"{attention}.{name}_proj" for name in "qkv")),
            "out": linear(f"{attention}.out_proj"),
        },
        "norm2": norm(f"{prefix}.layer_norm2"),
        "mlp": mlp(f"{prefix}.mlp"),
    }


def _vision(config: VitConfig) -> Params:
    base, patch = "vision_model.embeddings", "vision_model.embeddings.patch_embedding"
    layout: Params = {
        "patch": {"weight": one(f"{patch}.weight", "patch")},
        "positions": one(f"{base}.position_embedding.weight"),
        "blocks": _blocks("vision_model", config.transformer.layers),
        "norm_post": norm("vision_model.post_layernorm"),
    }
    if config.patch_bias:
        layout["patch"]["bias"] = one(f"{patch}.bias")
    if config.class_token:
        layout["class_token"] = one(f"{base}.class_embedding")
    if config.pre_norm:
        layout["norm_pre"] = norm("vision_model.pre_layrnorm")
    if config.projection:
        layout["projection"] = one("visual_projection.weight", "linear")
    return layout | ({"pool": _pool("vision_model.head")} if config.pooling == "latent" else {})


def _pool(prefix: str) -> Params:
    return {
        "latent": one(f"{prefix}.probe", extra=1),
        "attention": packed(f"{prefix}.attention"),
        "norm": norm(f"{prefix}.layernorm"),
        "mlp": mlp(f"{prefix}.mlp"),
    }


def _text(config: TextConfig) -> Params:
    layout: Params = {
        "tokens": one("text_model.embeddings.token_embedding.weight"),
        "positions": one("text_model.embeddings.position_embedding.weight"),
        "blocks": _blocks("text_model", config.transformer.layers),
        "norm": norm("text_model.final_layer_norm"),
    }
    if not config.projection_bias:
        return layout | {"projection": one("text_projection.weight", "linear")}
    head = linear("text_model.head")
    return layout | {"projection": head["weight"], "projection_bias": head["bias"]}
