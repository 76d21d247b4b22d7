"""The table of traced views of every kind, made once for a seed and kept on disk."""

import hashlib
import os
from pathlib import Path

import jax
import numpy as np
from jaxtyping import Float, UInt8

from wordlight.data.world.objects import KINDS
from wordlight.data.world.trace import SIZE, Views, sample_views, trace
from wordlight.viewpoints import view_shares

SOURCES = ("shapes.py", "parts.py", "vehicles.py", "objects.py", "trace.py")


def table_views(seed: int, kind: int, count: int) -> Views:
    """Return the views of one kind, by its index, in the table of that seed."""
    return sample_views(jax.random.fold_in(jax.random.key(seed), kind), count)


def table_shares(seed: int, views_per_kind: int) -> Float[np.ndarray, "kinds views 4"]:
    """Return how much of each view of a table is front, side, back and overhead."""
    views = [table_views(seed, index, views_per_kind) for index in range(len(KINDS))]
    return np.stack([np.asarray(view_shares(v.azimuth, v.elevation)) for v in views])


def render_table(
    seed: int, views_per_kind: int, *, cache: str | os.PathLike[str] | None = None
) -> UInt8[np.ndarray, "kinds views 64 64 6"]:
    """Return packed G-buffers of every kind, in the order of `KINDS`; about 24 KiB a view.

    Args:
        seed: draws views and proportions; the same seed gives the same table.
        views_per_kind: views of each kind.
        cache: a folder that keeps tables. A table found there is mapped read-only, not traced again; its name
            holds the seed, the size and a fingerprint of the code that makes it.
    """
    if cache is None:
        return _trace_all(seed, views_per_kind)
    path = Path(cache) / f"world-{seed}-{views_per_kind}-{_fingerprint()}.npy"
    if not path.exists():
        _save(path, _trace_all(seed, views_per_kind))
    return np.load(path, mmap_mode="r")


def _trace_all(seed: int, count: int) -> UInt8[np.ndarray, "kinds views 64 64 6"]:
    table = np.empty((len(KINDS), count, SIZE, SIZE, 6), np.uint8)
    for index, kind in enumerate(KINDS):
        table[index] = trace(kind, table_views(seed, index, count))
    return table


def _save(path: Path, table: UInt8[np.ndarray, "kinds views 64 64 6"]) -> None:
    """Write under another name first, so that an interrupted write leaves no broken table."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(f".{os.getpid()}.partial")
    with partial.open("wb") as file:
        np.save(file, table)
    partial.replace(path)


def _fingerprint() -> str:
    """Return a digest of the code that shapes and traces objects."""
    folder = Path(__file__).parent
    return hashlib.sha256(b"".join((folder / name).read_bytes() for name in SOURCES)).hexdigest()[:12]
