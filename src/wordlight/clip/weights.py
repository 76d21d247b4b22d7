"""Reading and writing weights: every tensor used, every leaf filled, or an error that lists both."""

import json
import os
import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from wordlight.clip.layers import Params
from wordlight.clip.layouts import Source
from wordlight.errors import WordlightError

# Buffers that the reference programs save and that follow from the configuration.
BUFFERS = re.compile(r"(position_ids|num_batches_tracked|attn_mask)$")
FLOATS = ("F16", "BF16", "F32", "F64")
OTHER_FORMATS = (".bin", ".pt", ".pth", ".ckpt", ".safetensors", ".h5", ".msgpack")


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


def weight_files(folder: Path, stem: str) -> list[Path]:
    """Return the files of `stem`.safetensors: the one, or the shards its index names.

    Raises:
        WordlightError: there is neither, or a shard is missing or lies outside the folder.
    """
    single, index = folder / f"{stem}.safetensors", folder / f"{stem}.safetensors.index.json"
    if single.is_file():
        return [single]
    if index.is_file():
        return _shards(folder, index)
    others = sorted(p.name for p in folder.iterdir() if p.suffix in OTHER_FORMATS)
    raise WordlightError(
        f"{folder} holds no file {single.name} and no {index.name} (weights there: {others or 'none'}). Only "
        "safetensors are read, as other formats can run code when opened. Convert the checkpoint with the "
        "program that wrote it, model.save_pretrained(folder); on the Hub, a converted copy often waits in a "
        "pull request: give revision='refs/pr/NUMBER' with the number under its Community tab."
    )


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


def read_params(files: list[Path], layout: Params, expected: Params) -> Params:
    """Read the weights of a layout, converted to our arrangement, as float32.

    Args:
        files: safetensors files.
        layout: a tree of `Source`.
        expected: a tree of the same structure with the shapes the configuration asks for.

    Raises:
        WordlightError: tensors are missing, left over, of another shape, not floats or not finite; all are
            named.
    """
    with ExitStack() as stack:
        tensors = TensorFiles(stack, files)
        problems = list(_mismatches(tensors, layout, expected))
        if problems:
            raise _refusal(files[0].parent, problems)
        broken: list[str] = []
        params = jax.tree.map(
            lambda s, e: _read_one(tensors, s, e.shape, broken), layout, expected, is_leaf=_is_source
        )
    if broken:
        raise _not_finite(files[0].parent, broken)
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


def _not_finite(folder: Path, names: list[str]) -> WordlightError:
    listed = "\n  ".join(names)
    return WordlightError(
        f"The weights in {folder} hold values that are not finite ({len(names)} tensors):\n  {listed}\nThe "
        "file is damaged, or the training that made it diverged. Fetch it again, or use another checkpoint."
    )


def _read_one(
    tensors: TensorFiles, source: Source, shape: tuple[int, ...], broken: list[str]
) -> Float[Array, "..."]:
    """Return one weight; names of tensors that are not finite are added to `broken`."""
    with np.errstate(over="ignore"):  # a float64 beyond float32 becomes infinite, and is refused as such
        parts = [tensors.read(name).astype(np.float32, copy=False) for name in source.names]
    broken += [n for n, part in zip(source.names, parts, strict=True) if not np.isfinite(part).all()]
    return jnp.asarray(source.to_ours(parts, shape).reshape(shape))


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
    save_file(tensors, unfinished, metadata={"format": "pt"})
    os.replace(unfinished, file)
