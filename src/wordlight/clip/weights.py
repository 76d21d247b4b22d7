"""Reading and writing weights: every tensor used, every leaf filled, or an error that lists both."""

import math
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from safetensors.numpy import save_file

from wordlight.clip.layers import Params
from wordlight.clip.source import Source
from wordlight.clip.tensor_files import TensorFiles, Tensors
from wordlight.clip.torch_files import TorchFiles
from wordlight.errors import WordlightError

FLOATS = ("F16", "BF16", "F32", "F64")
ALIGNMENT = 64
READERS = 2  # threads; NumPy reads, transposes and checks without Python's lock
CHECKED = 2**20  # numbers looked at at a time, so that what says which are finite stays small


@dataclass(frozen=True)
class ReadOptions:
    """How weights are taken in.

    Attributes:
        dtype: of the weights; the logits' scale and bias stay float32.
        device: where they go; None for JAX's default.
        unused: what the names of tensors begin with that belong to parts of the model nobody here needs.
    """

    dtype: Any = jnp.float32
    device: Any = None
    unused: tuple[str, ...] = ()


def _tensors(stack: ExitStack, files: list[Path]) -> Tensors:
    return TensorFiles(stack, files) if files[0].suffix == ".safetensors" else TorchFiles(files)


def read_params(
    files: list[Path],
    layout: Callable[[set[str]], Params],
    expected: Params,
    *,
    options: ReadOptions | None = None,
) -> Params:
    """Read the weights of a layout, converted to our arrangement, one tensor at a time.

    Args:
        files: safetensors files.
        layout: returns a tree of `Source` for the names of the tensors in the files.
        expected: a tree of the same structure with the shapes the configuration asks for.
        options: type and device of the weights, and which tensors are left alone.

    Raises:
        WordlightError: tensors are missing, left over, of another shape, not floats or not finite; all are
            named.
    """
    options = options or ReadOptions()
    with ExitStack() as stack:
        tensors = _tensors(stack, files)
        sources = layout(tensors.names())
        problems = list(_mismatches(tensors, sources, expected, options.unused))
        if problems:
            raise _refusal(files[0].parent, problems)
        leaves, structure = jax.tree.flatten(sources, is_leaf=_is_source)
        shapes = [leaf.shape for leaf in jax.tree.leaves(expected)]
        with ThreadPoolExecutor(READERS) as readers:
            arrays = readers.map(partial(_read_one, tensors, options=options), leaves, shapes)
            # Here and not by the readers: JAX's context, such as `default_device`, is that of one thread.
            read = [(jax.device_put(weight, options.device), names) for weight, names in arrays]
    broken = [name for _, names in read for name in names]
    if broken:
        raise _not_finite(files[0].parent, broken, options.dtype)
    return jax.tree.unflatten(structure, [weight for weight, _ in read])


def _is_source(x: Any) -> bool:
    return isinstance(x, Source)


def _mismatches(tensors: Tensors, layout: Params, expected: Params, unused: tuple[str, ...]) -> Iterator[str]:
    left = {name for name in tensors.names() if not name.startswith(unused)}
    sources = jax.tree.leaves(layout, is_leaf=_is_source)
    for source, leaf in zip(sources, jax.tree.leaves(expected), strict=True):
        for name, want in zip(source.names, source.theirs_shapes(leaf.shape), strict=True):
            if name not in left:
                yield f"missing {name} {want}"
            elif tensors.shape(name) not in (want, want or (1,)):
                yield f"{name} is {tensors.shape(name)}, the configuration says {want}"
            elif tensors.dtype(name) not in FLOATS:
                yield f"{name} holds {tensors.dtype(name)}, not floats: one of {', '.join(FLOATS)}"
            left.discard(name)
    yield from (f"left over {name} {tensors.shape(name)}" for name in sorted(left))


def _refusal(folder: Path, problems: list[str]) -> WordlightError:
    listed = "\n  ".join(problems)
    return WordlightError(
        f"The weights in {folder} do not fit their configuration ({len(problems)} tensors):\n  {listed}\n"
        "The checkpoint is of another architecture, quantised, or its config file belongs to another model. "
        "Check that both come from the same repository."
    )


def _not_finite(folder: Path, names: list[str], dtype: Any) -> WordlightError:
    listed = "\n  ".join(names)
    return WordlightError(
        f"The weights in {folder} hold values that are not finite as {jnp.dtype(dtype)} ({len(names)} "
        f"tensors):\n  {listed}\nThe file is damaged, the training that made it diverged, or the type cannot "
        "hold such numbers. Fetch it again, use another checkpoint, or load it as float32 or bfloat16."
    )


def _read_one(
    tensors: Tensors, source: Source, shape: tuple[int, ...], *, options: ReadOptions
) -> tuple[np.ndarray, list[str]]:
    """Return one weight, and the names of its tensors that are not finite."""
    dtype = options.dtype if shape else np.float32  # the scale of the logits feeds an exponential
    weight, broken = aligned_empty(shape, dtype), []
    with np.errstate(over="ignore"):  # what is beyond the type becomes infinite, and is refused as such
        for name, view in source.to_theirs(weight).items():
            tensors.read_into(name, view)
            broken += [] if _is_finite(view) else [name]
    return weight, broken


def aligned_empty(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """Return an array of unset values that JAX takes over without a copy where its device is the CPU: it
    begins at a multiple of 64 bytes."""
    count = math.prod(shape) * np.dtype(dtype).itemsize
    memory = np.empty(count + ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    return memory[start : start + count].view(dtype).reshape(shape)


def _is_finite(view: np.ndarray) -> bool:
    rows = np.atleast_1d(view)
    step = max(1, CHECKED // max(1, math.prod(rows.shape[1:])))
    return all(np.isfinite(rows[start : start + step]).all() for start in range(0, len(rows), step))


def write_params(file: Path, params: Params, layout: Params, *, dtype: Any = np.float32) -> None:
    """Write weights under a layout's names; the inverse of `read_params` for dtype float32.

    A file of that name is replaced only once the new one is whole.
    """
    tensors: dict[str, np.ndarray] = {}
    sources = jax.tree.leaves(layout, is_leaf=_is_source)
    for source, leaf in zip(sources, jax.tree.leaves(params), strict=True):
        converted = source.to_theirs(np.asarray(leaf, dtype))
        # Not `ascontiguousarray`, which turns the scalar logit scale into a vector.
        tensors |= {name: np.asarray(value, order="C") for name, value in converted.items()}
    unfinished = file.with_name(f"{file.name}.unfinished")
    # safetensors leaves its files to their owner alone; these are to be like any other file of the user.
    unfinished.touch()
    mode = unfinished.stat().st_mode
    save_file(tensors, unfinished, metadata={"format": "pt"})
    unfinished.chmod(mode)
    os.replace(unfinished, file)
