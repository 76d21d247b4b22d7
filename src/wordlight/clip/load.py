"""Loading a checkpoint."""

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, SupportsIndex

import jax
import jax.numpy as jnp

from wordlight.clip.checkpoint_files import HF_STEMS, OPEN_CLIP_STEMS, find_weights, weight_files
from wordlight.clip.config import ClipConfig
from wordlight.clip.float_types import float_type
from wordlight.clip.hub import HubOptions, find_folder
from wordlight.clip.image_size import with_image_size
from wordlight.clip.layers import Params
from wordlight.clip.layout_hf import hf_layout
from wordlight.clip.layout_open_clip import open_clip_layout
from wordlight.clip.model import ClipModel, init_params
from wordlight.clip.processing import Processing, read_processing
from wordlight.clip.weights import ReadOptions, read_params
from wordlight.errors import WordlightError
from wordlight.memory import give_back_memory


@dataclass(frozen=True)
class LoadOptions:
    """What to make of a checkpoint: size of its images (None for its own), type and device of its weights."""

    image_size: tuple[int, int] | None = None
    dtype: Any = jnp.float32
    device: Any = None


def load(
    name: str | Path,
    *,
    image_size: SupportsIndex | Sequence[SupportsIndex] | None = None,
    dtype: Any = jnp.float32,
    device: Any = None,
    revision: str | None = None,
    cache_dir: str | Path | None = None,
    local_files_only: bool = False,
    token: str | bool | None = None,
) -> ClipModel:
    """Load a CLIP model.

    Args:
        name: a local folder in Hugging Face or OpenCLIP layout, `"demo"` for the model in this package, or a
            Hub id such as `"openai/clip-vit-base-patch32"`. A folder of that name wins over the Hub.
        image_size: side or (height, width) that images are preprocessed to, instead of the checkpoint's own;
            position embeddings are resampled as the reference program of the layout does.
        dtype: of the weights and of the towers' products, float32, bfloat16 or float16, or `"auto"` for the
            one that is fastest here (`float_types.fastest_type`). Sums, norms, softmax and embeddings stay
            float32.
        device: a JAX device or sharding the weights go to.
        revision: branch, tag or commit on the Hub.
        cache_dir: folder of the Hub's cache.
        local_files_only: use only what is in the cache.
        token: the Hub's access token.

    Raises:
        WordlightError: the model cannot be found, read, or does not fit its configuration.
    """
    _check_device(device)
    folder = find_folder(name, HubOptions(revision, cache_dir, local_files_only, token))
    return load_folder(folder, LoadOptions(_pair(image_size), float_type(dtype, device=device), device))


def _pair(size: Any) -> tuple[int, int] | None:
    if size is None:
        return None
    sides = list(size) if isinstance(size, Sequence) else [size, size]
    try:
        height, width = map(operator.index, sides)  # whole numbers of any library
    except (TypeError, ValueError):
        height, width = 0, 0
    if min(height, width) < 1 or isinstance(size, bool):
        raise WordlightError(
            f"The image size {size!r} is not a side or a (height, width) in pixels. It may be a float, or "
            "zero. Give whole numbers above 0, or None for the checkpoint's own."
        )
    return height, width


def _check_device(device: Any) -> None:
    if isinstance(device, str):
        raise WordlightError(
            f"The device {device!r} is a word. PyTorch names devices so; JAX has objects for them. Give "
            f"jax.devices({device.split(':')[0]!r})[0], a sharding, or None for JAX's default."
        )


def load_folder(folder: Path, options: LoadOptions | None = None) -> ClipModel:
    """Load the checkpoint in a folder; the layout follows from its configuration file.

    Raises:
        WordlightError: as `load` does.
    """
    options, found = options or LoadOptions(), read_processing(folder)
    give_back_memory()
    params = (
        open_clip_params(folder, found, options) if found.open_clip else _hf_params(folder, found, options)
    )
    model = ClipModel(params, found.config, found.image_spec, found.tokenizer)
    if options.image_size is None:
        return model
    return with_image_size(model, options.image_size, antialias=found.open_clip)


def _hf_params(folder: Path, found: Processing, options: LoadOptions) -> Params:
    files, read = weight_files(folder, HF_STEMS), ReadOptions(options.dtype, options.device)
    return read_params(files, lambda names: hf_layout(found.config), _shapes(found.config), options=read)


def open_clip_params(folder: Path, found: Processing, options: LoadOptions) -> Params:
    """Read the weights of a folder in OpenCLIP layout for the towers that `found` describes."""
    files = find_weights(folder, OPEN_CLIP_STEMS) or weight_files(folder, (*OPEN_CLIP_STEMS, *HF_STEMS))
    custom = found.raw["model_cfg"].get("custom_text")

    def layout(names: set[str]) -> Params:
        # Models of a class of their own keep their text tower under a name of its own, unless their weights
        # are older than that class.
        own = custom and "text_projection" not in names
        return open_clip_layout(found.config, text_prefix="text." if own else "")

    # CoCa's captioning decoder is not read.
    read = ReadOptions(options.dtype, options.device, unused=("text_decoder.",))
    return read_params(files, layout, _shapes(found.config), options=read)


@lru_cache(maxsize=8)
def _shapes(config: ClipConfig) -> Params:
    """Return the shapes of the weights, without memory for any of them."""
    abstract: Any = jax.eval_shape(lambda: init_params(jax.random.key(0), config))
    return abstract
