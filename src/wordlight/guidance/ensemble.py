"""Several guidances, usually of several models, that look at the same image."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from wordlight.errors import WordlightError
from wordlight.guidance.guidance import Guidance, GuidanceMetrics
from wordlight.guidance.targets import positive_weights


class EnsembleMetrics(NamedTuple):
    """What an ensemble saw.

    Attributes:
        similarity: mean of the members' similarities, weighted as their losses are.
        negative_similarity: the members' highest.
        members: each member's own metrics.
    """

    similarity: Float[Array, ""]
    negative_similarity: Float[Array, ""]
    members: tuple[GuidanceMetrics, ...]


@partial(jax.tree_util.register_dataclass, data_fields=["guidances", "weights"], meta_fields=[])
@dataclass(frozen=True)
class GuidanceEnsemble:
    """A weighted sum of guidances, as a pytree that is called like one of them.

    One model can be fooled by a picture that means nothing to people; several of them agree on it less often.

    Attributes:
        guidances: the members, of any models, losses and views.
        weights: `[m]`, of the members' losses.
    """

    guidances: tuple[Guidance, ...]
    weights: Float[Array, "m"]

    @classmethod
    def from_guidances(
        cls, guidances: Sequence[Guidance], *, weights: Sequence[float] | None = None
    ) -> "GuidanceEnsemble":
        """Put guidances together.

        Args:
            guidances: at least one. They must read images alike: same value range and layout.
            weights: one positive number each, one if None. They multiply the losses as they are: a softmax
                loss has another scale than a cosine.

        Raises:
            WordlightError: there is none, they read images differently, or weights do not fit.
        """
        read = {(member.config.value_range, member.config.layout) for member in guidances}
        if len(read) != 1:
            raise WordlightError(
                f"The guidances of an ensemble read images as {sorted(read)}, not in one way. They all see "
                "the same image. Give at least one guidance, all with the same value_range and layout."
            )
        return cls(tuple(guidances), positive_weights(weights, len(guidances), "guidances"))

    def __call__(
        self, image: Array, key: PRNGKeyArray, *, source: Array | None = None
    ) -> tuple[Float[Array, ""], EnsembleMetrics]:
        """Return the weighted sum of the members' losses, and metrics.

        Args:
            image: as in `Guidance.__call__`.
            key: split between the members, so that each draws views of its own.
            source: for the members with a directional loss; the others do not see it.

        Raises:
            WordlightError: as a member does, or a source came and no member measures a change.
        """
        edits = [member.config.loss == "directional" for member in self.guidances]
        if source is not None and not any(edits):
            raise WordlightError(
                "A source image came to an ensemble in which no guidance measures a change. Only the "
                "directional loss compares the two. Drop the source, or add a Guidance.from_edit."
            )
        keys = jax.random.split(key, len(self.guidances))
        seen = [
            member(image, member_key, source=source if edit else None)
            for member, member_key, edit in zip(self.guidances, keys, edits, strict=True)
        ]
        losses, metrics = zip(*seen, strict=True)
        return jnp.stack(losses) @ self.weights, self._metrics(metrics)

    def _metrics(self, members: tuple[GuidanceMetrics, ...]) -> EnsembleMetrics:
        similarities = jnp.stack([member.similarity for member in members])
        weights = jax.lax.stop_gradient(self.weights)
        against = jnp.stack([member.negative_similarity for member in members])
        return EnsembleMetrics(similarities @ weights / jnp.sum(weights), jnp.max(against), members)


def members(guide: Guidance | GuidanceEnsemble) -> tuple[tuple[Guidance, Float[Array, ""]], ...]:
    """Return every guidance with its share of the whole; the shares sum to one."""
    if isinstance(guide, Guidance):
        return ((guide, jnp.ones(())),)
    shares = guide.weights / jnp.sum(guide.weights)
    return tuple((member, shares[i]) for i, member in enumerate(guide.guidances))
