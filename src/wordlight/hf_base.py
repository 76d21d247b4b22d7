"""What the processors share: their result, and reading a checkpoint's processing files without its
weights."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax

from wordlight.clip.hub import HubOptions, find_folder
from wordlight.clip.image_spec import ImageSpec
from wordlight.clip.processing import read_processing
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

    def tree_flatten_with_keys(self) -> tuple[list[tuple[Any, Any]], tuple[str, ...]]:
        """Return the entries for JAX."""
        names = tuple(sorted(self))
        return [(jax.tree_util.DictKey(name), self[name]) for name in names], names

    @classmethod
    def tree_unflatten(cls, names: tuple[str, ...], values: Sequence[Any]) -> "BatchFeature":
        """Rebuild from what `tree_flatten_with_keys` gave."""
        return cls(zip(names, values, strict=True))


def processing_of(name: str | Path, hub: HubOptions) -> tuple[ImageSpec, Tokenizer | None]:
    """Return how the named checkpoint wants its images, and its tokenizer if it has one.

    Raises:
        WordlightError: the checkpoint cannot be found or read.
    """
    found = read_processing(find_folder(name, hub))
    return found.image_spec, found.tokenizer


def check_return_tensors(kind: str | None) -> None:
    """Refuse frameworks other than JAX and NumPy."""
    if kind not in (None, "jax", "np"):
        raise WordlightError(
            f"return_tensors={kind!r} is not one of 'jax', 'np' and None. 'pt' and 'tf' belong to PyTorch "
            "and TensorFlow, which are not used here. Give 'jax'."
        )
