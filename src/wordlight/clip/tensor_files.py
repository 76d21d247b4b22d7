"""The tensors of safetensors files, read one at a time."""

import re
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from safetensors import SafetensorError, safe_open

from wordlight.errors import WordlightError

# Buffers that the reference programs save and that follow from the configuration.
BUFFERS = re.compile(r"(position_ids|num_batches_tracked|attn_mask)$")


@runtime_checkable
class Tensors(Protocol):
    """Tensors by name, as files of any format give them."""

    def names(self) -> set[str]:
        """Return the names of all tensors that are not mere buffers."""
        ...

    def shape(self, name: str) -> tuple[int, ...]:
        """Return a tensor's shape."""
        ...

    def dtype(self, name: str) -> str:
        """Return a tensor's type, in the words of the safetensors format."""
        ...

    def read(self, name: str) -> np.ndarray:
        """Return a tensor."""
        ...


class TensorFiles:
    """The tensors of one or several safetensors files, read one at a time."""

    def __init__(self, stack: ExitStack, files: list[Path]):
        self._where: dict[str, Any] = {}
        for file in files:
            handle = stack.enter_context(_open(file))
            self._where |= dict.fromkeys(handle.keys(), handle)

    def names(self) -> set[str]:
        """Return the names of all tensors that are not mere buffers."""
        return {name for name in self._where if not BUFFERS.search(name)}

    def shape(self, name: str) -> tuple[int, ...]:
        """Return a tensor's shape without reading it."""
        return tuple(self._where[name].get_slice(name).get_shape())

    def dtype(self, name: str) -> str:
        """Return a tensor's type, in the words of the safetensors format, without reading it."""
        return self._where[name].get_slice(name).get_dtype()

    def read(self, name: str) -> np.ndarray:
        """Return a tensor."""
        return self._where[name].get_tensor(name)


def _open(file: Path) -> Any:
    try:
        return safe_open(file, framework="numpy")
    except (SafetensorError, OSError) as error:
        raise WordlightError(
            f"{file} is not a readable safetensors file ({error}). The download was probably cut short, or "
            "the file is a Git LFS pointer. Fetch it again and compare its size with the Hub's."
        ) from error
