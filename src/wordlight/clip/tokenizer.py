"""Text to token ids, on the host. Tokenising happens once, before anything is traced."""

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Int

from wordlight.clip.text_cleaning import Cleaning, clean
from wordlight.errors import WordlightError

# The library behind tokenizers is loaded with the first of them, so that importing this package stays quick.
if TYPE_CHECKING:
    from wordlight.clip.tokenizer_files import TokenizerSource

_SHOWN_WORDS = 120


class Tokens(NamedTuple):
    """Token ids as a text tower takes them.

    Attributes:
        ids: int32 `[n, context_length]`.
        mask: int32 `[n, context_length]`, 1 for tokens of the prompt, its start and its end, 0 for padding.
    """

    ids: Int[np.ndarray, "n length"]
    mask: Int[np.ndarray, "n length"]


@dataclass(frozen=True)
class TextRules:
    """What a model's configuration says about its text beyond the tokenizer's own files.

    Attributes:
        cleaning: replaces the one that the tokenizer's files imply; None keeps it.
        drop_separator: the last token is turned into padding.
        pad_id: replaces the padding that the tokenizer's files name; None keeps it.
    """

    cleaning: Cleaning | None = None
    drop_separator: bool = False
    pad_id: int | None = None


@dataclass(frozen=True)
class Tokenizer:
    """Text to token ids; hashable, and equal to another one loaded from the same files.

    Attributes:
        context_length: how many tokens the text tower takes, start and end included.
        pad_id: what fills the rest of a row.
        end_id: the last token of every prompt; None where the checkpoint adds none.
        unknown_id: what words outside a closed vocabulary become; None where any text can be written.
        digest: stands for the vocabulary in comparisons.
        backend: the tokenizer of the `tokenizers` library.
        cleaning: what happens to a text before the backend sees it.
        dropped_id: an id that becomes `pad_id`, as CLIPA's separator does; None for no such id.
        pads_left: whether padding comes before the prompt.
    """

    context_length: int
    pad_id: int
    end_id: int | None
    unknown_id: int | None
    digest: str
    backend: Any = field(repr=False, compare=False)
    cleaning: Cleaning = "none"
    dropped_id: int | None = None
    pads_left: bool = False

    @classmethod
    def find(
        cls, folder: str | Path, context_length: int | None = None, *, rules: "TextRules | None" = None
    ) -> "Tokenizer | None":
        """Load the tokenizer in a model folder, or return None where there is none.

        Read are `tokenizer.json`, else `vocab.json` with `merges.txt`, else OpenAI's
        `bpe_simple_vocab_16e6.txt.gz`, and beside them `tokenizer_config.json` and `special_tokens_map.json`.

        Args:
            folder: the model folder.
            context_length: what the text tower takes; None reads `model_max_length`.
            rules: what the model's own configuration says about its text.

        Raises:
            WordlightError: a file is damaged, or the length is nowhere to be found.
        """
        from wordlight.clip.tokenizer_files import read_tokenizer_files

        source = read_tokenizer_files(Path(folder))
        return None if source is None else cls.from_source(source, context_length, rules=rules)

    @classmethod
    def from_folder(cls, folder: str | Path, context_length: int | None = None) -> "Tokenizer":
        """Load the tokenizer in a model folder, as `find` does, but refuse a folder without one."""
        tokenizer = cls.find(folder, context_length)
        if tokenizer is None:
            raise WordlightError(
                f"There are no tokenizer files in {folder}. Checkpoints that were saved from the model "
                "object alone lack them. Add tokenizer.json, or vocab.json with merges.txt, from the "
                "repository of the checkpoint."
            )
        return tokenizer

    @classmethod
    def from_source(
        cls,
        source: "TokenizerSource",
        context_length: int | None = None,
        *,
        rules: "TextRules | None" = None,
    ) -> "Tokenizer":
        """Make a tokenizer from files that were read."""
        rules = rules or TextRules()
        length = context_length or source.context_length
        if length is None:
            raise WordlightError(
                "The tokenizer's files name no model_max_length, so the number of tokens is unknown. They "
                "were saved without their tokenizer_config.json. Add that file, or give context_length."
            )
        frame = source.backend.encode("").ids
        end_id = frame[-1] if frame else None
        pad_id = next((i for i in (rules.pad_id, source.pad_id, end_id) if i is not None), 0)
        return cls(
            context_length=length,
            pad_id=pad_id,
            end_id=end_id,
            unknown_id=source.unknown_id,
            digest=source.digest,
            backend=source.backend,
            cleaning=rules.cleaning or source.cleaning,
            dropped_id=end_id if rules.drop_separator else None,
            pads_left=source.pads_left,
        )

    def __call__(self, prompts: str | Sequence[str], *, truncate: bool = False) -> Tokens:
        """Turn prompts into ids and mask, padded to `context_length`.

        Args:
            prompts: one prompt or several. The empty string is a prompt of start and end alone.
            truncate: cut a prompt that is too long, keep the end token last, and warn; otherwise refuse it.

        Raises:
            WordlightError: there is no prompt, it is not text, it is too long, or it holds words outside a
                closed vocabulary.
        """
        rows = self.encode(prompts, truncate=truncate)
        ids = np.full((len(rows), self.context_length), self.pad_id, np.int32)
        mask = np.zeros_like(ids)
        for row, tokens in enumerate(rows):
            start = self.context_length - len(tokens) if self.pads_left else 0
            place = slice(start, start + len(tokens))
            ids[row, place], mask[row, place] = tokens, 1
        if self.dropped_id is not None:
            ids[ids == self.dropped_id] = self.pad_id
        return Tokens(ids, mask)

    def encode(
        self, prompts: str | Sequence[str], *, truncate: bool = False, limit: int | None = None
    ) -> list[list[int]]:
        """Return the ids of every prompt without padding, at most `limit` (else `context_length`) of them.

        Raises:
            WordlightError: as in `__call__`.
        """
        texts = [clean(text, self.cleaning) for text in _texts(prompts)]
        limit = self.context_length if limit is None else min(limit, self.context_length)
        encodings = self.backend.encode_batch(texts)
        if self.unknown_id is not None:
            self._refuse_unknown(texts, encodings)
        return [self._fit(text, e.ids, limit, truncate) for text, e in zip(texts, encodings, strict=True)]

    def decode(self, ids: ArrayLike | Sequence[int] | Sequence[Sequence[int]]) -> list[str]:
        """Return the text of every row of ids, up to its end token and without special tokens."""
        rows = np.atleast_2d(np.asarray(ids))
        return [self._decode_row([int(i) for i in row]) for row in rows]

    @property
    def words(self) -> list[str]:
        """The words of a closed vocabulary, sorted; the tokens of an open one."""
        special = {token.content for token in self.backend.get_added_tokens_decoder().values()}
        return sorted(set(self.backend.get_vocab()) - special)

    def _decode_row(self, ids: list[int]) -> str:
        if self.end_id in ids:
            ids = ids[: ids.index(self.end_id)]
        return self.backend.decode(ids, skip_special_tokens=True).replace("</w>", " ").strip()

    def _fit(self, text: str, ids: list[int], limit: int, truncate: bool) -> list[int]:
        if len(ids) <= limit:
            return list(ids)
        if not truncate:
            raise WordlightError(
                f"The prompt {_shorten(text)!r} has {len(ids)} tokens, start and end included, and the "
                f"limit is {limit}. CLIP's text tower reads a sentence or two. Shorten the prompt, or split "
                "it into several; in Python, truncate=True cuts it."
            )
        warnings.warn(
            f"The prompt {_shorten(text)!r} has {len(ids)} tokens and was cut to the limit of {limit}.",
            stacklevel=4,
        )
        return list(ids[:limit]) if self.end_id is None else [*ids[: limit - 1], self.end_id]

    def _refuse_unknown(self, texts: list[str], encodings: list[Any]) -> None:
        unknown = {
            text[start:stop]
            for text, encoding in zip(texts, encodings, strict=True)
            for token, (start, stop) in zip(encoding.ids, encoding.offsets, strict=True)
            if token == self.unknown_id
        }
        if not unknown:
            return
        words = self.words
        more = (
            f" and {len(words) - _SHOWN_WORDS} more (see tokenizer.words)"
            if len(words) > _SHOWN_WORDS
            else ""
        )
        raise WordlightError(
            f"Unknown {'words' if len(unknown) > 1 else 'word'} {', '.join(map(repr, sorted(unknown)))}. "
            "This model was trained on a closed vocabulary and cannot read any other word. It knows: "
            f"{', '.join(words[:_SHOWN_WORDS])}{more}. Use these words, or load a model with an open "
            "vocabulary, such as wordlight.load('openai/clip-vit-base-patch32') (on the command line "
            "--model openai/clip-vit-base-patch32)."
        )


def _texts(prompts: str | Sequence[str]) -> list[str]:
    single = isinstance(prompts, str) or not isinstance(prompts, Iterable)
    texts: list[Any] = [prompts] if single else list(prompts)
    wrong = [text for text in texts if not isinstance(text, str)]
    if wrong:
        raise WordlightError(
            f"A prompt is {wrong[0]!r} ({type(wrong[0]).__name__}), not a string. Prompts are one string or "
            "a flat list of them; ids go to encode_tokens. Convert it with str, or flatten the list."
        )
    if not texts:
        raise WordlightError(
            "There is no prompt: the list is empty. A file of prompts may have been empty, or a filter "
            "dropped them all. Give at least one string."
        )
    for text in texts:
        _refuse_surrogates(text)
    return texts


def _refuse_surrogates(text: str) -> None:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise WordlightError(
            f"The prompt {_shorten(text)!r} holds half of a character ({error.reason}). It was cut inside an "
            "emoji, or read from a file in another encoding. Read the file as UTF-8, or drop that character."
        ) from error


def _shorten(text: str, length: int = 60) -> str:
    return text if len(text) <= length else text[: length - 3] + "..."
