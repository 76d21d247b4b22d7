"""PyTorch's own files: state dicts load as the same weights, and nothing that could run code is opened."""

import tempfile
from pathlib import Path
from typing import Any

import jax
import numpy as np
import safetensors.torch
import torch

from parity.tower_cases import TINY_TEXT, TINY_VISION, tiny_open_vit, write_hf, write_open_clip
from wordlight.clip.load import load
from wordlight.errors import WordlightError


class Poison:
    """Makes a file when it is unpickled."""

    def __init__(self, file: Path):
        self.file = file

    def __reduce__(self) -> Any:
        return Path.touch, (self.file,)


def check_live() -> dict[str, tuple[float, float]]:
    """Return (error, limit) by name; a refusal that did not come counts as 1."""
    with tempfile.TemporaryDirectory() as name:
        return dict([*_state_dicts(Path(name)), *_refusals(Path(name))])


def _state_dicts(folder: Path) -> Any:
    """Yield the largest difference between a checkpoint and its copy as a state dict; it has to be none."""
    hf, open_clip = folder / "hf", folder / "open-clip"
    hf.mkdir()
    open_clip.mkdir()
    write_hf(TINY_VISION, TINY_TEXT, hf)
    write_open_clip(tiny_open_vit(), open_clip)
    files = ((hf, "pytorch_model.bin"), (hf, "weights.pt"), (open_clip, "open_clip_pytorch_model.bin"))
    for source, name in files:
        expected = load(source)
        copy = _with_state_dict(source, folder / name.replace(".", "-"), name)
        pairs = zip(jax.tree.leaves(load(copy).params), jax.tree.leaves(expected.params), strict=True)
        yield f"torch-file-{name}", (max(float(np.abs(a - b).max()) for a, b in pairs), 0.0)


def _with_state_dict(source: Path, target: Path, name: str, content: Any = None) -> Path:
    """Copy a checkpoint with its weights as PyTorch saves them, or something else in their place."""
    target.mkdir()
    for file in source.iterdir():
        if file.suffix == ".safetensors":
            tensors = safetensors.torch.load_file(file)
        else:
            (target / file.name).write_bytes(file.read_bytes())
    torch.save(tensors if content is None else content, target / name)
    return target


def _refusals(folder: Path) -> Any:
    source, mark = folder / "hf", folder / "mark"
    poisoned = _with_state_dict(source, folder / "poison", "pytorch_model.bin", {"weight": Poison(mark)})
    yield "torch-file-that-runs-code", (float(not _refused(poisoned, "weights-only") or mark.exists()), 0.0)
    script = _with_state_dict(source, folder / "script", "model.pt")
    torch.jit.script(torch.nn.Linear(2, 2)).save(script / "model.pt")
    yield "torch-file-torchscript", (float(not _refused(script, "TorchScript archive")), 0.0)
    module = _with_state_dict(source, folder / "module", "model.pt", torch.nn.Linear(2, 2))
    yield "torch-file-whole-module", (float(not _refused(module, "state")), 0.0)


def _refused(folder: Path, words: str) -> bool:
    try:
        load(folder)
    except WordlightError as error:
        return words in str(error)
    return False
