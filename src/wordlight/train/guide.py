"""From a run's prompt to its guidance: which texts it is held against, and with which loss."""

from collections.abc import Sequence
from dataclasses import replace

from wordlight.clip.model import ClipModel
from wordlight.data.world.captions import VOCABULARY, contrast_captions
from wordlight.errors import WordlightError
from wordlight.guidance import Guidance, GuidanceEnsemble
from wordlight.train.config import RunConfig

Guide = Guidance | GuidanceEnsemble


def make_guide(models: Sequence[ClipModel], config: RunConfig) -> Guide:
    """Embed the run's prompt for every model; several of them are one guide, each with an equal say.

    Raises:
        WordlightError: as `make_guidance` does for one of them.
    """
    guidances = [make_guidance(model, config) for model in models]
    if len(guidances) == 1:
        return guidances[0]
    shares = [1 / len(guidances)] * len(guidances)
    return GuidanceEnsemble.from_guidances(guidances, weights=shares)


def make_guidance(model: ClipModel, config: RunConfig) -> Guidance:
    """Embed the run's prompt and what it is held against.

    A model of the embedded world's vocabulary sees the prompt against every caption of that world that is not
    true of it. Other models see it against the given negatives; without any, the softmax loss gives way to
    the cosine.

    Raises:
        WordlightError: the prompt is empty, or the model does not know a word of it or of the negatives.
    """
    negatives = contrast_texts(model, config)
    loss = config.guidance.loss
    if loss == "directional":
        raise WordlightError(
            "A run was configured with the directional loss. It compares a change of the image with a change "
            "of the text, and an object that is made from nothing has no source. Use softmax, sigmoid, cosine "
            "or spherical."
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
    others = (text for text in contrast_captions(config.prompt) if text != config.prompt.strip().lower())
    return tuple(dict.fromkeys((*given, *others)))


def knows_only_the_world(model: ClipModel) -> bool:
    """Return whether the model reads the embedded world's words and no others."""
    tokenizer = model.tokenizer
    if tokenizer is None or tokenizer.unknown_id is None:
        return False
    return set(VOCABULARY) <= set(tokenizer.words)
