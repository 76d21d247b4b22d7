"""transformers' CLIP tokenizer and processor, for images that may be traced. Reached through
`wordlight.hf`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import jax.numpy as jnp
import numpy as np

from wordlight.clip.tokenizer import Tokenizer
from wordlight.errors import WordlightError
from wordlight.hf_base import BatchFeature, check_return_tensors, processing_of, unsupported
from wordlight.hf_images import CLIPImageProcessor

Padding = bool | Literal["longest", "max_length", "do_not_pad"]
Truncation = bool | Literal["longest_first", "only_first", "do_not_truncate"]
Options = Mapping[str, Any]


class CLIPTokenizer:
    """Text to `input_ids` and `attention_mask`, on the host.

    Attributes:
        tokenizer: the `Tokenizer` that does the work.
        gives_mask: whether an `attention_mask` comes along where nothing is said.
        tidies_spaces: whether decoding takes out spaces before punctuation.
    """

    def __init__(self, tokenizer: Tokenizer, *, gives_mask: bool = True, tidies_spaces: bool = False):
        self.tokenizer = tokenizer
        self.gives_mask = gives_mask
        self.tidies_spaces = tidies_spaces

    @classmethod
    def from_pretrained(cls, pretrained_model_name_or_path: str | Path, **options: Any) -> "CLIPTokenizer":
        """Load as `CLIPProcessor.from_pretrained` does; a checkpoint without tokenizer files is refused."""
        processor = CLIPProcessor.from_pretrained(pretrained_model_name_or_path, **options)
        if processor.tokenizer is None:
            raise _no_tokenizer()
        return processor.tokenizer

    @property
    def model_max_length(self) -> int:
        """How many tokens the text tower takes."""
        return self.tokenizer.context_length

    @property
    def pad_token_id(self) -> int:
        """The id that fills a row up."""
        return self.tokenizer.pad_id

    @property
    def eos_token_id(self) -> int | None:
        """The last id of every prompt; None where the checkpoint adds none."""
        return self.tokenizer.end_id

    def __call__(
        self,
        text: str | Sequence[str],
        *,
        padding: Padding = False,
        truncation: Truncation | None = None,
        max_length: int | None = None,
        return_tensors: str | None = None,
        return_attention_mask: bool | None = None,
        padding_side: Literal["left", "right"] | None = None,
        pad_to_multiple_of: int | None = None,
        add_special_tokens: bool = True,
    ) -> BatchFeature:
        """Tokenise prompts.

        Args:
            text: one prompt or several.
            padding: True or `"longest"` pads to the longest prompt, `"max_length"` to `max_length`.
            truncation: cut prompts that are too long, with a warning; otherwise they are refused.
            max_length: the limit; None is the model's.
            return_tensors: `"jax"`, `"np"`, or None for lists (a flat list for a single prompt).
            return_attention_mask: None does what the checkpoint's files say.
            padding_side: `"left"` or `"right"`; None is the checkpoint's.
            pad_to_multiple_of: makes padded rows longer, up to a multiple of this.
            add_special_tokens: True only, as text towers look for the end of a prompt.

        Raises:
            WordlightError: a prompt is refused (see `Tokenizer`), rows of unlike lengths cannot be an array,
                or an option is unknown.
        """
        check_return_tensors(return_tensors)
        if not add_special_tokens:
            raise unsupported("add_special_tokens", False, "text towers look for the end of a prompt")
        limit = self._limit(max_length)
        rows = self.tokenizer.encode(text, truncate=_truncates(truncation), limit=limit)
        width = _multiple(_width(rows, padding, limit), pad_to_multiple_of)
        batch = self._padded(rows, width, left=self._pads_left(padding_side))
        if not (self.gives_mask if return_attention_mask is None else return_attention_mask):
            del batch["attention_mask"]
        if return_tensors is None:
            return BatchFeature({k: v[0] for k, v in batch.items()} if isinstance(text, str) else batch)
        return _arrays(batch, return_tensors)

    def decode(self, token_ids: Any, *, skip_special_tokens: bool = False) -> str:
        """Return the text of one row of ids, as transformers' fast tokenizers write it."""
        ids = [int(i) for i in np.atleast_1d(np.asarray(token_ids))]
        text = self.tokenizer.backend.decode(ids, skip_special_tokens=skip_special_tokens)
        suffix = getattr(self.tokenizer.backend.model, "end_of_word_suffix", None)
        text = text.replace(suffix, " ").strip() if suffix else text
        return _tidied(text) if self.tidies_spaces else text

    def batch_decode(self, sequences: Any, *, skip_special_tokens: bool = False) -> list[str]:
        """Return the text of every row of ids."""
        return [self.decode(row, skip_special_tokens=skip_special_tokens) for row in sequences]

    def _limit(self, max_length: int | None) -> int:
        if max_length is not None and not 2 <= max_length <= self.tokenizer.context_length:
            raise WordlightError(
                f"max_length={max_length} is not between 2 and {self.tokenizer.context_length}. A row holds "
                "at least its start and end, and the text tower has no positions beyond its context. Leave "
                "max_length out."
            )
        return max_length or self.tokenizer.context_length

    def _pads_left(self, side: str | None) -> bool:
        if side not in (None, "left", "right"):
            raise WordlightError(
                f"padding_side={side!r} is neither 'left' nor 'right'. It is probably misspelt. Leave it out "
                "for the checkpoint's own."
            )
        return self.tokenizer.pads_left if side is None else side == "left"

    def _padded(self, rows: list[list[int]], width: int, *, left: bool) -> dict[str, list[list[int]]]:
        """Return ids and mask, rows filled up to a width."""
        pad, dropped = self.tokenizer.pad_id, self.tokenizer.dropped_id
        rows = [[pad if i == dropped else i for i in row] for row in rows]
        fills = [max(width - len(row), 0) for row in rows]

        def filled(row: list[int], fill: list[int]) -> list[int]:
            return fill + row if left else row + fill

        return {
            "input_ids": [filled(row, [pad] * n) for row, n in zip(rows, fills, strict=True)],
            "attention_mask": [filled([1] * len(r), [0] * n) for r, n in zip(rows, fills, strict=True)],
        }


class CLIPProcessor:
    """Text and images in one call."""

    def __init__(self, image_processor: CLIPImageProcessor, tokenizer: CLIPTokenizer | None):
        self.image_processor = image_processor
        self.tokenizer = tokenizer

    @classmethod
    def from_pretrained(
        cls,
        pretrained_model_name_or_path: str | Path,
        *,
        revision: str | None = None,
        cache_dir: str | Path | None = None,
        local_files_only: bool = False,
        token: str | bool | None = None,
        subfolder: str = "",
        force_download: bool = False,
        use_fast: bool | None = None,
    ) -> "CLIPProcessor":
        """Load from a folder, the Hub, or `"demo"`, without reading the weights.

        Args:
            pretrained_model_name_or_path: as in `wordlight.load`.
            revision, cache_dir, local_files_only, token: as in `huggingface_hub`.
            subfolder: where the checkpoint lies inside that folder or repository.
            force_download: False only.
            use_fast: whose rules place an odd padding, torchvision's or PIL's; None is what the files say.
                It makes no difference for text, nor for folders in OpenCLIP layout.

        Raises:
            WordlightError: the checkpoint cannot be found or read, or an option is not supported.
        """
        found = processing_of(
            pretrained_model_name_or_path,
            revision=revision,
            cache_dir=cache_dir,
            local_files_only=local_files_only,
            token=token,
            subfolder=subfolder,
            force_download=force_download,
            use_fast=use_fast,
        )
        images, text = CLIPImageProcessor(found.image_spec), found.tokenizer
        if text is None:
            return cls(images, None)
        return cls(
            images, CLIPTokenizer(text, gives_mask=found.gives_mask, tidies_spaces=found.tidies_spaces)
        )

    def __call__(
        self,
        text: Any = None,
        images: Any = None,
        *,
        return_tensors: str | None = None,
        padding: Padding = False,
        truncation: Truncation | None = None,
        max_length: int | None = None,
        return_attention_mask: bool | None = None,
        padding_side: Literal["left", "right"] | None = None,
        pad_to_multiple_of: int | None = None,
        add_special_tokens: bool = True,
        do_resize: bool = True,
        do_center_crop: bool = True,
        do_rescale: bool | None = None,
        do_normalize: bool = True,
        input_data_format: str | None = None,
        text_kwargs: Options | None = None,
        images_kwargs: Options | None = None,
    ) -> BatchFeature:
        """Prepare text, images or both; options as in `CLIPTokenizer` and `CLIPImageProcessor`.

        The two may come in either order, as transformers had both. What stands in `text_kwargs` and
        `images_kwargs` wins over the same option outside.

        Raises:
            WordlightError: neither is given, or one is refused.
        """
        text, images = _in_order(text, images)
        batch = BatchFeature()
        if text is not None:
            options: dict[str, Any] = {
                "padding": padding,
                "truncation": truncation,
                "max_length": max_length,
                "return_tensors": return_tensors,
                "return_attention_mask": return_attention_mask,
                "padding_side": padding_side,
                "pad_to_multiple_of": pad_to_multiple_of,
                "add_special_tokens": add_special_tokens,
            }
            batch |= self._tokenizer()(text, **(options | dict(text_kwargs or {})))
        if images is not None:
            options = {
                "return_tensors": return_tensors,
                "do_resize": do_resize,
                "do_center_crop": do_center_crop,
                "do_rescale": do_rescale,
                "do_normalize": do_normalize,
                "input_data_format": input_data_format,
            }
            batch |= self.image_processor(images, **(options | dict(images_kwargs or {})))
        return BatchFeature(batch)

    def decode(self, token_ids: Any, *, skip_special_tokens: bool = False) -> str:
        """Return the text of one row of ids."""
        return self._tokenizer().decode(token_ids, skip_special_tokens=skip_special_tokens)

    def batch_decode(self, sequences: Any, *, skip_special_tokens: bool = False) -> list[str]:
        """Return the text of every row of ids."""
        return self._tokenizer().batch_decode(sequences, skip_special_tokens=skip_special_tokens)

    def _tokenizer(self) -> CLIPTokenizer:
        if self.tokenizer is None:
            raise _no_tokenizer()
        return self.tokenizer


class AutoProcessor:
    """The name most programs load a processor by."""

    @classmethod
    def from_pretrained(cls, pretrained_model_name_or_path: str | Path, **options: Any) -> CLIPProcessor:
        """Return a `CLIPProcessor`, loaded as its `from_pretrained` does."""
        return CLIPProcessor.from_pretrained(pretrained_model_name_or_path, **options)


def _truncates(truncation: Truncation | None) -> bool:
    if truncation in (None, False, "do_not_truncate"):
        return False
    if truncation in (True, "longest_first", "only_first"):
        return True
    raise WordlightError(
        f"truncation={truncation!r} is unknown. It is probably misspelt. Give True, 'longest_first' or False."
    )


def _width(rows: list[list[int]], padding: Padding, limit: int) -> int:
    if padding in (False, "do_not_pad"):
        return 0
    if padding == "max_length":
        return limit
    if padding in (True, "longest"):
        return max(map(len, rows))
    raise WordlightError(
        f"padding={padding!r} is unknown. It is probably misspelt. Give True, 'longest', 'max_length' or "
        "False."
    )


def _multiple(width: int, step: int | None) -> int:
    if step is not None and step < 1:
        raise WordlightError(
            f"pad_to_multiple_of={step} is not a number above 0. Lengths are multiples of it. Leave it out."
        )
    return width if step is None else -(-width // step) * step


def _arrays(batch: dict[str, list[list[int]]], return_tensors: str) -> BatchFeature:
    lengths = sorted({len(row) for row in batch["input_ids"]})
    if len(lengths) > 1:
        raise WordlightError(
            f"Prompts of {lengths} tokens cannot be one array. padding is off, and they are unlike. Give "
            'padding=True, or padding="max_length".'
        )
    array = jnp.asarray if return_tensors == "jax" else np.asarray
    return BatchFeature({name: array(np.asarray(rows, np.int32)) for name, rows in batch.items()})


def _tidied(text: str) -> str:
    """Take out the spaces that transformers takes out, in its order."""
    for mark in (".", "?", "!", ","):
        text = text.replace(f" {mark}", mark)
    text = text.replace(" ' ", "'")
    for ending in ("n't", "'m", "'s", "'ve", "'re"):
        text = text.replace(f" {ending}", ending)
    return text


def _in_order(text: Any, images: Any) -> tuple[Any, Any]:
    if text is None and images is None:
        raise WordlightError(
            "The processor got neither text nor images. A variable may have been None. Give text=, images= "
            "or both."
        )
    swapped = (images is not None and _is_text(images)) or (images is None and not _is_text(text))
    return (images, text) if swapped else (text, images)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) or (
        isinstance(value, list | tuple) and (not value or isinstance(value[0], str))
    )


def _no_tokenizer() -> WordlightError:
    return WordlightError(
        "This checkpoint has no tokenizer files, so it cannot read text. They were not saved with the "
        "model. Add tokenizer.json, or vocab.json with merges.txt, to its folder, or use images only."
    )
