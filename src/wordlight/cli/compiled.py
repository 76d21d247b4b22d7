"""Keeping compiled programs on disk, so that a second command starts at once."""

import os
from pathlib import Path


def keep_compiled() -> None:
    """Let JAX keep what it compiles in the user's cache folder, unless it was told where, or told not to.

    `JAX_COMPILATION_CACHE_DIR` names another folder; `JAX_ENABLE_COMPILATION_CACHE=false` turns it off.
    """
    import jax

    if jax.config.jax_compilation_cache_dir is None:  # pyright: ignore[reportAttributeAccessIssue]
        jax.config.update("jax_compilation_cache_dir", str(cache_folder()))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.5)


def cache_folder() -> Path:
    """Return where compiled programs are kept: `wordlight/compiled` in the user's cache folder."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "wordlight" / "compiled"
