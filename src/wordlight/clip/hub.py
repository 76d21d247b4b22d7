"""Finding a checkpoint's folder: on disk, in this package, or on the Hub."""

import os
from dataclasses import dataclass
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

from wordlight.errors import WordlightError

PATTERNS = ("*.json", "*.txt", "*.txt.gz", "*.safetensors")
TORCH_PATTERNS = ("*.bin", "*.pt", "*.bin.index.json")
EMBEDDED = ("demo", "demo-resnet", "judge-resnet", "judge-vit")


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


def find_folder(name: str | Path, options: HubOptions) -> Path:
    """Return the folder that holds the named checkpoint, downloading it if need be.

    Raises:
        WordlightError: there is none, or the Hub cannot give it.
    """
    if not isinstance(name, str | os.PathLike):
        raise WordlightError(
            f"The model {name!r} is a {type(name).__name__}. A variable that should hold its name is "
            "probably unset. Give a folder, an id such as openai/clip-vit-base-patch32, or demo."
        )
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


def is_cached(name: str) -> bool:
    """Whether the Hub's cache on this disk holds a configuration file of that id."""
    from huggingface_hub import try_to_load_from_cache

    files = ("config.json", "open_clip_config.json")
    return any(isinstance(try_to_load_from_cache(name, file), str) for file in files)


def _download(name: str, options: HubOptions) -> Path:
    """Download what is read: safetensors, and PyTorch's files where there are none and PyTorch is here."""
    folder = _snapshot(name, options, PATTERNS)
    if any(folder.glob("*.safetensors")) or find_spec("torch") is None:
        return folder
    return _snapshot(name, options, PATTERNS + TORCH_PATTERNS)


def _snapshot(name: str, options: HubOptions, patterns: tuple[str, ...]) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    try:
        folder = snapshot_download(
            name,
            revision=options.revision,
            cache_dir=options.cache_dir,
            local_files_only=options.local_files_only,
            token=options.token,
            allow_patterns=list(patterns),
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
