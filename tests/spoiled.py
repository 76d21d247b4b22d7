"""Checkpoints to spoil: small ones of both layouts, and the ways to change what is in them."""

import json
import pickle
from pathlib import Path

from safetensors.numpy import load_file, save_file

from tiny_clip import RESNET, VIT, tiny_clip, tiny_tokenizer
from wordlight.clip.save import save_folder

MODELS = {"vit": VIT, "resnet": RESNET}
CONFIG_FILES = {"vit": "config.json", "resnet": "open_clip_config.json"}
WEIGHT_FILES = {"vit": "model.safetensors", "resnet": "open_clip_model.safetensors"}


def write_originals(root: Path) -> Path:
    """Write a whole checkpoint of each model of `MODELS` into a folder of its name, and return the root."""
    for name, config in MODELS.items():
        save_folder(root / name, tiny_clip(config))
        tiny_tokenizer(root / name)
    return root


def edit_json(file: Path, changes: dict) -> None:
    """Merge changes into a JSON file, two levels deep."""
    config = json.loads(file.read_text())
    for name, value in changes.items():
        nested = isinstance(value, dict) and isinstance(config.get(name), dict)
        config[name] = config[name] | value if nested else value
    file.write_text(json.dumps(config))


def edit_model_cfg(folder: Path, section: str, entry: str, value) -> None:
    """Change one entry of a section of an `open_clip_config.json`."""
    file = folder / "open_clip_config.json"
    config = json.loads(file.read_text())
    config["model_cfg"][section][entry] = value
    file.write_text(json.dumps(config))


def edit_tensors(file: Path, change) -> None:
    """Let `change` alter the dictionary of tensors in a file."""
    tensors = load_file(file)
    change(tensors)
    save_file(tensors, file)


def shard(folder: Path) -> Path:
    """Split model.safetensors in two with an index, and return the index."""
    tensors = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    names = sorted(tensors)
    weight_map = {}
    for number, part in enumerate((names[::2], names[1::2]), start=1):
        file = f"model-{number:05}-of-00002.safetensors"
        save_file({name: tensors[name] for name in part}, folder / file)
        weight_map |= dict.fromkeys(part, file)
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))
    return index


class _Poison:
    def __init__(self, file: Path):
        self.file = file

    def __reduce__(self):
        return Path.touch, (self.file,)


def poison(file: Path) -> bytes:
    """Return a pickle that makes a file when it is opened."""
    return pickle.dumps(_Poison(file))
