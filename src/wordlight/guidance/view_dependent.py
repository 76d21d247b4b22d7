"""Prompts that say from which side the camera looks.

Notation: p prompts, e embedding; four directions: front, side, back, overhead.
"""

import math
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

PHRASES = ("front view", "side view", "back view", "overhead view")
OVERHEAD = math.pi / 3  # 60 degrees


def view_shares(
    azimuth: ArrayLike, elevation: ArrayLike, *, overhead: float = OVERHEAD
) -> Float[Array, "*b 4"]:
    """Return how much of a camera's view is front, side, back and overhead; they sum to one.

    DreamFusion, arXiv 2209.14988, section 3.2: overhead where the elevation is above 60 degrees, else a
    combination by azimuth. The paper does not print its weights; here they are linear in the angle to the
    front: all front at 0, all side at 90 degrees to the left and right, all back at 180.

    Piecewise linear in azimuth, with one-sided slopes at multiples of 90 degrees. Not differentiable in
    elevation: the step at `overhead` has gradient zero.

    Args:
        azimuth: radians; 0 is the front (the camera on +X where +Z is up) and any turn may be added.
        elevation: radians above the horizon.
        overhead: elevation above which the view is overhead alone.
    """
    azimuth, elevation = jnp.asarray(azimuth, jnp.float32), jnp.asarray(elevation, jnp.float32)
    turns = jnp.abs(jnp.mod(azimuth + jnp.pi, 2 * jnp.pi) - jnp.pi) / (jnp.pi / 2)
    front, back = jnp.maximum(1 - turns, 0), jnp.maximum(turns - 1, 0)
    above = (elevation > overhead).astype(jnp.float32)
    front, side, back, above = jnp.broadcast_arrays(front, 1 - front - back, back, above)
    level = (1 - above)[..., None] * jnp.stack([front, side, back], axis=-1)
    return jnp.concatenate([level, above[..., None]], axis=-1)


@partial(jax.tree_util.register_dataclass, data_fields=["guidance", "view_embeds"], meta_fields=[])
@dataclass(frozen=True)
class ViewDependentGuidance:
    """A guidance whose prompts follow the camera, as a pytree.

    An object that is told the same from all sides tends to grow a face on each of them. The model must know
    the words: an open-vocabulary model does, the embedded `demo` does not.

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
        phrases: tuple[str, str, str, str] = PHRASES,
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
        texts = [f"{prompt}, {phrase}" for phrase in phrases for prompt in as_list(prompts)]
        embeds = model.encode_text(texts)
        return cls(plain, embeds.reshape(len(PHRASES), -1, embeds.shape[-1]))

    def prompt_embeds(self, azimuth: ArrayLike, elevation: ArrayLike) -> Float[Array, "*b p e"]:
        """Return the prompts' unit-norm embeddings for cameras, angles in radians (see `view_shares`)."""
        shares = view_shares(azimuth, elevation)
        return safe_normalize(jnp.einsum("...d,dpe->...pe", shares, self.view_embeds))

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
