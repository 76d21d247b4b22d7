"""The types that weights and products may have, and which of them is fastest here."""

from functools import cache
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from wordlight.errors import WordlightError

CPU_FLAGS = Path("/proc/cpuinfo")
# Instructions that multiply bfloat16 and add in float32.
INSTRUCTIONS = {"avx512_bf16", "amx_bf16"}


def float_type(dtype: Any, *, device: Any = None) -> Any:
    """Return the asked type; `"auto"` is `fastest_type` on the device.

    Raises:
        WordlightError: it is none of float32, bfloat16 and float16.
    """
    if isinstance(dtype, str) and dtype == "auto":
        return jnp.dtype(fastest_type(device=device))
    try:
        kind = None if dtype is None else jnp.dtype(dtype)
    except TypeError:
        kind = None
    if kind not in (jnp.float32, jnp.bfloat16, jnp.float16):
        raise WordlightError(
            f"Weights of type {dtype if kind is None else kind} were asked for. It is a short name such as "
            '"bf16", or a type that towers do not compute in. Give jnp.float32, jnp.bfloat16, jnp.float16, '
            'or "auto" for the fastest here.'
        )
    return kind


def fastest_type(*, device: Any = None) -> Any:
    """Return bfloat16 where it has been measured to be faster, else float32.

    That is on processors with instructions for it (AVX512-BF16, AMX). Accelerators have not been measured:
    ask for bfloat16 by name there.

    Args:
        device: a JAX device or sharding; None for JAX's default.
    """
    default = jax.config.jax_default_device or jax.devices()[0]  # pyright: ignore[reportAttributeAccessIssue]
    devices = getattr(device, "device_set", {device or default})
    # The default may be named by its platform alone.
    on_cpu = all(getattr(one, "platform", one) == "cpu" for one in devices)
    return jnp.bfloat16 if on_cpu and _multiplies_bfloat16() else jnp.float32


@cache
def _multiplies_bfloat16() -> bool:
    try:
        flags = CPU_FLAGS.read_text(encoding="utf-8")
    except OSError:
        return False
    return not INSTRUCTIONS.isdisjoint(flags.split())
