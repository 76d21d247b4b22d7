"""Small random CLIP models for the tests: a ViT and a ResNet, with a tokenizer of a few words."""

import functools
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from wordlight.clip.config import ClipConfig, ResNetConfig, TextConfig, TransformerConfig, VitConfig
from wordlight.clip.image_spec import ImageSpec
from wordlight.clip.layers import Params
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
    vision=ResNetConfig((SIZE, SIZE), (1, 1, 1, 1), width=4, heads=4),
    text=TextConfig(VOCAB, CONTEXT, TEXT_BLOCKS, end_id=None),
)


@functools.cache
def tiny_clip(config: ClipConfig = VIT, *, seed: int = 0, tokenizer: Tokenizer | None = None) -> ClipModel:
    """Return a model of random weights, none of them so small or plain that its loss would not show."""
    height, width = config.vision.image_size
    plain = isinstance(config.vision, VitConfig) and height == width
    spec = ImageSpec((height, width), mode="hf-pil" if plain else "open_clip")
    return ClipModel(_random_params(config, seed), config, spec, tokenizer)


def _random_params(config: ClipConfig, seed: int) -> Params:
    """Draw weights with NumPy, for which nothing has to be compiled."""
    rng = np.random.default_rng(seed)
    shapes = jax.eval_shape(lambda: init_params(jax.random.key(0), config))
    return jax.tree_util.tree_map_with_path(lambda path, leaf: _draw(rng, str(path[-1]), leaf.shape), shapes)


def _draw(rng: np.random.Generator, name: str, shape: tuple[int, ...]) -> jax.Array:
    noise = rng.standard_normal(shape)
    if "logit_scale" in name:
        return jnp.float32(2.0)
    if "variance" in name:
        return jnp.asarray(0.5 + np.abs(noise), jnp.float32)
    if "scale" in name:
        return jnp.asarray(1 + 0.2 * noise, jnp.float32)
    if len(shape) < 2 or "tokens" in name or "positions" in name:
        return jnp.asarray(0.3 * noise, jnp.float32)
    gain = 3.0 if len(shape) == 4 else 1.5
    return jnp.asarray(noise * (gain / np.prod(shape[:-1])) ** 0.5, jnp.float32)


def tiny_tokenizer(folder: Path) -> Tokenizer:
    """Write a tokenizer of `WORDS` into a folder and return it."""
    write_word_level_tokenizer(folder, WORDS, CONTEXT)
    return Tokenizer.from_folder(folder)


def pixels(*batch: int, seed: int = 1, size: tuple[int, int] = (SIZE, SIZE)) -> jax.Array:
    """Return noise about a colour for each, as preprocessed images `[*batch, height, width, 3]`."""
    rng = np.random.default_rng(seed)
    colours = rng.standard_normal((*batch, 1, 1, 3))
    return jnp.asarray(colours + rng.standard_normal((*batch, *size, 3)), jnp.float32)


def pictures(*batch: int, seed: int = 2, size: tuple[int, int] = (40, 28)) -> jax.Array:
    """Return images in [0, 1], `[*batch, height, width, 3]`, that still have to be preprocessed."""
    rng = np.random.default_rng(seed)
    return jnp.asarray(
        0.5 * rng.random((*batch, 1, 1, 3)) + 0.5 * rng.random((*batch, *size, 3)), jnp.float32
    )
