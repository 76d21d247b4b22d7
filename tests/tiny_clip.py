"""Small random CLIP models for the tests: a ViT and a ResNet, with a tokenizer of a few words."""

from pathlib import Path

import jax

from wordlight.clip.config import ClipConfig, ResNetConfig, TextConfig, TransformerConfig, VitConfig
from wordlight.clip.image_spec import ImageSpec
from wordlight.clip.model import ClipModel, init_params
from wordlight.clip.tokenizer import Tokenizer
from wordlight.clip.tokenizer_files import write_word_level_tokenizer

SIZE, CONTEXT, EMBED = 32, 8, 24
WORDS = ["a", "bulldozer", "cat", "green", "mushroom", "of", "red", "yellow"]
VOCAB = len(WORDS) + 4  # padding, unknown, start, end
TEXT_BLOCKS = TransformerConfig(width=16, layers=2, heads=2, mlp_width=40)
VIT = ClipConfig(
    embed_dim=EMBED,
    vision=VitConfig((SIZE, SIZE), 16, TransformerConfig(width=32, layers=2, heads=4, mlp_width=64)),
    text=TextConfig(VOCAB, CONTEXT, TEXT_BLOCKS, end_id=VOCAB - 1),
)
RESNET = ClipConfig(
    embed_dim=EMBED,
    vision=ResNetConfig((SIZE, SIZE), (1, 2, 1, 1), width=4, heads=4),
    text=TextConfig(VOCAB, CONTEXT, TEXT_BLOCKS, end_id=None),
)


def tiny_clip(config: ClipConfig = VIT, *, seed: int = 0, tokenizer: Tokenizer | None = None) -> ClipModel:
    """Return a model of random weights."""
    height, width = config.vision.image_size
    plain = isinstance(config.vision, VitConfig) and height == width
    spec = ImageSpec((height, width), mode="hf-pil" if plain else "open_clip")
    return ClipModel(init_params(jax.random.key(seed), config), config, spec, tokenizer)


def tiny_tokenizer(folder: Path) -> Tokenizer:
    """Write a tokenizer of `WORDS` into a folder and return it."""
    write_word_level_tokenizer(folder, WORDS, CONTEXT)
    return Tokenizer.from_folder(folder)


def pixels(*batch: int, seed: int = 1, size: tuple[int, int] = (SIZE, SIZE)) -> jax.Array:
    """Return normal noise, as preprocessed images `[*batch, height, width, 3]`."""
    return jax.random.normal(jax.random.key(seed), (*batch, *size, 3))


def pictures(*batch: int, seed: int = 2, size: tuple[int, int] = (40, 28)) -> jax.Array:
    """Return images in [0, 1], `[*batch, height, width, 3]`, that still have to be preprocessed."""
    return jax.random.uniform(jax.random.key(seed), (*batch, *size, 3))
