"""What a loss needs of its targets, its model and its images, refused before work starts."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from wordlight.clip.model import ClipModel
from wordlight.errors import WordlightError
from wordlight.guidance.config import GuidanceConfig


def check_model(model: Any) -> None:
    """Refuse what is no model, such as its name."""
    if not isinstance(model, ClipModel):
        raise WordlightError(
            f"The model is a {type(model).__name__} ({str(model)[:60]!r}). Its name was probably passed. "
            "Load it first, wl.load(name)."
        )


def check_key(key: Any) -> None:
    """Refuse what no views can be drawn from."""
    dtype = getattr(key, "dtype", None)
    typed = dtype is not None and jnp.issubdtype(dtype, jax.dtypes.prng_key)
    if not typed and (dtype != jnp.uint32 or key.shape[-1:] != (2,)):
        raise WordlightError(
            f"The key is a {type(key).__name__} ({str(key)[:60]}). The configuration asks for random "
            "views, which are drawn from a key of JAX. Give jax.random.key(seed), another one for each step."
        )


def check_prompt_loss(model: ClipModel, negatives: Sequence[str], config: GuidanceConfig) -> None:
    """Refuse a loss that prompts and negatives are not enough for."""
    if config.loss == "softmax" and not negatives:
        raise WordlightError(
            "The softmax loss has no negatives, so it is always zero. It makes prompts win against other "
            "texts. Give negatives, or use the cosine loss."
        )
    if config.loss == "directional":
        raise WordlightError(
            "The directional loss needs a source, and prompts alone have none. It compares the change of the "
            "image with the change of the text. Use Guidance.from_edit, which takes both, or another loss."
        )
    if config.loss == "sigmoid":
        logit_bias(model)


def logit_bias(model: ClipModel) -> Float[Array, ""]:
    """Return the bias of the sigmoid loss; refuse a model that was not trained with one."""
    if "logit_bias" not in model.params:
        raise WordlightError(
            "The sigmoid loss needs a logit bias, and this model has none. It was trained with a softmax "
            "over a batch, as CLIP is, not with pairs, as SigLIP is. Use the softmax loss with negatives, or "
            "a SigLIP model."
        )
    return model.params["logit_bias"]


def check_image_loss(config: GuidanceConfig) -> None:
    """Refuse a loss that is for texts only."""
    if config.loss not in ("cosine", "spherical"):
        raise WordlightError(
            f"Target images do not go with the {config.loss} loss. Its temperature is trained on images with "
            "texts, or it starts from a source text; images are far closer to each other than to texts. Use "
            "the cosine or spherical loss, or one guidance for each in a GuidanceEnsemble."
        )


def check_edit(prompts: Sequence[str], source_prompts: Sequence[str], config: GuidanceConfig) -> None:
    """Refuse another loss, source prompts that do not pair up, and edits that change nothing."""
    if config.loss != "directional":
        raise WordlightError(
            f"An edit was given with the {config.loss} loss, which has no use for a source. The "
            'configuration probably left the loss at its default. Set loss="directional", or use '
            "Guidance.from_prompts."
        )
    if len(source_prompts) != len(prompts):
        raise WordlightError(
            f"{len(source_prompts)} source prompts do not go with {len(prompts)} prompts. Every prompt is "
            "the edit of one source. Give one source prompt for all, or one for each."
        )
    for after, before in zip(prompts, source_prompts, strict=True):
        if after.lower().split() == before.lower().split():
            raise WordlightError(
                f"The edit from {before!r} to {after!r} changes nothing, so it has no direction. The same "
                "text was probably passed twice. Say what the source shows, and what it should become."
            )


def check_viewed(image: Array) -> None:
    """Refuse images that no views can be cut from."""
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


def matching_source(source: Array, image: Array) -> Array:
    """Return the source with the image's leading axes; its height and width may be others."""
    lead = image.shape[:-3]
    own = source.shape[:-3]
    fits = len(own) <= len(lead) and all(a in (1, b) for a, b in zip(own[::-1], lead[::-1], strict=False))
    if source.ndim < 3 or not fits:
        raise WordlightError(
            f"A source of shape {source.shape} does not go with images of shape {image.shape}. The images "
            "before an edit are one, or one for each of those after it. Give the same leading axes."
        )
    return jnp.broadcast_to(source, (*lead, *source.shape[-3:]))
