"""Reading and writing weights: every tensor used, every leaf filled, or an error that lists both."""

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from wordlight.clip.layers import Params
from wordlight.clip.layouts import Source
from wordlight.errors import WordlightError

# Buffers that the reference programs save and that follow from the configuration.
BUFFERS = re.compile(r"(position_ids|num_batches_tracked|attn_mask)$")
FLOATS = ("float16", "bfloat16", "float32", "float64")
LISTED = 12


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

    def read(self, name: str) -> np.ndarray:
        """Return a tensor."""
        return self._where[name].get_tensor(name)


def _open(file: Path) -> Any:
    try:
        return safe_open(file, framework="numpy")
    except (SafetensorError, OSError) as error:
        raise WordlightError(
            f"{file} is not a readable safetensors file ({error}). The download was probably cut short, or the file is a "
            "Git LFS pointer. Fetch it again and compare its size with the Hub's."
        ) from error


def weight_files(folder: Path, stem: str) -> list[Path]:
    """Return the files of `stem`.safetensors: the one, or the shards its index names.

    Raises:
        WordlightError: there is neither, or a shard is missing or lies outside the folder.
    """
    single, index = folder / f"{stem}.safetensors", folder / f"{stem}.safetensors.index.json"
    if single.is_file():
        return [single]
    if not index.is_file():
        others = sorted(p.name for p in folder.glob("*") if p.suffix in (".bin", ".pt", ".safetensors", ".h5", ".msgpack"))
        raise WordlightError(
            f"{folder} holds no {single.name} and no {index.name} (weights there: {others or 'none'}). Only safetensors "
            "are read, as other formats can run code when opened. Convert the checkpoint with the program that wrote it: "
            "model.save_pretrained(folder, safe_serialization=True)."
        )
    return _shards(folder, index)


def _shards(folder: Path, index: Path) -> list[Path]:
    names = sorted(set(read_json(index).get("weight_map", {}).values()))
    wrong = [n for n in names if not isinstance(n, str) or Path(n).name != n or not (folder / n).is_file()]
    if wrong or not names:
        raise WordlightError(
            f"{index.name} names shards that are not in its folder: {wrong or 'none at all'}. The download is "
            "incomplete, or the index was edited. Fetch the whole repository again."
        )
    return [folder / name for name in names]


def read_json(file: Path) -> dict[str, Any]:
    """Return the JSON object in a file.

    Raises:
        WordlightError: it cannot be read, or holds something else.
    """
    try:
        value = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise WordlightError(
            f"{file} cannot be read as JSON ({error}). The file is missing, cut short or not text. Fetch it again."
        ) from error
    if not isinstance(value, dict):
        raise WordlightError(
            f"{file} holds a JSON {type(value).__name__}, not an object. It is probably another file under this name. "
            "Fetch it again."
        )
    return value


def read_params(files: list[Path], layout: Params, expected: Params) -> Params:
    """Read the weights of a layout, converted to our arrangement, as float32.

    Args:
        files: safetensors files.
        layout: a tree of `Source`.
        expected: a tree of the same structure with the shapes the configuration asks for.

    Raises:
        WordlightError: tensors are missing, left over, of another shape, not floats or not finite; all are named.
    """
    with ExitStack() as stack:
        tensors = TensorFiles(stack, files)
        problems = list(_mismatches(tensors, layout, expected))
        if problems:
            raise _refusal(files[0].parent, problems)
        params = jax.tree.map(lambda s, e: _read_one(tensors, s, e.shape), layout, expected, is_leaf=_is_source)
    return params


def _is_source(x: Any) -> bool:
    return isinstance(x, Source)


def _mismatches(tensors: TensorFiles, layout: Params, expected: Params) -> Iterator[str]:
    left = tensors.names()
    sources = jax.tree.leaves(layout, is_leaf=_is_source)
    for source, leaf in zip(sources, jax.tree.leaves(expected), strict=True):
        want = source.theirs_shape(leaf.shape)
        for name in source.names:
            if name not in left:
                yield f"missing {name} {want}"
            elif tensors.shape(name) not in (want, want or (1,)):
                yield f"{name} is {tensors.shape(name)}, the configuration says {want}"
            left.discard(name)
    yield from (f"left over {name} {tensors.shape(name)}" for name in sorted(left))


def _refusal(folder: Path, problems: list[str]) -> WordlightError:
    listed = "\n  ".join(problems[:LISTED])
    more = f"\n  and {len(problems) - LISTED} more" if len(problems) > LISTED else ""
    return WordlightError(
        f"The weights in {folder} do not fit their configuration ({len(problems)} tensors):\n  {listed}{more}\nThe "
        "checkpoint is of another architecture, or its config file belongs to another model. Check that both come from "
        "the same repository."
    )


def _read_one(tensors: TensorFiles, source: Source, shape: tuple[int, ...]) -> jax.Array:
    parts = [tensors.read(name) for name in source.names]
    for name, part in zip(source.names, parts, strict=True):
        if str(part.dtype) not in FLOATS or not np.isfinite(part.astype(np.float32)).all():
            raise WordlightError(
                f"Tensor {name} ({part.dtype}) holds values that are not finite floats. The checkpoint is damaged, "
                "quantised, or its training diverged. Use another copy, in float16, bfloat16 or float32."
            )
    return jnp.asarray(source.to_ours(parts, shape).reshape(shape), jnp.float32)


def write_params(file: Path, params: Params, layout: Params, *, dtype: Any = np.float32) -> None:
    """Write weights under a layout's names; the inverse of `read_params` for dtype float32."""
    tensors: dict[str, np.ndarray] = {}
    sources = jax.tree.leaves(layout, is_leaf=_is_source)
    for source, leaf in zip(sources, jax.tree.leaves(params), strict=True):
        converted = source.to_theirs(np.asarray(leaf, dtype))
        tensors |= {name: np.ascontiguousarray(value) for name, value in converted.items()}
    save_file(tensors, file, metadata={"format": "pt"})
