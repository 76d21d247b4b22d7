"""Which files of a folder hold the weights, and its JSON files."""

import json
import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from wordlight.errors import WordlightError

OTHER_FORMATS = (".bin", ".pt", ".pth", ".ckpt", ".safetensors", ".h5", ".msgpack")
TORCH_FORMATS = (".bin", ".pt", ".pth")
# Names without their ending, in the order in which the programs look for them.
HF_STEMS = ("model", "pytorch_model")
OPEN_CLIP_STEMS = ("open_clip_model", "open_clip_pytorch_model")


def weight_files(folder: Path, stems: tuple[str, ...]) -> list[Path]:
    """Return the files that hold the weights: the one or the shards of the first of `stems` that is there,
    as safetensors, else as PyTorch's state dict where PyTorch is installed; else a file that is the only one.

    Raises:
        WordlightError: there is none, or a shard is missing or lies outside the folder.
    """
    found = find_weights(folder, stems) or _only_one(folder)
    if found:
        return found
    others = sorted(p.name for p in folder.iterdir() if p.suffix in OTHER_FORMATS)
    name = f"{stems[0]}.safetensors"
    raise WordlightError(
        f"{folder} holds no file {name} and no {name}.index.json (weights there: {others or 'none'}). "
        "PyTorch's own files are read where the torch extra is installed, through its "
        "weights-only loading; other formats can run code when opened. Run pip install 'wordlight[torch]', "
        "or convert the checkpoint with the program that wrote it, model.save_pretrained(folder); on the "
        "Hub, a converted copy often waits in a pull request: give revision='refs/pr/NUMBER' with the number "
        "under its Community tab."
    )


def find_weights(folder: Path, stems: tuple[str, ...]) -> list[Path]:
    """Return the files of the first of `stems` that can be read here; an empty list where there are none."""
    suffixes = (".safetensors", *(TORCH_FORMATS if find_spec("torch") is not None else ()))
    for suffix in suffixes:
        for stem in stems:
            found = _one_or_shards(folder, stem + suffix)
            if found:
                return found
    return []


def _only_one(folder: Path) -> list[Path]:
    for formats in ((".safetensors",), TORCH_FORMATS if find_spec("torch") is not None else ()):
        found = sorted(path for path in folder.iterdir() if path.suffix in formats and path.is_file())
        if len(found) == 1:
            return found
    return []


def _one_or_shards(folder: Path, name: str) -> list[Path]:
    single, index = folder / name, folder / f"{name}.index.json"
    if single.is_file():
        return [single]
    return _shards(folder, index) if index.is_file() else []


def _shards(folder: Path, index: Path) -> list[Path]:
    weight_map = read_json(index).get("weight_map")
    names = list(weight_map.values()) if isinstance(weight_map, dict) else []
    wrong = sorted({str(name) for name in names if not _is_shard(folder, name)})
    if wrong or not names:
        raise WordlightError(
            f"{index} names shards that are not in its folder: {', '.join(wrong) or 'none at all'}. The "
            "download is incomplete, or the index was edited. Fetch the whole repository again."
        )
    return [folder / name for name in sorted(set(names))]


def _is_shard(folder: Path, name: Any) -> bool:
    """Whether a name from an index is that of a file in the folder itself: a path could lead anywhere."""
    return isinstance(name, str) and Path(name).name == name and os.path.isfile(folder / name)


def read_json(file: Path) -> dict[str, Any]:
    """Return the JSON object in a file.

    Raises:
        WordlightError: it cannot be read, or holds something else.
    """
    try:
        value = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise WordlightError(
            f"{file} cannot be read as JSON ({error}). The file is missing, cut short or not text. Fetch it "
            "again."
        ) from error
    if not isinstance(value, dict):
        raise WordlightError(
            f"{file} holds a JSON {type(value).__name__}, not an object. It is probably another file under "
            "this name. Fetch it again."
        )
    return value
