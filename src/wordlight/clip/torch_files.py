"""The tensors of PyTorch state dicts, through its weights-only loading. Nothing is unpickled otherwise."""

import re
import zipfile
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from wordlight.clip.tensor_files import BUFFERS
from wordlight.errors import WordlightError

# Training programs put the weights beside the optimiser's state, and wrap the model.
NESTED, WRAPPED = "state_dict", "module."
TERMINAL_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
NAMES = {"float16": "F16", "bfloat16": "BF16", "float32": "F32", "float64": "F64"}


class TorchFiles:
    """The tensors of one or several files, mapped into memory where the format allows."""

    def __init__(self, files: list[Path]):
        self._tensors: dict[str, Any] = {}
        for file in files:
            self._tensors |= _state_dict(file)

    def names(self) -> set[str]:
        """Return the names of all tensors that are not mere buffers."""
        return {name for name in self._tensors if not BUFFERS.search(name)}

    def shape(self, name: str) -> tuple[int, ...]:
        """Return a tensor's shape."""
        return tuple(self._tensors[name].shape)

    def dtype(self, name: str) -> str:
        """Return a tensor's type, in the words of the safetensors format."""
        kind = str(self._tensors[name].dtype).removeprefix("torch.")
        return NAMES.get(kind, kind)

    def read_into(self, name: str, view: np.ndarray) -> None:
        """Write a tensor into an array of its shape, rounded to the type of that."""
        tensor = self._tensors[name].detach()
        # NumPy has no bfloat16 of PyTorch's.
        values = (tensor.float() if self.dtype(name) == "BF16" else tensor).numpy()
        view[...] = values.reshape(view.shape)


def _state_dict(file: Path) -> dict[str, Any]:
    torch: Any = import_module("torch")
    _refuse_program(file)
    try:
        value: Any = torch.load(file, map_location="cpu", weights_only=True, mmap=zipfile.is_zipfile(file))
    except Exception as error:  # PyTorch raises what its unpickler happens to meet
        raise WordlightError(
            f"{file} is not read by PyTorch's weights-only loading ({_first_line(error)}). It was cut short, "
            "or holds objects other than tensors, which would run code. Fetch it again, or convert it where "
            "you trust it: load it with the program that wrote it and save its state_dict."
        ) from error
    nested = value.get(NESTED, value) if isinstance(value, dict) else value
    if not isinstance(nested, dict) or not all(isinstance(t, torch.Tensor) for t in nested.values()):
        raise WordlightError(
            f"{file} holds no dictionary of tensors but {type(nested).__name__}. It is a whole training "
            "state or a pickled model. Save model.state_dict() from the program that wrote it."
        )
    bare = sorted(str(n) for n, t in nested.items() if t.is_meta or t.layout is not torch.strided)
    if bare:
        raise WordlightError(
            f"{file} holds tensors without plain values: {', '.join(bare)}. They are sparse, or placeholders "
            "of a model that was never filled. Save the state_dict of the loaded, dense model."
        )
    return {str(name).removeprefix(WRAPPED): tensor for name, tensor in nested.items()}


def _refuse_program(file: Path) -> None:
    """Refuse TorchScript archives, which hold code beside the weights."""
    if not zipfile.is_zipfile(file):
        return
    with zipfile.ZipFile(file) as archive:
        scripted = any(name.split("/", 1)[-1].startswith("code/") for name in archive.namelist())
    if scripted:
        raise WordlightError(
            f"{file} is a TorchScript archive: a program with its weights, as OpenAI published CLIP. "
            f"Programs are not run here. Convert it where you trust it: python -c {_conversion(file)!r}"
        )


def _conversion(file: Path) -> str:
    return (
        "import torch; from safetensors.torch import save_file; "
        f'm = torch.jit.load("{file.name}", map_location="cpu"); '
        f'save_file({{k: v.contiguous() for k, v in m.state_dict().items()}}, "{file.stem}.safetensors")'
    )


def _first_line(error: Exception) -> str:
    plain = TERMINAL_COLOURS.sub("", str(error)).strip()
    return (plain or type(error).__name__).splitlines()[0]
