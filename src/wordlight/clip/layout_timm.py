"""The tensor names of timm's SigLIP image towers inside OpenCLIP checkpoints."""

from wordlight.clip.config import VitConfig
from wordlight.clip.layers import Params
from wordlight.clip.source import linear, mlp, norm, one

TRUNK = "visual.trunk"


def timm_layout(config: VitConfig) -> Params:
    """Return the names of a SigLIP image tower."""
    patch, pool = f"{TRUNK}.patch_embed.proj", f"{TRUNK}.attn_pool"
    qkv = linear(f"{pool}.q", f"{pool}.kv", shares=(1, 2))
    return {
        "patch": {"weight": one(f"{patch}.weight", "patch"), "bias": one(f"{patch}.bias")},
        "positions": one(f"{TRUNK}.pos_embed", extra=1),
        "blocks": [_block(f"{TRUNK}.blocks.{i}") for i in range(config.transformer.layers)],
        "norm_post": norm(f"{TRUNK}.norm"),
        "pool": {
            "latent": one(f"{pool}.latent", extra=1),
            "attention": {
                "qkv": qkv,
                "out": linear(f"{pool}.proj"),
            },
            "norm": norm(f"{pool}.norm"),
            "mlp": mlp(f"{pool}.mlp"),
        },
    }


def _block(prefix: str) -> Params:
    return {
        "norm1": norm(f"{prefix}.norm1"),
        "attention": {"qkv": linear(f"{prefix}.attn.qkv"), "out": linear(f"{prefix}.attn.proj")},
        "norm2": norm(f"{prefix}.norm2"),
        "mlp": mlp(f"{prefix}.mlp"),
    }
