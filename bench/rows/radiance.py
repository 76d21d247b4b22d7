"""Row 6: a training step of a radiance field, forwards and backwards."""

import math
import os
import tempfile
from pathlib import Path

from bench.report import OURS, Row
from bench.routes.wordlight_nerf import NERF, write_inputs
from bench.rows.preparing import differences, medians
from bench.rows.towers import RATE_SIZE, RATES, rate
from bench.workers import Route, take_turns
from wordlight.radiance.fields import direction_channels

COARSE, FINE = 64, 192
CHUNK = 8  # rays whose activations fit a processor's cache
TORCH_CHUNK = 64  # what serves PyTorch best


def measure(*, rays: int, rounds: int, device: str = "cpu") -> Row:
    """Return the row of the 8x256 network at 64 + 128 samples a ray; `device` is PyTorch's."""
    with tempfile.TemporaryDirectory() as name:
        inputs = Path(name) / "inputs.npz"
        write_inputs(inputs, rays)
        task = {"inputs": str(inputs)}
        chunk = CHUNK if device == "cpu" else rays
        count = math.gcd(rays, os.cpu_count() or 1)
        cores = {"XLA_FLAGS": f"--xla_force_host_platform_device_count={count}"}
        routes = [
            Route(OURS, "wordlight_nerf", task | {"field": "mlp", "chunk": chunk}, environment=cores),
            Route("PyTorch", "torch_nerf", task | {"device": device}),
            Route("PyTorch, torch.compile", "torch_nerf", task | {"compile": True, "device": device}),
            Route("PyTorch, in chunks", "torch_nerf", task | {"chunk": TORCH_CHUNK, "device": device}),
            Route(f"{OURS}, grid field", "wordlight_nerf", task | {"field": "grid", "chunk": rays}),
            Route(RATES["float32"], "matrix_rate", {"size": RATE_SIZE, "dtype": "float32"}),
        ]
        turns = take_turns(routes, rounds)
    limit = work(rays) / rate(turns, "float32")
    values = {name: value for name, value in medians(turns).items() if name not in RATES.values()}
    notes = (f"{rays / values[OURS]:.0f} rays a second", *differences(turns, OURS, "PyTorch"))
    title = f"training step of the 8x256 NeRF network, {rays} rays, 64 + 128 samples"
    return Row("6", title, values, limit=limit, failed=tuple(turns.failed.items()), notes=notes)


def work(rays: int) -> int:
    """Return the operations of the step's products: one pass without gradient, one with."""
    forward = 2 * multiplications() * rays
    return COARSE * forward + FINE * 3 * forward


def multiplications() -> int:
    """Return the multiplications of the network at one point."""
    encoded, width = 3 + 6 * NERF.frequencies, NERF.hidden[-1]
    inner = (len(NERF.hidden) - 1) * width * width + encoded * width
    head = (width + direction_channels(NERF.direction_degree)) * width // 2 + width // 2 * 3
    return encoded * width + inner + width * (1 + width) + head
