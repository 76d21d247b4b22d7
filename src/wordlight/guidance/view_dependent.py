"""Prompts that say from which side the camera looks.

Notation: p prompts, e embedding; four directions: front, side, back, overhead.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float, PRNGKeyArray

from wordlight.clip.model import ClipModel
from wordlight.errors import WordlightError
from wordlight.guidance.config import GuidanceConfig
from wordlight.guidance.guidance import Guidance, GuidanceMetrics
from wordlight.guidance.targets import as_list
from wordlight.numerics import safe_normalize
from wordlight.viewpoints import VIEW_PHRASES, seen_from, view_shares


@partial(jax.tree_util.register_dataclass, data_fields=["guidance", "view_embeds"], meta_fields=[])
@dataclass(frozen=True)
class ViewDependentGuidance:
    """A guidance whose prompts follow the camera, as a pytree.

    An object that is told the same from all sides tends to grow a face on each of them. The model must know
    the words, as open-vocabulary models and the embedded guides do.

    Attributes:
        guidance: everything but the prompts.
        view_embeds: `[4, p, e]`, the prompts as seen from the front, the side, the back and overhead.
    """

    guidance: Guidance
    view_embeds: Float[Array, "4 p e"]

    @classmethod
    def from_prompts(
        cls,
        model: ClipModel,
        prompts: str | Sequence[str],
        *,
        weights: Sequence[float] | None = None,
        negatives: str | Sequence[str] = (),
        phrases: tuple[str, str, str, str] = VIEW_PHRASES,
        config: GuidanceConfig | None = None,
    ) -> "ViewDependentGuidance":
        """Embed `"<prompt>, <phrase>"` for each prompt and each of the four phrases, once.

        Args:
            model: a model with its text tower and tokenizer.
            prompts: what the images should show.
            weights: one positive number a prompt; equal if None.
            negatives: what they should not show, from any side.
            phrases: for the front, the side, the back and overhead.
            config: the loss and the views.

        Raises:
            WordlightError: as `Guidance.from_prompts`.
        """
        plain = Guidance.from_prompts(model, prompts, weights=weights, negatives=negatives, config=config)
        texts = [seen_from(prompt, phrase) for phrase in phrases for prompt in as_list(prompts)]
        embeds = model.encode_text(texts)
        return cls(plain, embeds.reshape(len(VIEW_PHRASES), -1, embeds.shape[-1]))

    def prompt_embeds(self, azimuth: ArrayLike, elevation: ArrayLike) -> Float[Array, "*b p e"]:
        """Return the prompts' unit-norm embeddings for cameras, angles in radians (see `view_shares`)."""
        return embeds_seen(self.view_embeds, azimuth, elevation)

    def at(self, azimuth: ArrayLike, elevation: ArrayLike) -> Guidance:
        """Return the guidance of one camera, angles in radians and possibly traced.

        Raises:
            WordlightError: there is more than one angle.
        """
        shapes = jnp.shape(azimuth), jnp.shape(elevation)
        if shapes != ((), ()):
            raise WordlightError(
                f"Azimuth and elevation of shapes {shapes[0]} and {shapes[1]} are more than one camera. A "
                "guidance has the prompts of one. Map over cameras, images and keys with jax.vmap."
            )
        return replace(self.guidance, text_embeds=self.prompt_embeds(azimuth, elevation))

    def __call__(
        self,
        image: Array,
        key: PRNGKeyArray,
        *,
        azimuth: ArrayLike,
        elevation: ArrayLike,
    ) -> tuple[Float[Array, ""], GuidanceMetrics]:
        """Return loss and metrics of images seen by one camera; the same as `at(...)` and a call."""
        return self.at(azimuth, elevation)(image, key)


def embeds_seen(
    view_embeds: Float[Array, "4 p e"], azimuth: ArrayLike, elevation: ArrayLike
) -> Float[Array, "*b p e"]:
    """Return unit-norm mixtures of embeddings from four sides for cameras, angles in radians (see
    `view_shares`)."""
    shares = view_shares(azimuth, elevation)
    return safe_normalize(jnp.einsum("...d,dpe->...pe", shares, view_embeds))
