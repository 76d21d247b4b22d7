"""`Guidance`: targets, weights and an image tower as one pytree that is called like a loss.

Notation: p targets (prompts or pictures), n negatives, q pictures, e embedding, v views of an image.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from wordlight import losses
from wordlight.augment import random_views
from wordlight.clip.model import ClipModel
from wordlight.clip.preprocess import Layout, ValueRange
from wordlight.errors import WordlightError
from wordlight.guidance import measures
from wordlight.guidance.checks import (
    check_edit,
    check_image_loss,
    check_key,
    check_model,
    check_prompt_loss,
    check_viewed,
    logit_bias,
    matching_source,
)
from wordlight.guidance.config import GuidanceConfig
from wordlight.guidance.targets import Images, as_list, check_texts, embed_images, positive_weights


class GuidanceMetrics(NamedTuple):
    """What a guidance saw, averaged over images and views.

    Attributes:
        similarity: weighted mean cosine with the targets.
        negative_similarity: highest cosine with a negative; -1 without negatives.
    """

    similarity: Float[Array, ""]
    negative_similarity: Float[Array, ""]


@partial(jax.tree_util.register_dataclass, data_fields=["text_embeds", "image_embed"], meta_fields=[])
@dataclass(frozen=True)
class EditSource:
    """Where an edit starts from.

    Attributes:
        text_embeds: `[p, e]`, for each prompt the text that holds before the edit.
        image_embed: `[e]`, the source images' mean embedding; None where every call brings its own image.
    """

    text_embeds: Float[Array, "p e"]
    image_embed: Float[Array, "e"] | None = None


@partial(
    jax.tree_util.register_dataclass,
    data_fields=["model", "text_embeds", "weights", "negative_embeds", "source"],
    meta_fields=["config"],
)
@dataclass(frozen=True)
class Guidance:
    """A loss on images, as a pytree: pass it into `jax.jit` as an argument, or its weights become constants.

    Attributes:
        model: the image tower.
        text_embeds: `[p, e]`, what the images should show: embeddings of prompts, or of target images.
        weights: `[p]`, of the targets; they sum to one.
        negative_embeds: `[n, e]`, what they should not show.
        config: static.
        source: where an edit starts from; the directional loss alone has one.
    """

    model: ClipModel
    text_embeds: Float[Array, "p e"]
    weights: Float[Array, "p"]
    negative_embeds: Float[Array, "n e"]
    config: GuidanceConfig = field(default_factory=GuidanceConfig)
    source: EditSource | None = None

    @classmethod
    def from_prompts(
        cls,
        model: ClipModel,
        prompts: str | Sequence[str],
        *,
        weights: Sequence[float] | None = None,
        negatives: str | Sequence[str] = (),
        config: GuidanceConfig | None = None,
    ) -> "Guidance":
        """Embed prompts once and drop the text tower.

        Args:
            model: a model with its text tower and tokenizer.
            prompts: what the images should show.
            weights: one positive number a prompt; equal if None.
            negatives: what they should not show.
            config: the loss and the views.

        Raises:
            WordlightError: a prompt is empty or refused by the tokenizer, weights do not fit, or the loss
                needs what is not there: negatives, a source, or a model with a logit bias.
        """
        config = config or GuidanceConfig()
        check_model(model)
        prompts, negatives = as_list(prompts), as_list(negatives)
        check_texts(prompts, negatives)
        shares = positive_weights(weights, len(prompts), "prompts")
        check_prompt_loss(model, negatives, config)
        embeds = model.encode_text(prompts)
        against = model.encode_text(negatives) if negatives else _nothing(model)
        return cls(model.without_text(), embeds, shares / shares.sum(), against, config)

    @classmethod
    def from_images(
        cls,
        model: ClipModel,
        images: Images,
        *,
        weights: Sequence[float] | None = None,
        value_range: ValueRange = "unit",
        layout: Layout = "HWC",
        config: GuidanceConfig | None = None,
    ) -> "Guidance":
        """Embed target images once; the loss pulls images to look like them (see `losses.consistency`).

        Args:
            model: any model; its text tower, if it has one, is dropped.
            images: one, a batch, or a sequence of images of unlike sizes. They are shown to the model whole.
            weights: one positive number an image; equal if None.
            value_range: of these images; `config.value_range` is that of the images the loss will see.
            layout: of these images.
            config: the loss, `"cosine"` or `"spherical"`, and the views.

        Raises:
            WordlightError: an image is refused, weights do not fit, or the loss is for texts only.
        """
        config = config or GuidanceConfig()
        check_model(model)
        check_image_loss(config)
        embeds = embed_images(model, images, value_range=value_range, layout=layout)
        shares = positive_weights(weights, len(embeds), "images")
        return cls(model.without_text(), embeds, shares / shares.sum(), _nothing(model), config)

    def with_images(
        self, images: Images, *, share: float = 0.5, value_range: ValueRange = "unit", layout: Layout = "HWC"
    ) -> "Guidance":
        """Return a guidance that has these target images as well.

        Args:
            images: as in `from_images`.
            share: part of the weight, above 0 and below 1, that the new images get together, in equal parts;
                what is already there keeps the rest in its proportions.
            value_range: of these images.
            layout: of these images.

        Raises:
            WordlightError: an image is refused, the share is no fraction, or the loss is for texts only.
        """
        check_image_loss(self.config)
        if not 0 < share < 1:
            raise WordlightError(
                f"A share of {share} for the images leaves nothing for them or for the other targets. It is "
                "a part of the whole weight. Give a number above 0 and below 1, or use Guidance.from_images "
                "for images alone."
            )
        embeds = embed_images(self.model, images, value_range=value_range, layout=layout)
        parts = jnp.full((len(embeds),), share / len(embeds), self.weights.dtype)
        return replace(
            self,
            text_embeds=jnp.concatenate([self.text_embeds, embeds]),
            weights=jnp.concatenate([(1 - share) * self.weights, parts]),
        )

    @classmethod
    def from_edit(
        cls,
        model: ClipModel,
        prompts: str | Sequence[str],
        source_prompts: str | Sequence[str],
        *,
        source_images: Images | None = None,
        weights: Sequence[float] | None = None,
        value_range: ValueRange = "unit",
        layout: Layout = "HWC",
        config: GuidanceConfig | None = None,
    ) -> "Guidance":
        """Embed an edit: the image should change from its source as the text does from `source_prompts`.

        Args:
            model: a model with its text tower and tokenizer.
            prompts: what the images should show after the edit.
            source_prompts: what the source shows; one for all prompts, or one for each.
            source_images: what the edit starts from, as in `from_images`; several count as their mean. None
                if every call brings its own, as an edited scene does: the same view, rendered before.
            weights: one positive number a prompt; equal if None.
            value_range: of the source images.
            layout: of the source images.
            config: the views; its loss must be `"directional"`, which it is by default.

        Raises:
            WordlightError: a text or an image is refused, weights do not fit, an edit changes nothing, or
                the loss is another one.
        """
        config = config or GuidanceConfig(loss="directional")
        check_model(model)
        prompts, before = as_list(prompts), as_list(source_prompts)
        check_texts(prompts, [])
        check_texts(before, [])
        before = before * len(prompts) if len(before) == 1 else before
        check_edit(prompts, before, config)
        shares = positive_weights(weights, len(prompts), "prompts")
        embeds, image = model.encode_text(prompts), None
        if source_images is not None:
            each = embed_images(model, source_images, value_range=value_range, layout=layout)
            image = jnp.mean(each, axis=0)
        source = EditSource(model.encode_text(before), image)
        return cls(model.without_text(), embeds, shares / shares.sum(), _nothing(model), config, source)

    def __call__(
        self, image: Array, key: PRNGKeyArray, *, source: Array | None = None
    ) -> tuple[Float[Array, ""], GuidanceMetrics]:
        """Return the mean loss over all images and views, and metrics.

        Args:
            image: `[..., height, width, 3]`, or `[..., 3, height, width]` where the layout is `"CHW"`; any
                size, in the configured range.
            key: draws the views; unused where the configuration names none.
            source: for the directional loss, what the image was before the edit, in the same range and
                layout; one, or one for each image. It is seen through the same views as the image.

        Raises:
            WordlightError: an image's shape, dtype, range or layout does not fit, or a source is missing or
                not asked for.
        """
        embeds = self.encode(image, key)
        if self.config.loss == "directional":
            table = self._edit_losses(embeds, image, key, source)
        elif source is None:
            table = self._target_losses(embeds)
        else:
            raise WordlightError(
                f"A source image came with the loss {self.config.loss!r}, which looks at the image alone. "
                "Only the directional loss compares the two. Drop the source, or make the guidance with "
                "Guidance.from_edit."
            )
        return jnp.mean(table @ self.weights), self._metrics(embeds)

    def encode(self, image: Array, key: PRNGKeyArray) -> Float[Array, "*v e"]:
        """Return the embeddings of the views, `[views, ..., e]`, or of the images, `[..., e]`.

        Raises:
            WordlightError: the image's shape, dtype, range or layout does not fit.
        """
        views, spec = self.config.views, self.model.image_spec
        if views is None:
            return self.model.encode_image(
                image, value_range=self.config.value_range, layout=self.config.layout
            )
        check_viewed(image)
        check_key(key)
        repeated = jnp.broadcast_to(image[None], (views.count, *image.shape))
        seen = random_views(
            key,
            repeated,
            size=spec.size,
            zoom=views.zoom,
            shift=views.shift,
            blur=views.blur,
            noise=views.noise,
        )
        return self.model.encode_image(seen)

    def _target_losses(self, embeds: Float[Array, "*v e"]) -> Float[Array, "*v p"]:
        targets, against = self.text_embeds, self.negative_embeds
        if self.config.loss in ("cosine", "spherical"):
            measure = losses.cosine if self.config.loss == "cosine" else losses.spherical
            return measures.measured(measure, embeds, targets, against)
        scale = jnp.exp(self.model.params["logit_scale"])
        if self.config.loss == "softmax":
            contest = measures.softmax(embeds, targets, against, scale=scale)
        else:
            bias = logit_bias(self.model)
            contest = measures.sigmoid(embeds, targets, against, scale=scale, bias=bias)
        return contest - self.config.pull * (embeds @ targets.T)

    def _edit_losses(
        self, embeds: Float[Array, "*v e"], image: Array, key: PRNGKeyArray, shown: Array | None
    ) -> Float[Array, "*v p"]:
        start = self.source
        if start is not None and shown is not None:
            before = self.encode(matching_source(shown, image), key)
        elif start is not None and start.image_embed is not None:
            before = jnp.broadcast_to(start.image_embed, embeds.shape)
        else:
            raise WordlightError(
                "The directional loss has no source to measure the change from. Nothing was given to "
                "Guidance.from_edit, or this call brought no source image. Give source_images there, or "
                "guidance(image, key, source=...)."
            )
        return measures.directional(embeds, before, self.text_embeds, start.text_embeds)

    def _metrics(self, embeds: Float[Array, "*v e"]) -> GuidanceMetrics:
        similarity = jnp.mean(embeds @ self.text_embeds.T @ self.weights)
        against = jnp.mean(jnp.max(embeds @ self.negative_embeds.T, axis=-1, initial=-1.0))
        return GuidanceMetrics(*jax.lax.stop_gradient((similarity, against)))


def _nothing(model: ClipModel) -> Float[Array, "0 e"]:
    """Return the negatives of a guidance that has none."""
    return jnp.zeros((0, model.config.embed_dim))
