"""Which files of a folder hold the weights, and its JSON files."""

import json
import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from wordlight.errors import WordlightError

OTHER_FORMATS = (".bin", ".pt", ".pth", ".ckpt", ".safetensors", ".h5", ".msgpack")
TORCH_STEMS = ("pytorch_model", "open_clip_pytorch_model")
TORCH_FORMATS = (".bin", ".pt", ".pth")


def weight_files(folder: Path, stem: str) -> list[Path]:
    """Return the files of `stem`.safetensors, the one or the shards its index names; without any, those of
    a PyTorch state dict where PyTorch is installed.

    Raises:
        WordlightError: there is neither, or a shard is missing or lies outside the folder.
    """
    found = _one_or_shards(folder, f"{stem}.safetensors")
    if found:
        return found
    others = sorted(p for p in folder.iterdir() if p.suffix in OTHER_FORMATS)
    if find_spec("torch") is not None:
        found = _state_dict_files(folder, others)
    if found:
        return found
    names = [p.name for p in others]
    raise WordlightError(
        f"{folder} holds no file {stem}.safetensors and no {stem}.safetensors.index.json (weights there: "
        f"{names or 'none'}). PyTorch's own files are read where the torch extra is installed, through its "
        "weights-only loading; other formats can run code when opened. Run pip install 'wordlight[torch]', "
        "or convert the checkpoint with the program that wrote it, model.save_pretrained(folder); on the "
        "Hub, a converted copy often waits in a pull request: give revision='refs/pr/NUMBER' with the number "
        "under its Community tab."
    )


def _one_or_shards(folder: Path, name: str) -> list[Path]:
    single, index = folder / name, folder / f"{name}.index.json"
    if single.is_file():
        return [single]
    return _shards(folder, index) if index.is_file() else []


def _state_dict_files(folder: Path, others: list[Path]) -> list[Path]:
    for stem in TORCH_STEMS:
        for suffix in TORCH_FORMATS:
            found = _one_or_shards(folder, stem + suffix)
            if found:
                return found
    single = [path for path in others if path.suffix in TORCH_FORMATS]
    return single if len(single) == 1 else []


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
