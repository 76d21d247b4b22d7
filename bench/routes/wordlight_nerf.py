"""A training step of the NeRF network, 64 + 128 samples a ray: Wordlight."""

from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

from bench.serve import Run, serve
from wordlight.radiance import (
    DensityConfig,
    GridConfig,
    GridField,
    MlpConfig,
    MlpField,
    Rays,
    render_rays,
    value_and_grad_over_rays,
)
from wordlight.radiance.encodings import spherical_harmonics

NERF = MlpConfig(
    frequencies=10,
    hidden=(256,) * 8,
    skip=5,
    direction_degree=3,
    density=DensityConfig(scale=1.0, bias=0.0, blob_strength=0.0),
)


def fields(name: str) -> Any:
    """Return a field: `"mlp"` or `"grid"`."""
    key = jax.random.key(0)
    return MlpField.init(key, NERF) if name == "mlp" else GridField.init(key, GridConfig(direction_degree=3))


class Batch(NamedTuple):
    """Rays, their bounds, and what they should see."""

    rays: Rays
    near: jax.Array
    far: jax.Array
    target: jax.Array


def errors(field: Any, batch: Batch, key: Any) -> jax.Array:
    """Return the squared error of every ray's colour."""
    seen = render_rays(
        field,
        batch.rays,
        key,
        near=batch.near,
        far=batch.far,
        samples=64,
        importance_samples=128,
        background=1.0,
    )
    return jnp.mean(optax.squared_error(seen.colour, batch.target), axis=-1)


def write_inputs(file: Path, rays: int) -> None:
    """Write the rays and the network's weights, for a route that has none of its own."""
    rng, field = np.random.default_rng(0), fields("mlp")
    directions = rng.standard_normal((rays, 3)) * [0.04, 0.04, 0.0] + [0.0, 0.0, -1.0]
    arrays = {
        "origins": np.tile([0.0, 0.0, 3.0], (rays, 1)),
        "directions": directions / np.linalg.norm(directions, axis=-1, keepdims=True),
        "near": np.full(rays, 2.1),
        "far": np.full(rays, 3.9),
        "target": rng.random((rays, 3)),
    }
    arrays["harmonics"] = spherical_harmonics(jnp.asarray(arrays["directions"], jnp.float32), 3)
    layers = {"layer": field.layers, "head": field.head}
    for name, stack in layers.items():
        for index, layer in enumerate(stack):
            arrays |= {f"{name}{index}.weight": layer.weight, f"{name}{index}.bias": layer.bias}
    plain: dict[str, Any] = {name: np.asarray(value, np.float32) for name, value in arrays.items()}
    np.savez(file, **plain)


def prepare(task: dict[str, Any]) -> Run:
    """Read the rays and make the asked field."""
    with np.load(task["inputs"]) as inputs:
        names = ("origins", "directions", "near", "far", "target")
        origins, directions, near, far, target = (jnp.asarray(inputs[name]) for name in names)
    field, batch = fields(task["field"]), Batch(Rays(origins, directions), near, far, target)
    step = sharded(value_and_grad_over_rays(errors, chunk=task["chunk"]))
    return lambda: float(jax.block_until_ready(step(field, batch))[0])


def sharded(step: Any) -> Any:
    """Return the step with its rays divided between all devices: on a CPU, each core is one if asked."""
    mesh = Mesh(np.array(jax.devices()), ("rays",))

    def share(field: Any, batch: Batch) -> Any:
        return jax.tree.map(lambda x: jax.lax.pmean(x, "rays"), step(field, batch))

    specs = P(), P("rays")
    return jax.jit(jax.shard_map(share, mesh=mesh, in_specs=specs, out_specs=P(), check_vma=False))


if __name__ == "__main__":
    serve(prepare)
