"""Row 5: CLIP through the host, beside the native tower."""

import statistics
from pathlib import Path

from bench.host_callback import Options, measured
from bench.report import OURS, Row


def measure(folder: Path, *, batch: int, rounds: int) -> Row:
    """Return the row; the routes take turns in one process, as the callback needs both frameworks there."""
    seconds = measured(folder, Options(batch=batch, rounds=rounds))
    native, *others = (statistics.median(times) for times in seconds.values())
    values = {OURS: native, **dict(zip(list(seconds)[1:], others, strict=True))}
    return Row("5", f"the loss through a host callback, ViT-B/32, batch {batch}", values)
