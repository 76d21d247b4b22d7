"""Finding a checkpoint, on the Hub, in a folder or in this package, and loading it."""

import os
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import jax

from wordlight.clip.config import ClipConfig
from wordlight.clip.config_files import config_error, hf_config, open_clip_config
from wordlight.clip.image_spec import ImageSpec
from wordlight.clip.layers import Params
from wordlight.clip.layouts import hf_layout, open_clip_layout
from wordlight.clip.model import ClipModel, init_params
from wordlight.clip.tokenizer import Tokenizer
from wordlight.clip.weights import read_json, read_params, weight_files
from wordlight.errors import WordlightError

PATTERNS = ("*.json", "*.txt", "*.txt.gz", "*.safetensors")
EMBEDDED = ("demo", "judge-resnet", "judge-vit")


@dataclass(frozen=True)
class HubOptions:
    """Where and how to look on the Hub, in the words of `huggingface_hub`.

    Attributes:
        revision: branch, tag or commit.
        cache_dir: folder of the cache; None for the usual one.
        local_files_only: never ask the network.
        token: access token; None for the stored one.
    """

    revision: str | None = None
    cache_dir: str | Path | None = None
    local_files_only: bool = False
    token: str | bool | None = None


def load(
    name: str | Path,
    *,
    revision: str | None = None,
    cache_dir: str | Path | None = None,
    local_files_only: bool = False,
    token: str | bool | None = None,
) -> ClipModel:
    """Load a CLIP model.

    Args:
        name: a local folder in Hugging Face or OpenCLIP layout, `"demo"` for the model in this package, or a
            Hub id such as `"openai/clip-vit-base-patch32"`. A folder of that name wins over the Hub.
        revision: branch, tag or commit on the Hub.
        cache_dir: folder of the Hub's cache.
        local_files_only: use only what is in the cache.
        token: the Hub's access token.

    Raises:
        WordlightError: the model cannot be found, read, or does not fit its configuration.
    """
    return load_folder(find_folder(name, HubOptions(revision, cache_dir, local_files_only, token)))


def find_folder(name: str | Path, options: HubOptions) -> Path:
    """Return the folder that holds the named checkpoint, downloading it if need be.

    Raises:
        WordlightError: there is none, or the Hub cannot give it.
    """
    folder = Path(os.path.expanduser(name))
    if str(name).strip() and os.path.isdir(folder):
        return folder
    if str(name) in EMBEDDED:
        return Path(str(files("wordlight") / "assets" / str(name)))
    looks_local = str(name).startswith((".", "/", "~")) or str(name).count("/") != 1 or os.path.exists(folder)
    if looks_local:
        raise WordlightError(
            f"There is no model {str(name)!r}: no such folder, and it is not an id on the Hub (owner/name). "
            "The path may be misspelt or relative to another folder. Give a folder with config.json and "
            "model.safetensors, an id such as openai/clip-vit-base-patch32, or demo."
        )
    return _download(str(name), options)


def _download(name: str, options: HubOptions) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    try:
        folder = snapshot_download(
            name,
            revision=options.revision,
            cache_dir=options.cache_dir,
            local_files_only=options.local_files_only,
            token=options.token,
            allow_patterns=list(PATTERNS),
        )
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OSError) as error:
        first_line = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise WordlightError(
            f"The model {name!r} could not be had from the Hub ({first_line}). The id is misspelt or "
            "private, the Hub is out of reach, or offline mode is on and the model is not in the cache. "
            "Check the id, log in with `hf auth login`, download it where there is a network, or give a "
            "local folder. `demo` always works."
        ) from error
    return Path(folder)


def load_folder(folder: Path) -> ClipModel:
    """Load the checkpoint in a folder; the layout follows from its configuration file."""
    if (folder / "open_clip_config.json").is_file():
        return _load_open_clip(folder)
    if (folder / "config.json").is_file():
        return _load_hf(folder)
    raise WordlightError(
        f"{folder} holds neither config.json nor open_clip_config.json. It is not a model folder, or only a "
        "part of one (a parent folder, a tokenizer, an adapter). Give the folder that holds the "
        "configuration and the weights."
    )


def _load_hf(folder: Path) -> ClipModel:
    config = hf_config(read_json(folder / "config.json"))
    params = read_params(weight_files(folder, "model"), hf_layout(config), _shapes(config))
    return ClipModel(params, config, _hf_image_spec(folder, config), _tokenizer(folder, config))


def _hf_image_spec(folder: Path, config: ClipConfig) -> ImageSpec:
    for name in ("preprocessor_config.json", "processor_config.json"):
        if (folder / name).is_file():
            return _checked(ImageSpec.from_hf(read_json(folder / name), config.vision.image_size), config)
    return ImageSpec.from_hf({}, config.vision.image_size)


def _load_open_clip(folder: Path) -> ClipModel:
    raw = read_json(folder / "open_clip_config.json")
    config = open_clip_config(raw)
    stem = "open_clip_model" if list(folder.glob("open_clip_model.safetensors*")) else "model"
    params = read_params(weight_files(folder, stem), open_clip_layout(config), _shapes(config))
    preparation = raw.get("preprocess_cfg") or {}
    if not isinstance(preparation, dict):
        raise config_error("preprocess_cfg", preparation, "an object is needed")
    spec = ImageSpec.from_open_clip(preparation, config.vision.image_size)
    return ClipModel(params, config, _checked(spec, config), _tokenizer(folder, config))


def _checked(spec: ImageSpec, config: ClipConfig) -> ImageSpec:
    if spec.size != config.vision.image_size:
        raise config_error("preprocessed size", spec.size, f"the tower takes {config.vision.image_size}")
    return spec


def _tokenizer(folder: Path, config: ClipConfig) -> Tokenizer | None:
    if config.text is None:
        return None
    tokenizer = Tokenizer.find(folder, config.text.context_length)
    if tokenizer is not None:
        _check_vocabulary(tokenizer, config.text.vocab_size)
    return tokenizer


def _check_vocabulary(tokenizer: Tokenizer, vocab_size: int) -> None:
    highest = max(tokenizer.backend.get_vocab().values(), default=-1)
    if highest >= vocab_size:
        raise WordlightError(
            f"The tokenizer's ids go up to {highest}, and the text tower has {vocab_size} of them. The "
            "tokenizer files come from another checkpoint. Take them from the repository of the weights."
        )


@lru_cache(maxsize=8)
def _shapes(config: ClipConfig) -> Params:
    """Return the shapes of the weights, without memory for any of them."""
    abstract: Any = jax.eval_shape(lambda: init_params(jax.random.key(0), config))
    return abstract
