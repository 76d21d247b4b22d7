"""`ClipModel`: a pytree of weights with a static configuration.

Notation: b batch, n texts, e embedding.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from wordlight.clip.config import ClipConfig, ResNetConfig, TextConfig
from wordlight.clip.image_spec import ImageSpec
from wordlight.clip.layers import Params
from wordlight.clip.preprocess import Layout, ValueRange, check_layout, preprocess
from wordlight.clip.resnet import init_resnet, resnet_features
from wordlight.clip.text import init_text, text_features
from wordlight.clip.tokenizer import Tokenizer, Tokens
from wordlight.clip.vit import init_vit, vit_features
from wordlight.errors import WordlightError
from wordlight.memory import give_back_memory
from wordlight.numerics import at_least_float32, safe_normalize
from wordlight.typing import Pixels

INITIAL_LOG_SCALE = 2.6592600  # log(1 / 0.07), where CLIP starts (arXiv 2103.00020, section 2.5)
TEXT_STEP, MANY_TEXTS = 8, 128  # lengths are multiples of the first below so many prompts
INITIAL_BIAS = -10.0  # where SigLIP starts (arXiv 2303.15343, algorithm 1)


@partial(
    jax.tree_util.register_dataclass,
    data_fields=["params"],
    meta_fields=["config", "image_spec", "tokenizer"],
)
@dataclass(frozen=True)
class ClipModel:
    """An image-text model as a pytree: `params` are its leaves, everything else is static.

    Pass it into `jax.jit` as an argument. A model that a jitted function closes over becomes constants of the
    compiled program: slow to compile, and held in memory twice.

    Attributes:
        params: `{"vision": ..., "text": ..., "logit_scale": ...}`, with `"logit_bias"` where pairs are judged
            by a sigmoid; `"text"` is missing after `without_text`.
        config: the towers' sizes.
        image_spec: how images are preprocessed.
        tokenizer: text to ids, or None where the checkpoint brought no tokenizer files.
    """

    params: Params
    config: ClipConfig
    image_spec: ImageSpec
    tokenizer: Tokenizer | None = None

    def encode_image(
        self, images: Array, *, value_range: ValueRange = "unit", layout: Layout = "HWC"
    ) -> Float[Array, "*b e"]:
        """Preprocess images and return unit-norm embeddings.

        Args:
            images: `[..., height, width, 3]` or, with layout `"CHW"`, `[..., 3, height, width]`; any size.
            value_range: `"unit"` [0, 1], `"byte"` [0, 255] or `"signed"` [-1, 1].
            layout: where the channels are.

        Raises:
            WordlightError: the shape, dtype, range or layout does not fit.
        """
        return self.encode_pixels(preprocess(images, self.image_spec, value_range=value_range, layout=layout))

    def encode_pixels(self, pixels: Array, *, layout: Layout = "HWC") -> Float[Array, "*b e"]:
        """Return unit-norm embeddings of preprocessed pixels, `[..., height, width, 3]` or `"CHW"`."""
        return safe_normalize(self.image_features(pixels, layout=layout))

    def image_features(self, pixels: Array, *, layout: Layout = "HWC") -> Float[Array, "*b e"]:
        """Return projected features of preprocessed pixels, before normalisation."""
        check_layout(layout)
        size = self.config.vision.image_size
        expected = (*size, 3) if layout == "HWC" else (3, *size)
        if pixels.shape[-3:] != expected:
            raise WordlightError(
                f"Pixels of shape {pixels.shape} do not end in the {expected} this model takes. They were "
                "probably not preprocessed, or the layout is another. Use encode_image for images of any "
                "size, or give the layout."
            )
        last = pixels if layout == "HWC" else jnp.moveaxis(pixels, -3, -1)
        features = _image_features(self.params["vision"], last.reshape(-1, *size, 3), self.config)
        return at_least_float32(features).reshape(*pixels.shape[:-3], self.config.embed_dim)

    def tokenize(self, prompts: str | Sequence[str], *, truncate: bool = False) -> Tokens:
        """Turn prompts into ids and mask, `[n, context_length]` each, on the host.

        The mask is what the tower was trained with: ones for the padding as well where it was in sight.

        Raises:
            WordlightError: the checkpoint has no tokenizer files, or the tokenizer refuses a prompt.
        """
        if self.tokenizer is None:
            raise WordlightError(
                "This model has no tokenizer, so it cannot read text. Its folder held no tokenizer.json, nor "
                "vocab.json with merges.txt, or its text tower was dropped. Add those files to the folder "
                "and load it again, or give token ids to encode_tokens."
            )
        ids, mask = self.tokenizer(prompts, truncate=truncate)
        text = self.config.text
        if text is not None and text.sees_padding:
            mask = np.ones_like(mask)
        return Tokens(ids, mask)

    def encode_text(self, prompts: str | Sequence[str], *, truncate: bool = False) -> Float[Array, "n e"]:
        """Tokenise prompts on the host and return unit-norm embeddings; not for use on traced values."""
        ids, mask = self.tokenize(prompts, truncate=truncate)
        text = self.config.text
        at_end = text is not None and text.causal and text.pooling == "end"
        if at_end and self.tokenizer is not None and not self.tokenizer.pads_left:
            # Padding behind the end is not looked at. Few lengths, so that few are compiled for few prompts.
            step = TEXT_STEP if len(ids) < MANY_TEXTS else 1
            used = -(-int(mask.sum(-1).max(initial=1)) // step) * step
            ids, mask = ids[:, :used], mask[:, :used]
        embeds = _encode_tokens(self, jnp.asarray(ids), jnp.asarray(mask, bool))
        give_back_memory()
        return embeds

    def encode_tokens(self, ids: Int[Array, "n length"], mask: Array | None = None) -> Float[Array, "n e"]:
        """Return unit-norm embeddings of token ids; `mask` is true (or 1) for tokens that count."""
        return safe_normalize(self.text_features(ids, mask))

    def text_features(self, ids: Int[Array, "n length"], mask: Array | None = None) -> Float[Array, "n e"]:
        """Return projected features of token ids, before normalisation.

        Raises:
            WordlightError: the text tower was dropped, the sequence is longer than the context, or an id is
                outside the vocabulary (seen where ids are not traced).
        """
        config = self.config.text
        if config is None:
            raise WordlightError(
                "This model has no text tower. It was dropped by without_text, as guidance does once its "
                "prompts are embedded. Embed text with the model as it was loaded."
            )
        ids = _checked_ids(ids, config)
        visible = None if mask is None else _checked_mask(mask, ids.shape)
        return at_least_float32(text_features(self.params["text"], ids, config, mask=visible))

    def logits(
        self, image_embeds: Float[Array, "*b e"], text_embeds: Float[Array, "n e"]
    ) -> Float[Array, "*b n"]:
        """Return exp(logit_scale) times the cosine of images and texts (arXiv 2103.00020, figure 3), plus the
        bias of a sigmoid model (arXiv 2303.15343, algorithm 1)."""
        logits = jnp.exp(self.params["logit_scale"]) * (image_embeds @ text_embeds.T)
        return logits + self.params["logit_bias"] if self.config.sigmoid else logits

    def probabilities(
        self, image_embeds: Float[Array, "*b e"], text_embeds: Float[Array, "n e"]
    ) -> Float[Array, "*b n"]:
        """Return how likely each text is: a softmax over all, or, for a sigmoid model, each for itself."""
        logits = self.logits(image_embeds, text_embeds)
        return jax.nn.sigmoid(logits) if self.config.sigmoid else jax.nn.softmax(logits, axis=-1)

    def without_text(self) -> "ClipModel":
        """Return the model without its text tower and tokenizer, as a training step needs it."""
        params = {name: leaf for name, leaf in self.params.items() if name != "text"}
        return replace(self, params=params, config=replace(self.config, text=None), tokenizer=None)

    def replace_params(self, params: Params) -> "ClipModel":
        """Return the same model with other weights."""
        return replace(self, params=params)


def _image_features(params: Params, pixels: Pixels, config: ClipConfig) -> Float[Array, "b e"]:
    if isinstance(config.vision, ResNetConfig):
        return resnet_features(params, pixels, config.vision)
    return vit_features(params, pixels, config.vision)


def _checked_ids(ids: Any, config: TextConfig) -> Int[Array, "n length"]:
    given = ids if isinstance(ids, jax.Array) else np.asarray(ids)
    whole = jnp.issubdtype(given.dtype, jnp.integer)
    if not whole or given.ndim != 2 or not 1 <= given.shape[1] <= config.context_length:
        raise WordlightError(
            f"Token ids of shape {given.shape} and type {given.dtype} are not whole numbers [n, length] with "
            f"length at most {config.context_length}. The text was tokenised for another model, or not "
            "truncated, or it is text still. Use model.tokenize."
        )
    _check_range(given, config.vocab_size)
    return jnp.asarray(given)


def _check_range(ids: Array | np.ndarray, vocab_size: int) -> None:
    """Refuse ids that have no row in the token table; indexing would silently take another one."""
    if isinstance(ids, Tracer) or not ids.size:
        return
    with jax.ensure_compile_time_eval():  # ids that a jitted function closes over are known as well
        lowest, highest = int(ids.min()), int(ids.max())
    if lowest < 0 or highest >= vocab_size:
        raise WordlightError(
            f"Token ids from {lowest} to {highest} do not fit a vocabulary of {vocab_size}. The text was "
            "tokenised for another model. Use model.tokenize."
        )


def _checked_mask(mask: Any, shape: tuple[int, ...]) -> Bool[Array, "n length"]:
    if jnp.shape(mask) != shape:
        raise WordlightError(
            f"The mask has the shape {jnp.shape(mask)} and the token ids {shape}. They come from two calls, "
            "or one was cut. Use both results of model.tokenize."
        )
    return jnp.asarray(mask).astype(bool)


@jax.jit
def _encode_tokens(
    model: ClipModel, ids: Int[Array, "n length"], mask: Bool[Array, "n length"]
) -> Float[Array, "n e"]:
    return model.encode_tokens(ids, mask)


def init_params(key: PRNGKeyArray, config: ClipConfig) -> Params:
    """Return random weights; under `jax.eval_shape`, the shapes a checkpoint of this kind must have."""
    vision_key, text_key = jax.random.split(key)
    if isinstance(config.vision, ResNetConfig):
        vision = init_resnet(vision_key, config.vision, config.embed_dim)
    else:
        vision = init_vit(vision_key, config.vision, config.embed_dim)
    params: Params = {"vision": vision, "logit_scale": jnp.float32(INITIAL_LOG_SCALE)}
    if config.sigmoid:
        params["logit_bias"] = jnp.float32(INITIAL_BIAS)
    if config.text is not None:
        params["text"] = init_text(text_key, config.text, config.embed_dim)
    return params
