"""The tensors of safetensors files, read one at a time."""

import json
import re
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, Protocol, runtime_checkable

import jax.numpy as jnp
import numpy as np
from safetensors import SafetensorError, safe_open

from wordlight.errors import WordlightError

KINDS = {"F16": np.float16, "BF16": np.dtype(jnp.bfloat16), "F32": np.float32, "F64": np.float64}
STRIPE = 16  # rows; of 32-bit numbers, they fill a cache line of a transposed array
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

    def read_into(self, name: str, view: np.ndarray) -> None:
        """Write a tensor into an array of its shape, rounded to the type of that."""
        ...


class Place(NamedTuple):
    """Where a tensor lies: what knows its shape and type, its file, and the byte it begins at."""

    handle: Any
    file: Path
    start: int


class TensorFiles:
    """The tensors of one or several safetensors files, read one at a time.

    The library checks the files and knows what is in them. It maps them, and the mapped pages of all tensors
    read so far would count as this process's memory beside the tensors themselves; so the bytes are read.
    """

    def __init__(self, stack: ExitStack, files: list[Path]):
        self._where: dict[str, Place] = {}
        for file in files:
            handle = stack.enter_context(_open(file))
            starts = _starts(file)
            self._where |= {name: Place(handle, file, starts[name]) for name in starts}

    def names(self) -> set[str]:
        """Return the names of all tensors that are not mere buffers."""
        return {name for name in self._where if not BUFFERS.search(name)}

    def shape(self, name: str) -> tuple[int, ...]:
        """Return a tensor's shape without reading it."""
        return tuple(self._where[name].handle.get_slice(name).get_shape())

    def dtype(self, name: str) -> str:
        """Return a tensor's type, in the words of the safetensors format, without reading it."""
        return self._where[name].handle.get_slice(name).get_dtype()

    def read_into(self, name: str, view: np.ndarray) -> None:
        """Write a tensor into an array of its shape, rounded to the type of that; only floats are read."""
        place, kind = self._where[name], KINDS[self.dtype(name)]
        with place.file.open("rb") as stream:
            stream.seek(place.start)
            if view.dtype == kind and view.flags.c_contiguous:
                _fill(view, stream, name)
            else:
                _fill_in_stripes(view, stream, name, kind)


def _fill(values: np.ndarray, stream: BinaryIO, name: str) -> None:
    count = stream.readinto(values.reshape(-1).view(np.uint8))  # pyright: ignore[reportAttributeAccessIssue]
    if count != values.nbytes:
        raise WordlightError(
            f"{stream.name} ended {values.nbytes - count} bytes before {name} did. Another program is "
            "probably writing it. Load it once that is done."
        )


def _fill_in_stripes(view: np.ndarray, stream: BinaryIO, name: str, kind: Any) -> None:
    """Read a few rows at a time: no second copy of the tensor is held, and in a transposed array whole cache
    lines are written."""
    rows = np.atleast_1d(view)
    count = STRIPE if rows.ndim > 1 else len(rows)
    block = np.empty((count, *rows.shape[1:]), kind)
    for start in range(0, len(rows), count):
        part = rows[start : start + count]
        _fill(block[: len(part)], stream, name)
        part[...] = block[: len(part)]


def _starts(file: Path) -> dict[str, int]:
    """Return the byte at which each tensor of a checked file begins: eight bytes of length, the header, the
    data."""
    with file.open("rb") as stream:
        length = int.from_bytes(stream.read(8), "little")
        header = json.loads(stream.read(length))
    header.pop("__metadata__", None)
    return {name: 8 + length + entry["data_offsets"][0] for name, entry in header.items()}


def _open(file: Path) -> Any:
    try:
        return safe_open(file, framework="numpy")
    except (SafetensorError, OSError) as error:
        raise WordlightError(
            f"{file} is not a readable safetensors file ({error}). The download was probably cut short, or "
            "the file is a Git LFS pointer. Fetch it again and compare its size with the Hub's."
        ) from error
