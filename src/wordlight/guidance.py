"""From prompts to a loss on images: the text tower runs once, the loss holds its embeddings only.

Notation: p prompts, n negatives, e embedding, v views of an image.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Literal, NamedTuple, get_args

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from wordlight import losses
from wordlight.augment import random_views
from wordlight.clip.model import ClipModel
from wordlight.clip.preprocess import Layout, ValueRange
from wordlight.errors import WordlightError

LossName = Literal["cosine", "spherical", "softmax"]


@dataclass(frozen=True)
class ViewConfig:
    """Random views that are shown to the model instead of the image itself.

    Attributes:
        count: views of every image.
        zoom: range of a window's side as a fraction of the image's.
        shift: largest displacement of the window, as a fraction of the side.
        blur: range of the blur's half-width in pixels of the model's image; 1 is none.
        noise: largest standard deviation of added noise.

    Raises:
        WordlightError: a range is empty or outside what it can be.
    """

    count: int = 1
    zoom: tuple[float, float] = (0.9, 1.1)
    shift: float = 0.05
    blur: tuple[float, float] = (1.0, 2.0)
    noise: float = 0.03

    def __post_init__(self) -> None:
        if self.count < 1:
            raise _bad_views(f"count {self.count}", "there must be a view to look at")
        if not 0 < self.zoom[0] <= self.zoom[1] < math.inf:
            raise _bad_views(f"zoom {self.zoom}", "it is a range of positive sides, lower end first")
        if not 1 <= self.blur[0] <= self.blur[1] < math.inf:
            raise _bad_views(f"blur {self.blur}", "it is a range of at least 1, lower end first")
        if not (0 <= self.shift < math.inf and 0 <= self.noise < math.inf):
            raise _bad_views(f"shift {self.shift} and noise {self.noise}", "they must not be negative")


@dataclass(frozen=True)
class GuidanceConfig:
    """How embeddings become a loss.

    Attributes:
        loss: `"cosine"` and `"spherical"` look at the prompts alone (negatives are pushed away with the same
            measure); `"softmax"` makes each prompt win against all negatives.
        pull: weight of the cosine loss in the softmax loss, which goes on pulling once a prompt has won.
        views: random views; None shows the model the image as it is.
        value_range: of the images, `"unit"`, `"byte"` or `"signed"`; views need `"unit"`.
        layout: of the images; views need `"HWC"`.

    Raises:
        WordlightError: there is no such loss, or views are asked for on other images than those.
    """

    loss: LossName = "cosine"
    pull: float = 0.0
    views: ViewConfig | None = None
    value_range: ValueRange = "unit"
    layout: Layout = "HWC"

    def __post_init__(self) -> None:
        if self.loss not in get_args(LossName):
            raise WordlightError(
                f"There is no guidance loss {self.loss!r}. The name is misspelt, or the loss takes more than "
                f"prompts. Use one of {', '.join(get_args(LossName))}, or call wordlight.losses yourself."
            )
        if self.views is not None and (self.value_range, self.layout) != ("unit", "HWC"):
            raise WordlightError(
                f"Random views were asked for with value range {self.value_range!r} and layout "
                f"{self.layout!r}. Blur and noise are defined on [0, 1] images with channels last. Convert "
                "the image, or set views to None."
            )


class GuidanceMetrics(NamedTuple):
    """What a guidance saw, averaged over images and views.

    Attributes:
        similarity: weighted mean cosine with the prompts.
        negative_similarity: highest cosine with a negative; -1 without negatives.
    """

    similarity: Float[Array, ""]
    negative_similarity: Float[Array, ""]


@partial(
    jax.tree_util.register_dataclass,
    data_fields=["model", "text_embeds", "weights", "negative_embeds"],
    meta_fields=["config"],
)
@dataclass(frozen=True)
class Guidance:
    """A loss on images, as a pytree: pass it into `jax.jit` as an argument, or its weights become constants.

    Attributes:
        model: the image tower.
        text_embeds: `[p, e]`, what the images should show.
        weights: `[p]`, of the prompts; they sum to one.
        negative_embeds: `[n, e]`, what they should not show.
        config: static.
    """

    model: ClipModel
    text_embeds: Float[Array, "p e"]
    weights: Float[Array, "p"]
    negative_embeds: Float[Array, "n e"]
    config: GuidanceConfig = field(default_factory=GuidanceConfig)

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
                needs negatives and has none.
        """
        config = config or GuidanceConfig()
        prompts, negatives = _as_list(prompts), _as_list(negatives)
        _check(prompts, negatives, weights, config)
        shares = jnp.asarray([1.0] * len(prompts) if weights is None else list(weights), jnp.float32)
        embeds = model.encode_text(prompts)
        against = model.encode_text(negatives) if negatives else jnp.zeros((0, embeds.shape[1]))
        return cls(model.without_text(), embeds, shares / shares.sum(), against, config)

    def __call__(self, image: Array, key: PRNGKeyArray) -> tuple[Float[Array, ""], GuidanceMetrics]:
        """Return the mean loss over all images and views, and metrics.

        Args:
            image: `[..., height, width, 3]`, or `[..., 3, height, width]` where the layout is `"CHW"`; any
                size, in the configured range.
            key: draws the views; unused where the configuration names none.
        """
        embeds = self.encode(image, key)
        loss = jnp.mean(self._prompt_losses(embeds) @ self.weights)
        return loss, self._metrics(embeds)

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
        if not jnp.issubdtype(image.dtype, jnp.floating):
            raise WordlightError(
                f"Random views of an image of dtype {image.dtype} were asked for. They are cut from floats "
                "in [0, 1], and integers have no gradient. Divide bytes by 255, or set views to None."
            )
        if image.ndim < 3 or image.shape[-1] != 3:
            channels = image.shape[-1] if image.ndim else 0
            raise WordlightError(
                f"An image of shape {image.shape} has {channels} channels at its end, not 3. It carries "
                "opacity, is grey, or has its channels first. Composite it over a background, or move its "
                "channels."
            )
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

    def _prompt_losses(self, embeds: Float[Array, "*v e"]) -> Float[Array, "*v p"]:
        if self.config.loss == "softmax":
            scale = jnp.exp(self.model.params["logit_scale"])
            against = self.negative_embeds
            one = lambda text: losses.softmax_contrastive(embeds, text, against, scale=scale)  # noqa: E731
            contest = jnp.moveaxis(jax.vmap(one)(self.text_embeds), 0, -1)
            return contest - self.config.pull * (embeds @ self.text_embeds.T)
        measure = losses.cosine if self.config.loss == "cosine" else losses.spherical
        wanted = measure(embeds[..., None, :], _lifted(self.text_embeds, embeds.ndim))
        if not len(self.negative_embeds):
            return wanted
        unwanted = measure(embeds[..., None, :], _lifted(self.negative_embeds, embeds.ndim))
        return wanted - jnp.mean(unwanted, axis=-1, keepdims=True)

    def _metrics(self, embeds: Float[Array, "*v e"]) -> GuidanceMetrics:
        similarity = jnp.mean(embeds @ self.text_embeds.T @ self.weights)
        against = jnp.mean(jnp.max(embeds @ self.negative_embeds.T, axis=-1, initial=-1.0))
        return GuidanceMetrics(*jax.lax.stop_gradient((similarity, against)))


def _lifted(embeds: Float[Array, "p e"], rank: int) -> Array:
    """Return `[p, e]` with leading axes of length one, to go with embeddings of the given rank."""
    return embeds.reshape((1,) * (rank - 1) + embeds.shape)


def _bad_views(what: str, reason: str) -> WordlightError:
    return WordlightError(
        f"The views' {what} cannot be: {reason}. The numbers are fractions of the image, except blur (pixels "
        "of the model's image). See ViewConfig for what each of them means."
    )


def _as_list(texts: str | Sequence[str]) -> list[str]:
    return [texts] if isinstance(texts, str) else list(texts)


def _check(
    prompts: list[str], negatives: list[str], weights: Sequence[float] | None, config: GuidanceConfig
) -> None:
    if not prompts or not all(isinstance(p, str) and p.strip() for p in prompts + negatives):
        raise WordlightError(
            f"The prompts {prompts} and negatives {negatives} hold an empty text, or there is none. An empty "
            "prompt means nothing to the model, and usually comes from an unset variable. Say what the image "
            "should show."
        )
    if weights is not None and (
        len(weights) != len(prompts) or not all(0 < w < float("inf") for w in weights)
    ):
        raise WordlightError(
            f"The weights {list(weights)} do not go with {len(prompts)} prompts. There must be one positive "
            "number for each. Push texts away with negatives, not with negative weights."
        )
    if config.loss == "softmax" and not negatives:
        raise WordlightError(
            "The softmax loss has no negatives, so it is always zero. It makes prompts win against other "
            "texts. Give negatives, or use the cosine loss."
        )
