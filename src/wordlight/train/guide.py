"""From a run's prompt to its guidance: which texts it is held against, and with which loss."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from wordlight.clip.model import ClipModel
from wordlight.data.world.captions import VOCABULARY, claims, contrast_captions, kind_caption, words
from wordlight.data.world.distorted import DISTORTED_CAPTIONS, DISTORTED_WORDS
from wordlight.errors import WordlightError
from wordlight.guidance import Guidance, GuidanceEnsemble, members
from wordlight.guidance.view_dependent import embeds_seen
from wordlight.train.config import RunConfig
from wordlight.viewpoints import VIEW_PHRASES, seen_from

Guide = Guidance | GuidanceEnsemble


@partial(jax.tree_util.register_dataclass, data_fields=["guide", "view_embeds"], meta_fields=[])
@dataclass(frozen=True)
class RunGuide:
    """What looks at a run's views, as a pytree.

    Attributes:
        guide: of the prompt.
        view_embeds: for each member, what a view should show: in colours (0) or in plain grey (1), from the
            front, the side, the back and overhead.
    """

    guide: Guide
    view_embeds: tuple[Float[Array, "2 4 p e"], ...]

    def for_view(
        self, plain: Bool[Array, ""], azimuth: Float[Array, ""], elevation: Float[Array, ""]
    ) -> Guide:
        """Return the guide for a view of the object in plain grey, or in its colours.

        The camera's direction is in radians; see `viewpoints.view_shares`.
        """
        seen = []
        for (member, _), embeds in zip(members(self.guide), self.view_embeds, strict=True):
            around = jnp.where(plain, embeds[1], embeds[0])
            seen.append(replace(member, text_embeds=embeds_seen(around, azimuth, elevation)))
        return seen[0] if isinstance(self.guide, Guidance) else replace(self.guide, guidances=tuple(seen))


def make_guide(models: Sequence[ClipModel], config: RunConfig) -> RunGuide:
    """Embed the run's prompt for every model; several of them are one guide, each with an equal say.

    Raises:
        WordlightError: as `make_guidance` does for one of them.
    """
    guidances = [make_guidance(model, config) for model in models]
    embeds = tuple(embed_views(model, config) for model in models)
    if len(guidances) == 1:
        return RunGuide(guidances[0], embeds)
    shares = [1 / len(guidances)] * len(guidances)
    return RunGuide(GuidanceEnsemble.from_guidances(guidances, weights=shares), embeds)


def embed_views(model: ClipModel, config: RunConfig) -> Float[Array, "2 4 p e"]:
    """Embed the prompt and what it is without its colours, each as seen from four sides.

    All sides read the same where the configuration says so, where the prompt names one itself, and where the
    model cannot read the words for them.
    """
    prompts = (config.prompt, plain_prompt(model, config.prompt))
    texts = [seen_from(prompt, phrase) for prompt in prompts for phrase in VIEW_PHRASES]
    named = any(phrase in config.prompt.lower() for phrase in VIEW_PHRASES)
    if named or not config.sides or not can_read(model, texts):
        texts = prompts
    embeds = model.encode_text(texts)
    width = embeds.shape[-1]
    return jnp.broadcast_to(
        embeds.reshape(len(prompts), -1, 1, width), (len(prompts), len(VIEW_PHRASES), 1, width)
    )


def can_read(model: ClipModel, texts: Sequence[str]) -> bool:
    """Return whether the model knows all words of the texts, and none is too long for it."""
    try:
        model.tokenize(texts)
    except WordlightError:
        return False
    return True


def plain_prompt(model: ClipModel, prompt: str) -> str:
    """Return what an object without its colours shows: its kind, where the model is of the embedded world."""
    kind, _ = claims(prompt)
    return kind_caption(kind) if kind and knows_only_the_world(model) else prompt


def make_guidance(model: ClipModel, config: RunConfig) -> Guidance:
    """Embed the run's prompt and what it is held against.

    A model of the embedded world's vocabulary sees the prompt against every caption of that world that is not
    true of it and, where it has the words, against objects put together wrongly. Other models see it against
    the given negatives; without any, the softmax loss gives way to the cosine.

    Raises:
        WordlightError: the prompt is empty, or the model does not know a word of it or of the negatives.
    """
    negatives = contrast_texts(model, config)
    loss = config.guidance.loss
    if loss == "directional":
        raise WordlightError(
            "A run was configured with the directional loss. It compares a change of the image with a change "
            "of the text, and an object that is made from nothing has no source. Use softmax, sigmoid, "
            "cosine or spherical."
        )
    if loss == "softmax" and not negatives:
        loss = "cosine"
    guidance = replace(config.guidance, loss=loss)
    return Guidance.from_prompts(model, config.prompt, negatives=negatives, config=guidance)


def contrast_texts(model: ClipModel, config: RunConfig) -> tuple[str, ...]:
    """Return the given negatives and, for a model of the embedded world, the captions that are not true."""
    given = config.negatives or ()
    if not knows_only_the_world(model):
        return given
    others = contrast_captions(config.prompt)
    wanted = any(word in DISTORTED_WORDS for word in words(config.prompt))
    if not wanted and can_read(model, DISTORTED_CAPTIONS):
        others = [*others, *DISTORTED_CAPTIONS]
    return tuple(dict.fromkeys((*given, *others)))


def knows_only_the_world(model: ClipModel) -> bool:
    """Return whether the model reads the embedded world's words and no others."""
    tokenizer = model.tokenizer
    if tokenizer is None or tokenizer.unknown_id is None:
        return False
    return set(VOCABULARY) <= set(tokenizer.words)
