"""A training step of the NeRF network, 64 + 128 samples a ray: PyTorch, as its NeRF programs write it."""

import math
from typing import Any

import numpy as np
import torch  # pyright: ignore[reportMissingImports]

from bench.serve import Run, serve

FREQUENCIES, SKIP, LAYERS = 10, 5, 8
RAYS = ("origins", "directions", "near", "far", "target")
HARMONICS = 16


class Network(torch.nn.Module):
    """Eight layers of 256, the points again at the sixth, and a head that takes the direction."""

    def __init__(self, weights: dict[str, Any]):
        super().__init__()
        named = {name.replace(".", "_"): torch.nn.Parameter(value) for name, value in weights.items()}
        self.weights = torch.nn.ParameterDict(named)

    def linear(self, name: str, x: Any) -> Any:
        """Apply one layer; weights are [in, out]."""
        return torch.addmm(self.weights[f"{name}_bias"], x, self.weights[f"{name}_weight"])

    def forward(self, points: Any, harmonics: Any) -> tuple[Any, Any]:
        """Return densities `[n]` and colours `[n, 3]`."""
        encoded = encode(points)
        hidden = encoded
        for index in range(LAYERS):
            joined = torch.cat([hidden, encoded], -1) if index == SKIP else hidden
            hidden = torch.relu(self.linear(f"layer{index}", joined))
        raw = self.linear(f"layer{LAYERS}", hidden)
        seen = torch.cat([torch.relu(raw[:, 1:]), harmonics], -1)
        colours = torch.sigmoid(self.linear("head1", torch.relu(self.linear("head0", seen))))
        return torch.nn.functional.softplus(raw[:, 0]), colours


def encode(points: Any) -> Any:
    """Return the points with sines and cosines of ten octaves."""
    scales = math.pi * 2.0 ** torch.arange(FREQUENCIES)
    angles = (points[:, None, :] * scales[:, None]).reshape(len(points), -1)
    return torch.cat([points, torch.sin(angles), torch.cos(angles)], -1)


def look(network: Network, rays: dict[str, Any], distances: Any) -> tuple[Any, Any, Any]:
    """Return edges, weights and colours of samples along the rays."""
    middles = (distances[:, 1:] + distances[:, :-1]) / 2
    edges = torch.cat([rays["near"][:, None], middles, rays["far"][:, None]], -1)
    points = rays["origins"][:, None] + distances[..., None] * rays["directions"][:, None]
    harmonics = rays["harmonics"][:, None].expand(-1, distances.shape[1], -1)
    densities, colours = network(points.reshape(-1, 3), harmonics.reshape(-1, HARMONICS))
    alpha = 1 - torch.exp(-densities.reshape(distances.shape) * edges.diff(dim=-1))
    through = torch.cumprod(torch.cat([torch.ones_like(alpha[:, :1]), 1 - alpha + 1e-10], -1), -1)[:, :-1]
    return edges, alpha * through, colours.reshape(*distances.shape, 3)


def more_distances(edges: Any, weights: Any, count: int) -> Any:
    """Return distances where the weights are, by inverting their distribution at even steps."""
    weights = weights + 1e-5
    density = weights / weights.sum(-1, keepdim=True)
    above = torch.cumsum(density, -1).clamp(max=1.0)
    numbers = ((torch.arange(count) + 0.5) / count).expand(len(edges), count).contiguous()
    bins = torch.searchsorted(above, numbers, right=True).clamp(max=weights.shape[-1] - 1)
    start, width = edges[:, :-1].gather(1, bins), edges.diff(dim=-1).gather(1, bins)
    inside = 1 - (above.gather(1, bins) - numbers) / density.gather(1, bins)
    return start + width * inside.clamp(0, 1)


def render(network: Network, rays: dict[str, Any]) -> Any:
    """Return colours over white, 64 samples first and 128 more where they found something."""
    near, far = rays["near"][:, None], rays["far"][:, None]
    first = near + (far - near) * ((torch.arange(64) + 0.5) / 64)
    with torch.no_grad():
        edges, weights, _ = look(network, rays, first)
        distances = torch.sort(torch.cat([first, more_distances(edges, weights, 128)], -1), -1).values
    _, weights, colours = look(network, rays, distances)
    return (weights[..., None] * colours).sum(1) + (1 - weights.sum(1, keepdim=True))


def prepare(task: dict[str, Any]) -> Run:
    """Read rays and weights."""
    with np.load(task["inputs"]) as inputs:
        torch.set_default_device(task["device"])
        arrays = {name: torch.tensor(inputs[name]) for name in inputs}
    rays = {name: arrays[name] for name in (*RAYS, "harmonics")}
    weights = {name: value for name, value in arrays.items() if name not in rays}
    network = Network(weights)
    seen = torch.compile(network) if task.get("compile") else network
    count = len(rays["target"])
    chunk = task.get("chunk", count)
    parts = [{name: values[i : i + chunk] for name, values in rays.items()} for i in range(0, count, chunk)]

    def run() -> float:
        network.zero_grad(set_to_none=True)
        total = 0.0
        for part in parts:
            loss = torch.sum((render(seen, part) - part["target"]) ** 2) / (3 * count)
            loss.backward()
            total += float(loss)
        return total

    return run


if __name__ == "__main__":
    serve(prepare)
