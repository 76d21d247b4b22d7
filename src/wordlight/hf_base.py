"""What the processors share: their result, and reading a checkpoint's processing files without its
weights."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import jax

from wordlight.clip.checkpoint_files import read_json
from wordlight.clip.hub import HubOptions, find_folder
from wordlight.clip.image_spec import ImageSpec
from wordlight.clip.processing import Processing, read_processing
from wordlight.clip.tokenizer import Tokenizer
from wordlight.errors import WordlightError


@jax.tree_util.register_pytree_with_keys_class
class BatchFeature(dict[str, Any]):
    """A dict whose entries are attributes too, and a pytree; goes into the model with `**`."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"There is no {name!r} here; the entries are {', '.join(self)}.") from None

    @property
    def data(self) -> dict[str, Any]:
        """The entries as a plain dict."""
        return dict(self)

    def tree_flatten_with_keys(self) -> tuple[list[tuple[Any, Any]], tuple[str, ...]]:
        """Return the entries for JAX."""
        names = tuple(sorted(self))
        return [(jax.tree_util.DictKey(name), self[name]) for name in names], names

    @classmethod
    def tree_unflatten(cls, names: tuple[str, ...], values: Sequence[Any]) -> "BatchFeature":
        """Rebuild from what `tree_flatten_with_keys` gave."""
        return cls(zip(names, values, strict=True))


class Found(NamedTuple):
    """What the processors need of a checkpoint.

    Attributes:
        image_spec: how it wants its images.
        tokenizer: None where it has no tokenizer files.
        gives_mask: whether its own program gives an `attention_mask` with the ids.
        tidies_spaces: whether decoding takes out spaces before punctuation.
    """

    image_spec: ImageSpec
    tokenizer: Tokenizer | None
    gives_mask: bool
    tidies_spaces: bool


def processing_of(name: str | Path, *, use_fast: bool | None = None, **where: Any) -> Found:
    """Return what the processors need of the named checkpoint; options as in `CLIPProcessor.from_pretrained`.

    Raises:
        WordlightError: the checkpoint cannot be found or read.
    """
    folder = model_folder(name, **where)
    found, spec = read_processing(folder), None
    if use_fast is not None and not found.open_clip:
        spec = replace(found.image_spec, mode="hf-torchvision" if use_fast else "hf-pil")
    file = folder / "tokenizer_config.json"
    settings = read_json(file) if file.is_file() else {}
    tidies = settings.get("clean_up_tokenization_spaces") is True
    return Found(spec or found.image_spec, found.tokenizer, _gives_mask(found, settings), tidies)


def model_folder(name: str | Path, *, subfolder: str = "", force_download: bool = False, **hub: Any) -> Path:
    """Return the folder of a checkpoint; the other options are those of `HubOptions`.

    Raises:
        WordlightError: it cannot be found, or a new download of what is there is asked for.
    """
    if force_download:
        raise unsupported(
            "force_download", True, "what the cache holds is taken; `hf download --force-download` renews it"
        )
    folder = find_folder(name, HubOptions(**hub))
    if not (folder / subfolder).is_dir():
        inside = sorted(path.name for path in folder.iterdir() if path.is_dir())
        raise WordlightError(
            f"{folder} has no subfolder {subfolder!r}, only {inside}. It is misspelt, or belongs to another "
            "checkpoint. Give one that is there, or leave subfolder out."
        )
    return folder / subfolder


def _gives_mask(found: Processing, settings: dict[str, Any]) -> bool:
    """open_clip hides no padding; transformers does unless `model_input_names` leaves the mask out."""
    if found.open_clip:
        text = found.config.text
        return text is None or not text.sees_padding
    names = settings.get("model_input_names")
    return not isinstance(names, list) or "attention_mask" in names


def unsupported(name: str, value: Any, why: str) -> WordlightError:
    """Return the refusal of an option."""
    return WordlightError(
        f"{name}={value} is not supported: {why}. Code written for transformers' classes sometimes sets it. "
        f"Leave {name} out."
    )


def check_return_tensors(kind: str | None) -> None:
    """Refuse frameworks other than JAX and NumPy."""
    if kind not in (None, "jax", "np"):
        raise WordlightError(
            f"return_tensors={kind!r} is not one of 'jax', 'np' and None. 'pt' and 'tf' belong to PyTorch "
            "and TensorFlow, which are not used here. Give 'jax'."
        )
