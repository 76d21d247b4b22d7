"""Published checkpoints by their ids on the Hugging Face Hub, with the sizes that make them up.

Any other checkpoint of these families loads as well; the list is for finding one.
"""

import math
from dataclasses import dataclass

import jax

from wordlight.clip.config import (
    Activation,
    ClipConfig,
    TextConfig,
    TransformerConfig,
    VitConfig,
    siglip_text,
    siglip_vision,
)
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
    vision, text = (TransformerConfig(*tower, "gelu_tanh", 1e-6) for tower in (sizes.vision, sizes.text))
    return ClipConfig(
        sizes.embed_dim,
        siglip_vision((side, side), patch, vision),
        siglip_text(vocab_size, 64, text),
        sigmoid=True,
    )


CLIPS: tuple[tuple[str, str, Sizes, int, int, Activation], ...] = (
    ("OpenAI", "openai/clip-vit-base-patch32", BASE, 32, 224, "quick_gelu"),
    ("OpenAI", "openai/clip-vit-base-patch16", BASE, 16, 224, "quick_gelu"),
    ("OpenAI", "openai/clip-vit-large-patch14", LARGE, 14, 224, "quick_gelu"),
    ("OpenAI", "openai/clip-vit-large-patch14-336", LARGE, 14, 336, "quick_gelu"),
    ("LAION", "laion/CLIP-ViT-B-32-laion2B-s34B-b79K", BASE, 32, 224, "gelu"),
    ("LAION", "laion/CLIP-ViT-B-16-laion2B-s34B-b88K", BASE, 16, 224, "gelu"),
    ("LAION", "laion/CLIP-ViT-L-14-laion2B-s32B-b82K", LARGE, 14, 224, "gelu"),
    ("LAION", "laion/CLIP-ViT-H-14-laion2B-s32B-b79K", HUGE, 14, 224, "gelu"),
    ("LAION", "laion/CLIP-ViT-g-14-laion2B-s12B-b42K", GIANT, 14, 224, "gelu"),
    ("LAION", "laion/CLIP-ViT-bigG-14-laion2B-39B-b160k", BIG_GIANT, 14, 224, "gelu"),
    ("DataComp", "laion/CLIP-ViT-B-32-DataComp.XL-s13B-b90K", BASE, 32, 224, "gelu"),
    ("DataComp", "laion/CLIP-ViT-B-16-DataComp.XL-s13B-b90K", BASE, 16, 224, "gelu"),
    ("DataComp", "laion/CLIP-ViT-L-14-DataComp.XL-s13B-b90K", LARGE, 14, 224, "gelu"),
    ("DFN", "apple/DFN2B-CLIP-ViT-B-16", BASE, 16, 224, "quick_gelu"),
    ("DFN", "apple/DFN2B-CLIP-ViT-L-14", LARGE, 14, 224, "quick_gelu"),
    ("DFN", "apple/DFN5B-CLIP-ViT-H-14", HUGE, 14, 224, "quick_gelu"),
    ("DFN", "apple/DFN5B-CLIP-ViT-H-14-378", HUGE, 14, 378, "quick_gelu"),
    ("MetaCLIP", "facebook/metaclip-b32-400m", BASE, 32, 224, "quick_gelu"),
    ("MetaCLIP", "facebook/metaclip-b16-fullcc2.5b", BASE, 16, 224, "quick_gelu"),
    ("MetaCLIP", "facebook/metaclip-l14-fullcc2.5b", LARGE, 14, 224, "quick_gelu"),
    ("MetaCLIP", "facebook/metaclip-h14-fullcc2.5b", HUGE, 14, 224, "quick_gelu"),
)
# Name without its side, sizes, patch, the sides it was published for.
SIGLIPS: tuple[tuple[str, Sizes, int, tuple[int, ...]], ...] = (
    ("siglip-base-patch16", SIGLIP_BASE, 16, (224, 256, 384, 512)),
    ("siglip-large-patch16", SIGLIP_LARGE, 16, (256, 384)),
    ("siglip-so400m-patch14", SIGLIP_SHAPED, 14, (224, 384)),
    ("siglip2-base-patch32", SIGLIP_BASE, 32, (256,)),
    ("siglip2-base-patch16", SIGLIP_BASE, 16, (224, 256, 384, 512)),
    ("siglip2-large-patch16", SIGLIP_LARGE, 16, (256, 384, 512)),
    ("siglip2-so400m-patch14", SIGLIP_SHAPED, 14, (224, 384)),
    ("siglip2-so400m-patch16", SIGLIP_SHAPED, 16, (256, 384, 512)),
    ("siglip2-giant-opt-patch16", SIGLIP_GIANT, 16, (256, 384)),
)


def known_models() -> tuple[KnownModel, ...]:
    """Return all of them, family by family, the smallest first."""
    clips = (
        KnownModel(name, family, clip(sizes, patch, side, activation))
        for family, name, sizes, patch, side, activation in CLIPS
    )
    siglips = (_siglip(name, sizes, patch, side) for name, sizes, patch, sides in SIGLIPS for side in sides)
    return (*clips, *siglips)


def _siglip(name: str, sizes: Sizes, patch: int, side: int) -> KnownModel:
    second = name.startswith("siglip2")
    config = siglip(sizes, patch, side, 256_000 if second else 32_000)
    return KnownModel(f"google/{name}-{side}", "SigLIP 2" if second else "SigLIP", config)
