"""The price of CLIP through the host: `python -m bench.host_callback`, in the parity environment.

One loss and its gradient at the pixels, compiled by JAX: with the native image tower, and with transformers'
model on the host, from the same weights. PyTorch without JAX is timed beside them, to tell the model from the
trip. The routes take turns in one run, so that whatever else the machine does falls on all of them.
"""

import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch  # pyright: ignore[reportMissingImports]
import tyro
from transformers import CLIPModel  # pyright: ignore[reportMissingImports]

from bench.checkpoints import vit_b_32
from bench.routes.torch_clip import Loss
from bench.routes.wordlight_clip import step as native_step
from wordlight import host
from wordlight.clip.load import load

Route = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True)
class Options:
    """What to measure.

    Attributes:
        model: folder of a checkpoint in Hugging Face layout; without it, ViT-B/32 with random weights.
        batch: images in a step.
        rounds: timed turns of every route, after two that are not timed.
        device: of the PyTorch model, such as "cuda".
    """

    model: Path | None = None
    batch: int = 1
    rounds: int = 20
    device: str = "cpu"


def native_route(folder: Path, target: np.ndarray) -> Route:
    model = load(folder).without_text()
    return lambda pixels: ready(native_step(model, jnp.asarray(pixels), jnp.asarray(target)))


def torch_loss(folder: Path, target: np.ndarray, device: str) -> Any:
    """Return the same loss as a module."""
    model = CLIPModel.from_pretrained(folder).eval().requires_grad_(False)
    return Loss(model, torch.tensor(target)).to(device).eval()


def callback_route(module: Any) -> Route:
    step = jax.jit(jax.value_and_grad(host.torch(module, output=jax.ShapeDtypeStruct((), jnp.float32))))
    return lambda pixels: ready(step(jnp.asarray(pixels)))


def torch_route(module: Any, device: str) -> Route:
    def step(pixels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        inputs = torch.tensor(pixels, device=device, requires_grad=True)
        loss = module(inputs)
        (gradient,) = torch.autograd.grad(loss, inputs)
        return loss.detach().cpu().numpy(), gradient.cpu().numpy()

    return step


def ready(results: Any) -> tuple[np.ndarray, np.ndarray]:
    value, gradient = jax.block_until_ready(results)
    return np.asarray(value), np.asarray(gradient)


def in_turn(routes: dict[str, Route], pixels: np.ndarray, rounds: int) -> dict[str, list[float]]:
    """Return seconds of each route, which took turns."""
    seconds: dict[str, list[float]] = {name: [] for name in routes}
    for turn in range(-2, rounds):
        for name, route in routes.items():
            start = time.perf_counter()
            route(pixels)
            if turn >= 0:
                seconds[name].append(time.perf_counter() - start)
    return seconds


def table(seconds: dict[str, list[float]]) -> str:
    """Return medians, quartiles and ratios to the first route as Markdown."""
    lines = ["| route | median, ms | quartiles, ms | ratio |", "|---|---|---|---|"]
    first = statistics.median(next(iter(seconds.values())))
    for name, times in seconds.items():
        low, middle, high = (1e3 * value for value in quartiles(times))
        lines.append(f"| {name} | {middle:.1f} | {low:.1f} to {high:.1f} | {middle / 1e3 / first:.2f} |")
    return "\n".join(lines)


def quartiles(times: Sequence[float]) -> list[float]:
    return [float(value) for value in np.quantile(times, [0.25, 0.5, 0.75])]


def measured(folder: Path, options: Options) -> dict[str, list[float]]:
    """Compare the routes' numbers, then return the seconds of each."""
    size, embed = load(folder).config.vision.image_size, load(folder).config.embed_dim
    rng = np.random.default_rng(0)
    pixels = rng.standard_normal((options.batch, 3, *size), dtype=np.float32)
    target = rng.standard_normal(embed, dtype=np.float32)
    target /= np.linalg.norm(target)
    module = torch_loss(folder, target, options.device)
    routes = {
        "native tower": native_route(folder, target),
        "host callback": callback_route(module),
        "PyTorch alone": torch_route(module, options.device),
    }
    native, called = (routes[name](pixels)[1] for name in ("native tower", "host callback"))
    difference = np.linalg.norm(native - called) / np.linalg.norm(native)
    print(f"JAX on {jax.devices()[0].device_kind}, PyTorch on {options.device}, {options.batch} images")
    print(f"relative difference of the gradients: {difference:.1e}\n")
    return in_turn(routes, pixels, options.rounds)


def main(options: Options) -> None:
    """Measure a given checkpoint or a random one."""
    with tempfile.TemporaryDirectory() as name:
        print(table(measured(options.model or vit_b_32(Path(name)), options)))


if __name__ == "__main__":
    main(tyro.cli(Options))
