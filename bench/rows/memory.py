"""Rows 7 and 8: what memory is needed, each figure from a process of its own."""

from collections.abc import Sequence
from pathlib import Path
from statistics import median

from bench.report import OURS, Row
from bench.workers import Alone, Route, run_alone

MEGABYTE = 1e6
# What compiling leaves is given back before the loss runs (docs/conventions.md), and beside it, not.
HELD = f"{OURS}, what compiling left held"


def whole_images(sizes: Sequence[int], *, rounds: int) -> list[Row]:
    """Return rows of the gradient of a whole image: time and peak memory by its size."""
    replayed = {size: run_alone(_gradient(size, "replayed"), rounds if size < 512 else 1) for size in sizes}
    plain = {size: run_alone(_gradient(size, "plain"), rounds) for size in sizes if size <= 128}
    seconds = Row(
        "7",
        "gradient of a whole image, 4x64 network, 16 samples, chunks replayed, by its size",
        {f"{size}x{size}": found.seconds for size, found in replayed.items()},
        ours=f"{sizes[0]}x{sizes[0]}",
        notes=tuple(_comparison(size, replayed[size], found) for size, found in plain.items()),
    )
    megabytes = {f"{size}x{size}": found.peak / MEGABYTE for size, found in replayed.items()}
    memory = Row("7", "the same, peak memory of the process", megabytes, unit="MB", ours=seconds.ours)
    return [seconds, memory]


def _gradient(size: int, way: str) -> Route:
    return Route(f"{way} {size}", "whole_image", {"size": size, "way": way})


def _comparison(size: int, replayed: Alone, plain: Alone) -> str:
    ratio, memory = replayed.seconds / plain.seconds, plain.peak / MEGABYTE
    apart = abs(replayed.value - plain.value) / abs(plain.value)
    return (
        f"at {size}x{size}: {ratio:.2f} of the plain gradient's time, which takes {memory:.0f} MB; sums "
        f"differ by {apart:.0e}"
    )


def loading(folder: Path, *, rounds: int) -> list[Row]:
    """Return rows of a large checkpoint from disk to its first loss: time and peak memory."""
    ours = {"folder": str(folder), "give_back": True}
    routes = [
        Route(OURS, "wordlight_first_loss", ours),
        Route(HELD, "wordlight_first_loss", ours | {"give_back": False}),
        Route("transformers, PyTorch", "torch_first_loss", {"folder": str(folder)}),
    ]
    found = {route.name: [run_alone(route, 1) for _ in range(rounds)] for route in routes}
    size = (folder / "model.safetensors").stat().st_size
    seconds = {name: median(run.first for run in runs) for name, runs in found.items()}
    peaks = {name: median(run.growth for run in runs) / MEGABYTE for name, runs in found.items()}
    given_back, held = (peaks[name] * MEGABYTE / size for name in (OURS, HELD))
    note = (
        f"the file has {size / MEGABYTE:.0f} MB, of which Wordlight's peak is {given_back:.3f}, {held:.3f} "
        "with what compiling left held"
    )
    return [
        Row("8", "ViT-L/14 from disk to its first loss", seconds),
        Row("8", "the same, growth of peak memory", peaks, unit="MB", notes=(note,)),
    ]
