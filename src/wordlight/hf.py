"""The Flax names that `transformers` dropped in version 5, safe on traced values.

`FlaxCLIPModel`, `AutoProcessor` and `CLIPProcessor` keep the call signatures and output fields of
transformers 4.57, so a JAX training step written for it runs with the two imports changed. Images may be
traced; text is host work.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from wordlight.clip.load import load
from wordlight.clip.model import ClipModel
from wordlight.clip.save import save_folder
from wordlight.errors import WordlightError
from wordlight.hf_base import model_folder, unsupported
from wordlight.hf_config import CLIPConfig
from wordlight.hf_processor import (
    AutoProcessor,
    BatchFeature,
    CLIPImageProcessor,
    CLIPProcessor,
    CLIPTokenizer,
)
from wordlight.numerics import safe_normalize

__all__ = [
    "AutoProcessor",
    "BatchFeature",
    "CLIPImageProcessor",
    "CLIPProcessor",
    "CLIPTokenizer",
    "FlaxCLIPModel",
    "FlaxCLIPOutput",
]

Params = dict[str, Any]


@partial(
    jax.tree_util.register_dataclass,
    data_fields=["logits_per_image", "logits_per_text", "text_embeds", "image_embeds"],
    meta_fields=[],
)
@dataclass(frozen=True)
class FlaxCLIPOutput:
    """What the model returns: a pytree, read by attribute, by key, by position or as a tuple.

    Attributes:
        logits_per_image: `[images, texts]`, exp(logit_scale) times cosines.
        logits_per_text: its transpose.
        text_embeds: `[texts, embed]`, unit norm.
        image_embeds: `[images, embed]`, unit norm.
    """

    logits_per_image: Float[Array, "images texts"]
    logits_per_text: Float[Array, "texts images"]
    text_embeds: Float[Array, "texts embed"]
    image_embeds: Float[Array, "images embed"]

    def keys(self) -> list[str]:
        """Names of the fields."""
        return [field.name for field in fields(self)]

    def values(self) -> list[Array]:
        """The fields, in order."""
        return [getattr(self, name) for name in self.keys()]

    def items(self) -> list[tuple[str, Array]]:
        """Names and fields."""
        return list(zip(self.keys(), self.values(), strict=True))

    def to_tuple(self) -> tuple[Array, ...]:
        """The fields as a tuple."""
        return tuple(self.values())

    def __getitem__(self, key: str | int | slice) -> Any:
        return dict(self.items())[key] if isinstance(key, str) else self.to_tuple()[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def __len__(self) -> int:
        return len(self.keys())

    def __getattr__(self, name: str) -> Any:
        if name in ("text_model_output", "vision_model_output"):
            raise AttributeError(
                f"{name} is not among the outputs: the towers return their pooled embeddings only. Code "
                "that reads hidden states needs them layer by layer. Use text_embeds or image_embeds, or "
                "wordlight.clip's towers."
            )
        raise AttributeError(f"FlaxCLIPOutput has no {name!r}; its fields are {', '.join(self.keys())}.")


class FlaxCLIPModel:
    """A CLIP model under the name and with the calls it had in transformers 4.57.

    Attributes:
        clip: the `ClipModel` that does the work.
    """

    def __init__(self, clip: ClipModel):
        self.clip = clip

    @classmethod
    def from_pretrained(
        cls,
        pretrained_model_name_or_path: str | Path,
        dtype: Any = jnp.float32,
        *,
        revision: str | None = None,
        cache_dir: str | Path | None = None,
        local_files_only: bool = False,
        token: str | bool | None = None,
        subfolder: str = "",
        force_download: bool = False,
        from_pt: bool = True,
        _do_init: bool = True,
    ) -> "FlaxCLIPModel":
        """Load a model from a folder, the Hub, or `"demo"`.

        Args:
            pretrained_model_name_or_path: as in `wordlight.load`.
            dtype: of the weights and of the towers' products, as in `wordlight.load`; embeddings and logits
                stay float32. In transformers the weights stayed float32.
            revision, cache_dir, local_files_only, token: as in `huggingface_hub`.
            subfolder: where the checkpoint lies inside that folder or repository.
            force_download: False only.
            from_pt: whether the weights have PyTorch's names, as every safetensors file of a CLIP model has.
            _do_init: True only; weights for a call of your own are `model.params`.

        Raises:
            WordlightError: the model cannot be found or read, or an option asks for something else.
        """
        if not from_pt:
            raise unsupported("from_pt", from_pt, "only safetensors under PyTorch's names are read")
        if not _do_init:
            raise unsupported("_do_init", _do_init, "a model has its weights, and `model.params` are they")
        folder = model_folder(
            pretrained_model_name_or_path,
            revision=revision,
            cache_dir=cache_dir,
            local_files_only=local_files_only,
            token=token,
            subfolder=subfolder,
            force_download=force_download,
        )
        return cls(load(folder, dtype=dtype))

    def save_pretrained(
        self, save_directory: str | Path, params: Params | None = None, *, push_to_hub: bool = False
    ) -> None:
        """Write `config.json`, `preprocessor_config.json` and `model.safetensors`; see `save_folder`.

        Args:
            save_directory: made if missing. The tokenizer's files are not written.
            params: weights to write in place of the model's own.
            push_to_hub: False only.

        Raises:
            WordlightError: the layout cannot hold the model, or an upload is asked for.
        """
        if push_to_hub:
            raise unsupported("push_to_hub", push_to_hub, "nothing is sent; `hf upload` sends a folder")
        save_folder(Path(save_directory), self._with(params), dtype=self.dtype)

    @property
    def config(self) -> CLIPConfig:
        """The model's sizes under their names in transformers; `model.clip.config` is Wordlight's own."""
        return CLIPConfig(self.clip.config)

    @property
    def dtype(self) -> Any:
        """The type of the weights, which is that of the towers' products."""
        return max(jax.tree.leaves(self.params), key=lambda leaf: leaf.size).dtype

    @property
    def params(self) -> Params:
        """The weights, a pytree; give them to the calls as `params` to keep them out of compiled
        constants."""
        return self.clip.params

    @params.setter
    def params(self, params: Params) -> None:
        self.clip = self._with(params)

    def __call__(
        self,
        input_ids: Any,
        pixel_values: Any,
        attention_mask: Any = None,
        position_ids: Any = None,
        params: Params | None = None,
        dropout_rng: Any = None,
        train: bool = False,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
    ) -> Any:
        """Compare every image with every text.

        Args:
            input_ids: `[texts, length]`.
            pixel_values: `[images, 3, height, width]`, preprocessed; may be traced.
            attention_mask: `[texts, length]`, 1 for tokens that count.
            position_ids: not supported.
            params: weights to use in place of the model's own.
            dropout_rng, train: not supported; CLIP has no dropout.
            output_attentions, output_hidden_states: not supported.
            return_dict: False returns a plain tuple.

        Returns:
            A `FlaxCLIPOutput`, or a tuple of its fields.

        Raises:
            WordlightError: an unsupported option is set, or a shape does not fit.
        """
        _refuse_dropout(dropout_rng, train)
        _refuse_positions(position_ids)
        for name, value in (
            ("output_attentions", output_attentions),
            ("output_hidden_states", output_hidden_states),
        ):
            if value:
                raise unsupported(name, value, "the towers return their pooled embeddings only")
        text_embeds = safe_normalize(self.get_text_features(input_ids, attention_mask, params=params))
        image_embeds = safe_normalize(self.get_image_features(pixel_values, params=params))
        per_image = self._with(params).logits(image_embeds, text_embeds)
        output = FlaxCLIPOutput(per_image, per_image.T, text_embeds, image_embeds)
        return output.to_tuple() if return_dict is False else output

    def get_text_features(
        self,
        input_ids: Any,
        attention_mask: Any = None,
        position_ids: Any = None,
        params: Params | None = None,
        dropout_rng: Any = None,
        train: bool = False,
    ) -> Float[Array, "texts embed"]:
        """Return projected text features, not normalised; arguments as in the call."""
        _refuse_dropout(dropout_rng, train)
        _refuse_positions(position_ids)
        mask = None if attention_mask is None else jnp.asarray(attention_mask)
        return self._with(params).text_features(jnp.asarray(input_ids), mask)

    def get_image_features(
        self, pixel_values: Any, params: Params | None = None, dropout_rng: Any = None, train: bool = False
    ) -> Float[Array, "images embed"]:
        """Return projected image features, not normalised; arguments as in the call."""
        _refuse_dropout(dropout_rng, train)
        pixels = jnp.asarray(pixel_values)
        if pixels.ndim != 4:
            raise WordlightError(
                f"pixel_values of shape {pixels.shape} are not [images, 3, height, width]. A single image, "
                "or images that were not preprocessed, usually look like this. Use the processor's output."
            )
        return self._with(params).image_features(pixels, layout="CHW")

    def _with(self, params: Params | None) -> ClipModel:
        """Return the model with other weights of the same structure."""
        if params is None:
            return self.clip
        ours, theirs = jax.tree.structure(self.clip.params), jax.tree.structure(params)
        if ours != theirs:
            raise WordlightError(
                f"params of structure {theirs} are not the {ours} of this model. They usually come from "
                "transformers' own Flax model, or a part was left out. Start from model.params and change "
                "its leaves."
            )
        return self.clip.replace_params(params)


def _refuse_dropout(dropout_rng: Any, train: bool) -> None:
    if train:
        raise unsupported("train", train, "CLIP has no dropout, so that training and evaluation are the same")
    if dropout_rng is not None:
        raise unsupported("dropout_rng", "a key", "CLIP has no dropout")


def _refuse_positions(position_ids: Any) -> None:
    if position_ids is not None:
        raise unsupported("position_ids", "an array", "tokens are at the positions they are given in")
