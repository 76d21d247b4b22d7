"""Views spread over devices: the same code on one of them and on many."""

from collections.abc import Sequence
from typing import Any, TypeVar

import jax
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from wordlight.errors import WordlightError

AXIS = "views"
Tree = TypeVar("Tree")


def make_mesh(views: int, *, devices: Sequence[Any] | None = None) -> Mesh:
    """Return a mesh of one axis, `"views"`.

    Args:
        views: how many views a step has.
        devices: what to use. None takes the local devices, as many as share the views out evenly.

    Raises:
        WordlightError: the views are no multiple of the given devices.
    """
    if devices is None:
        local = jax.local_devices()
        devices = local[: max(n for n in range(1, len(local) + 1) if views % n == 0)]
    if not devices or views % len(devices):
        raise WordlightError(
            f"{views} views cannot be shared out evenly over {len(devices)} devices. Each device renders the "
            "same number of views in a step. Choose a number of views that is a multiple of the devices, or "
            "fewer devices."
        )
    return Mesh(np.asarray(devices), (AXIS,), axis_types=(AxisType.Auto,))


def shard(batch: Tree, mesh: Mesh) -> Tree:
    """Put every array's leading axis in equal parts on the mesh's devices."""
    return jax.device_put(batch, NamedSharding(mesh, PartitionSpec(AXIS)))


def replicate(tree: Tree, mesh: Mesh) -> Tree:
    """Put a copy of every array on each of the mesh's devices."""
    return jax.device_put(tree, NamedSharding(mesh, PartitionSpec()))


def gather(tree: Tree) -> Tree:
    """Put every array on one device, so that what comes next is done once."""
    return jax.device_put(tree, jax.local_devices()[0])
