"""What the processors share: their result, and reading a checkpoint's processing files without its
weights."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax

from wordlight.clip.config_files import hf_config, open_clip_config
from wordlight.clip.image_spec import ImageSpec
from wordlight.clip.load import HubOptions, find_folder
from wordlight.clip.tokenizer import Tokenizer
from wordlight.clip.weights import read_json
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


def read_processing(name: str | Path, hub: HubOptions) -> tuple[ImageSpec, Tokenizer | None]:
    """Return how the named checkpoint wants its images, and its tokenizer if it has one.

    Raises:
        WordlightError: the checkpoint cannot be found or read.
    """
    folder = find_folder(name, hub)
    open_clip = folder / "open_clip_config.json"
    if open_clip.is_file():
        raw = read_json(open_clip)
        config = open_clip_config(raw)
        spec = ImageSpec.from_open_clip(raw.get("preprocess_cfg") or {}, config.vision.image_size)
    else:
        config = hf_config(read_json(folder / "config.json"))
        names = ("preprocessor_config.json", "processor_config.json")
        present = [folder / name for name in names if (folder / name).is_file()]
        spec = ImageSpec.from_hf(read_json(present[0]) if present else {}, config.vision.image_size)
    length = None if config.text is None else config.text.context_length
    return spec, None if length is None else Tokenizer.find(folder, length)


def check_return_tensors(kind: str | None) -> None:
    """Refuse frameworks other than JAX and NumPy."""
    if kind not in (None, "jax", "np"):
        raise WordlightError(
            f"return_tensors={kind!r} is not one of 'jax', 'np' and None. 'pt' and 'tf' belong to PyTorch "
            "and TensorFlow, which are not used here. Give 'jax'."
        )
