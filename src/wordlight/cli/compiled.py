"""Keeping compiled programs on disk, so that a second command starts at once."""

import os
from pathlib import Path

LEAST_SECONDS = "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"  # what compiles faster is not kept


def keep_compiled() -> None:
    """Let JAX keep what it compiles in the user's cache folder, unless it was told where, or told not to.

    `JAX_COMPILATION_CACHE_DIR` names another folder; `JAX_ENABLE_COMPILATION_CACHE=false` turns it off.
    """
    import jax

    if jax.config.jax_compilation_cache_dir is None:  # pyright: ignore[reportAttributeAccessIssue]
        folder = cache_folder()
        if folder is None:
            return
        jax.config.update("jax_compilation_cache_dir", str(folder))
        if LEAST_SECONDS not in os.environ:
            jax.config.update(LEAST_SECONDS.lower(), 0.5)


def cache_folder() -> Path | None:
    """Return where compiled programs are kept: `wordlight/compiled` in the user's cache folder; None for a
    user without one."""
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        return (Path(base) if base else Path.home() / ".cache") / "wordlight" / "compiled"
    except RuntimeError:
        return None
