"""Rows 1 and 2: CLIP's loss and its gradient at the pixels, in float32 and with bfloat16 products."""

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from bench.report import OURS, Row
from bench.workers import FLAX, KEPT_MEMORY, Route, Turns, take_turns
from wordlight.clip.config import VitConfig
from wordlight.clip.processing import read_processing

REDUCED = f"{OURS}, bfloat16"
# With one image a step needs less than the 32 MB that glibc keeps anyway; see docs/conventions.md.
GIVEN_BACK, KEPT = ", memory given back", ", memory kept"
RATE_SIZE = 2048
RATES = {dtype: f"product of {RATE_SIZE}x{RATE_SIZE} matrices, {dtype}" for dtype in ("float32", "bfloat16")}


def measure(folder: Path, *, batch: int, rounds: int, device: str = "cpu") -> Iterator[Row]:
    """Yield the row in float32, then that with bfloat16 products; all routes take turns together.

    Args:
        folder: of the checkpoint.
        batch: images a step.
        rounds: turns of every route.
        device: of PyTorch; JAX takes the best there is.
    """
    vision = read_processing(folder).config.vision
    assert isinstance(vision, VitConfig)
    work = 2 * batch * image_flops(vision)  # the gradient at the pixels costs as much as the value
    with tempfile.TemporaryDirectory() as name:
        plain, reduced, rates = routes(folder, batch, Path(name), device)
        turns = take_turns([*plain, *reduced, *rates], rounds)
        alike = cosine(*(np.load(r.task["gradient"]) for r in (plain[0], reduced[0])))
    what = f"CLIP loss and gradient at the pixels, ViT-B/32 at 224, batch {batch}"
    yield row("1", f"{what}, float32", turns, plain, work / rate(turns, "float32"))
    note = f"cosine of the gradient with that of float32: {alike:.6f}"
    limit = work / rate(turns, "bfloat16")
    yield row(
        "2", f"{what}, bfloat16 products", turns, [*reduced, *plain], limit, ours=REDUCED, notes=(note,)
    )


def routes(
    folder: Path, batch: int, scratch: Path, device: str
) -> tuple[list[Route], list[Route], list[Route]]:
    """Return the routes in float32, those in bfloat16, ours first, and those that measure the hardware."""

    def ours(name: str, dtype: str) -> list[Route]:
        task = {"folder": str(folder), "batch": batch, "dtype": dtype}
        saving = task | {"gradient": str(scratch / f"{dtype}.npy")}
        advised, other, suffix = (KEPT_MEMORY, {}, GIVEN_BACK) if batch > 1 else ({}, KEPT_MEMORY, KEPT)
        return [
            Route(name, "wordlight_clip", saving, environment=advised),
            Route(f"{name}{suffix}", "wordlight_clip", task, environment=other),
        ]

    def torch(name: str, precision: str, *, compiled: bool = False) -> Route:
        task = {"folder": str(folder), "batch": batch, "precision": precision}
        return Route(f"PyTorch{name}", "torch_clip", task | {"compile": compiled, "device": device})

    flax = Route("Flax", "flax_clip", {"folder": str(folder), "batch": batch}, FLAX)
    torchax = Route("PyTorch's model in JAX, torchax", "torchax_clip", flax.task, FLAX)
    plain = [*ours(OURS, "float32"), flax, replace(flax, name=f"Flax{KEPT}", environment=KEPT_MEMORY)]
    plain += [torchax, torch("", "float32"), torch(", torch.compile", "float32", compiled=True)]
    reduced = [*ours(REDUCED, "bfloat16"), torch(", autocast", "autocast"), torch(", bfloat16", "bfloat16")]
    if device != "cpu":
        reduced.append(torch(", bfloat16, torch.compile", "bfloat16", compiled=True))
    rates = [Route(RATES[d], "matrix_rate", {"size": RATE_SIZE, "dtype": d}) for d in RATES]
    return plain, reduced, rates


def row(
    number: str,
    title: str,
    turns: Turns,
    chosen: Sequence[Route],
    limit: float,
    *,
    ours: str = OURS,
    notes: tuple[str, ...] = (),
) -> Row:
    """Return the row of some of the routes that took turns."""
    values = {r.name: turns.median(r.name) for r in chosen if r.name in turns.seconds}
    failed = tuple((r.name, turns.failed[r.name]) for r in chosen if r.name in turns.failed)
    return Row(number, title, values, "s", limit, failed, notes, ours)


def rate(turns: Turns, dtype: str) -> float:
    """Return operations a second of the large product."""
    return 2 * RATE_SIZE**3 / turns.median(RATES[dtype])


def image_flops(vision: VitConfig) -> int:
    """Return the operations of an image's matrix products, forwards, each multiplication and sum one.

    Of the last block only the class token is needed, and keys and values of all.
    """
    config = vision.transformer
    d, n = config.width, vision.tokens
    mixing = 2 * d * d + 2 * d * config.mlp_width  # a token's query, output and MLP
    keys = 2 * d * d
    blocks = (config.layers - 1) * n * (mixing + keys + 2 * n * d) + mixing + n * (keys + 2 * d)
    patches = 3 * vision.patch_size**2 * d * (n - vision.class_token)
    return 2 * (blocks + patches)


def cosine(x: np.ndarray, y: np.ndarray) -> float:
    """Return the cosine between two arrays."""
    return float(np.vdot(x, y) / np.linalg.norm(x) / np.linalg.norm(y))
