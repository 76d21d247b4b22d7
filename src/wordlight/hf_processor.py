"""transformers' CLIP tokenizer and processor, for images that may be traced. Reached through
`wordlight.hf`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import jax.numpy as jnp
import numpy as np

from wordlight.clip.hub import HubOptions
from wordlight.clip.tokenizer import Tokenizer
from wordlight.errors import WordlightError
from wordlight.hf_base import BatchFeature, check_return_tensors, processing_of
from wordlight.hf_images import CLIPImageProcessor

Padding = bool | Literal["longest", "max_length", "do_not_pad"]


class CLIPTokenizer:
    """Text to `input_ids` and `attention_mask`, on the host."""

    def __init__(self, tokenizer: Tokenizer):
        self.tokenizer = tokenizer

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

    def __call__(
        self,
        text: str | Sequence[str],
        *,
        padding: Padding = False,
        truncation: bool | None = None,
        max_length: int | None = None,
        return_tensors: str | None = None,
    ) -> BatchFeature:
        """Tokenise prompts.

        Args:
            text: one prompt or several.
            padding: True or `"longest"` pads to the longest prompt, `"max_length"` to `max_length`.
            truncation: cut prompts that are too long, with a warning; otherwise they are refused.
            max_length: the limit; None is the model's.
            return_tensors: `"jax"`, `"np"`, or None for lists (a flat list for a single prompt).

        Raises:
            WordlightError: a prompt is refused (see `Tokenizer`), or rows of unlike lengths cannot be an
                array.
        """
        check_return_tensors(return_tensors)
        limit = self._limit(max_length)
        rows = self.tokenizer.encode(text, truncate=bool(truncation), limit=limit)
        width = self._width(rows, padding, limit)
        ids = [row + [self.tokenizer.pad_id] * max(width - len(row), 0) for row in rows]
        mask = [[1] * len(row) + [0] * max(width - len(row), 0) for row in rows]
        if return_tensors is None:
            return _lists(ids, mask, single=isinstance(text, str))
        if len({len(row) for row in ids}) > 1:
            raise WordlightError(
                f"Prompts of {sorted({len(row) for row in ids})} tokens cannot be one array. padding is "
                "off, and they are "
                'unlike. Give padding=True, or padding="max_length".'
            )
        array = jnp.asarray if return_tensors == "jax" else np.asarray
        return BatchFeature(
            input_ids=array(np.asarray(ids, np.int32)), attention_mask=array(np.asarray(mask, np.int32))
        )

    def batch_decode(self, ids: Any) -> list[str]:
        """Return the text of every row of ids."""
        return self.tokenizer.decode(ids)

    def _limit(self, max_length: int | None) -> int:
        if max_length is not None and not 2 <= max_length <= self.tokenizer.context_length:
            raise WordlightError(
                f"max_length={max_length} is not between 2 and {self.tokenizer.context_length}. A row holds "
                "at least its start and end, and the text tower has no positions beyond its context. Leave "
                "max_length out."
            )
        return max_length or self.tokenizer.context_length

    def _width(self, rows: list[list[int]], padding: Padding, limit: int) -> int:
        if padding in (False, "do_not_pad"):
            return 0
        if padding == "max_length":
            return limit
        if padding in (True, "longest"):
            return max(map(len, rows))
        raise WordlightError(
            f"padding={padding!r} is unknown. It is probably misspelt. Give True, 'longest', 'max_length' "
            "or False."
        )


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
    ) -> "CLIPProcessor":
        """Load from a folder, the Hub, or `"demo"`, without reading the weights.

        Raises:
            WordlightError: the checkpoint cannot be found or read.
        """
        hub = HubOptions(revision, cache_dir, local_files_only, token)
        image_spec, tokenizer = processing_of(pretrained_model_name_or_path, hub)
        return cls(CLIPImageProcessor(image_spec), None if tokenizer is None else CLIPTokenizer(tokenizer))

    def __call__(
        self,
        text: Any = None,
        images: Any = None,
        *,
        return_tensors: str | None = None,
        padding: Padding = False,
        truncation: bool | None = None,
        max_length: int | None = None,
        do_resize: bool = True,
        do_center_crop: bool = True,
        do_rescale: bool | None = None,
        do_normalize: bool = True,
        input_data_format: str | None = None,
    ) -> BatchFeature:
        """Prepare text, images or both; options as in `CLIPTokenizer` and `CLIPImageProcessor`.

        The two may come in either order, as transformers had both.

        Raises:
            WordlightError: neither is given, or one is refused.
        """
        text, images = _in_order(text, images)
        batch = BatchFeature()
        if text is not None:
            batch |= self._tokenizer()(
                text,
                padding=padding,
                truncation=truncation,
                max_length=max_length,
                return_tensors=return_tensors,
            )
        if images is not None:
            batch |= self.image_processor(
                images,
                return_tensors=return_tensors,
                do_resize=do_resize,
                do_center_crop=do_center_crop,
                do_rescale=do_rescale,
                do_normalize=do_normalize,
                input_data_format=input_data_format,
            )
        return BatchFeature(batch)

    def batch_decode(self, ids: Any) -> list[str]:
        """Return the text of every row of ids."""
        return self._tokenizer().batch_decode(ids)

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


def _lists(ids: list[list[int]], mask: list[list[int]], *, single: bool) -> BatchFeature:
    return BatchFeature(input_ids=ids[0] if single else ids, attention_mask=mask[0] if single else mask)


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
