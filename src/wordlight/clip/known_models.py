"""Published checkpoints by their ids on the Hugging Face Hub, with the sizes that make them up.

Any other checkpoint of these families loads as well; the list is for finding one.
"""

import math
from dataclasses import dataclass, replace

import jax

from wordlight.clip.config import Activation, ClipConfig, TextConfig, TransformerConfig, VitConfig
from wordlight.clip.model import init_params


@dataclass(frozen=True)
class KnownModel:
    """A published checkpoint.

    Attributes:
        name: its id on the Hub.
        family: who trained it, and how.
        config: its towers.
    """

    name: str
    family: str
    config: ClipConfig

    @property
    def parameters(self) -> int:
        """How many numbers its weights hold."""
        shapes = jax.eval_shape(lambda: init_params(jax.random.key(0), self.config))
        return sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(shapes))


@dataclass(frozen=True)
class Sizes:
    """Width, layers, heads and MLP width of both towers, and the embedding's features."""

    vision: tuple[int, int, int, int]
    text: tuple[int, int, int, int]
    embed_dim: int


BASE = Sizes((768, 12, 12, 3072), (512, 12, 8, 2048), 512)
LARGE = Sizes((1024, 24, 16, 4096), (768, 12, 12, 3072), 768)
HUGE = Sizes((1280, 32, 16, 5120), (1024, 24, 16, 4096), 1024)
GIANT = Sizes((1408, 40, 16, 6144), (1024, 24, 16, 4096), 1024)
BIG_GIANT = Sizes((1664, 48, 16, 8192), (1280, 32, 20, 5120), 1280)

SIGLIP_BASE = Sizes((768, 12, 12, 3072), (768, 12, 12, 3072), 768)
SIGLIP_LARGE = Sizes((1024, 24, 16, 4096), (1024, 24, 16, 4096), 1024)
SIGLIP_SHAPED = Sizes((1152, 27, 16, 4304), (1152, 27, 16, 4304), 1152)
SIGLIP_GIANT = Sizes((1536, 40, 16, 6144), (1152, 27, 16, 4304), 1536)


def clip(sizes: Sizes, patch: int, side: int, activation: Activation) -> ClipConfig:
    """Return the configuration of a CLIP."""
    vision = TransformerConfig(*sizes.vision, activation)
    text = TextConfig(49408, 77, TransformerConfig(*sizes.text, activation))
    return ClipConfig(sizes.embed_dim, VitConfig((side, side), patch, vision), text)


def siglip(sizes: Sizes, patch: int, side: int, vocab_size: int) -> ClipConfig:
    """Return the configuration of a SigLIP or SigLIP 2."""
    transformer = TransformerConfig(*sizes.vision, "gelu_tanh", 1e-6)
    vision = VitConfig(
        (side, side),
        patch,
        transformer,
        patch_bias=True,
        pre_norm=False,
        class_token=False,
        pooling="latent",
        pool_heads=transformer.heads,
        projection=False,
    )
    text = TextConfig(
        vocab_size,
        64,
        replace(transformer, **dict(zip(("width", "layers", "heads", "mlp_width"), sizes.text, strict=True))),
        causal=False,
        pooling="last",
        pad_id=1,
        projection_bias=True,
    )
    return ClipConfig(sizes.embed_dim, vision, text, sigmoid=True)


def known_models() -> tuple[KnownModel, ...]:
    """Return all of them, family by family, the smallest first."""
    return (*_openai(), *_laion(), *_datacomp(), *_dfn(), *_metaclip(), *_siglip(), *_siglip2())


def _openai() -> list[KnownModel]:
    rows = (
        ("clip-vit-base-patch32", BASE, 32, 224),
        ("clip-vit-base-patch16", BASE, 16, 224),
        ("clip-vit-large-patch14", LARGE, 14, 224),
        ("clip-vit-large-patch14-336", LARGE, 14, 336),
    )
    return [KnownModel(f"openai/{n}", "OpenAI", clip(s, p, side, "quick_gelu")) for n, s, p, side in rows]


def _laion() -> list[KnownModel]:
    rows = (
        ("CLIP-ViT-B-32-laion2B-s34B-b79K", BASE, 32),
        ("CLIP-ViT-B-16-laion2B-s34B-b88K", BASE, 16),
        ("CLIP-ViT-L-14-laion2B-s32B-b82K", LARGE, 14),
        ("CLIP-ViT-H-14-laion2B-s32B-b79K", HUGE, 14),
        ("CLIP-ViT-g-14-laion2B-s12B-b42K", GIANT, 14),
        ("CLIP-ViT-bigG-14-laion2B-39B-b160k", BIG_GIANT, 14),
    )
    return [KnownModel(f"laion/{name}", "LAION", clip(s, p, 224, "gelu")) for name, s, p in rows]


def _datacomp() -> list[KnownModel]:
    rows = (("B-32", BASE, 32), ("B-16", BASE, 16), ("L-14", LARGE, 14))
    name = "laion/CLIP-ViT-{}-DataComp.XL-s13B-b90K"
    return [KnownModel(name.format(kind), "DataComp", clip(s, p, 224, "gelu")) for kind, s, p in rows]


def _dfn() -> list[KnownModel]:
    rows = (
        ("DFN2B-CLIP-ViT-B-16", BASE, 16, 224),
        ("DFN2B-CLIP-ViT-L-14", LARGE, 14, 224),
        ("DFN5B-CLIP-ViT-H-14", HUGE, 14, 224),
        ("DFN5B-CLIP-ViT-H-14-378", HUGE, 14, 378),
    )
    return [KnownModel(f"apple/{n}", "DFN", clip(s, p, side, "quick_gelu")) for n, s, p, side in rows]


def _metaclip() -> list[KnownModel]:
    rows = (
        ("metaclip-b32-400m", BASE, 32),
        ("metaclip-b16-fullcc2.5b", BASE, 16),
        ("metaclip-l14-fullcc2.5b", LARGE, 14),
        ("metaclip-h14-fullcc2.5b", HUGE, 14),
    )
    return [KnownModel(f"facebook/{n}", "MetaCLIP", clip(s, p, 224, "quick_gelu")) for n, s, p in rows]


def _siglip() -> list[KnownModel]:
    rows = (
        *(("base-patch16", SIGLIP_BASE, 16, side) for side in (224, 256, 384, 512)),
        *(("large-patch16", SIGLIP_LARGE, 16, side) for side in (256, 384)),
        *(("so400m-patch14", SIGLIP_SHAPED, 14, side) for side in (224, 384)),
    )
    return [
        KnownModel(f"google/siglip-{name}-{side}", "SigLIP", siglip(sizes, patch, side, 32_000))
        for name, sizes, patch, side in rows
    ]


def _siglip2() -> list[KnownModel]:
    rows = (
        ("base-patch32", SIGLIP_BASE, 32, 256),
        *(("base-patch16", SIGLIP_BASE, 16, side) for side in (224, 256, 384, 512)),
        *(("large-patch16", SIGLIP_LARGE, 16, side) for side in (256, 384, 512)),
        *(("so400m-patch14", SIGLIP_SHAPED, 14, side) for side in (224, 384)),
        *(("so400m-patch16", SIGLIP_SHAPED, 16, side) for side in (256, 384, 512)),
        *(("giant-opt-patch16", SIGLIP_GIANT, 16, side) for side in (256, 384)),
    )
    return [
        KnownModel(f"google/siglip2-{name}-{side}", "SigLIP 2", siglip(sizes, patch, side, 256_000))
        for name, sizes, patch, side in rows
    ]
