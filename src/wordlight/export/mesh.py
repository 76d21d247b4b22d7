"""A density field to a closed, coloured triangle mesh."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Float32, Int32

from wordlight.errors import WordlightError
from wordlight.export.gltf import write_glb
from wordlight.export.ply import write_ply

_SUFFIXES = (".glb", ".ply")


@dataclass(frozen=True, eq=False)
class Mesh:
    """A triangle mesh on the host, in scene units and world axes (+Z up, front towards +X).

    Attributes:
        vertices: positions.
        faces: three vertex indices each, counter-clockwise seen from outside.
        normals: outward unit vectors, one a vertex.
        colours: sRGB values in [0, 1], one a vertex.
    """

    vertices: Float32[np.ndarray, "vertices 3"]
    faces: Int32[np.ndarray, "faces 3"]
    normals: Float32[np.ndarray, "vertices 3"]
    colours: Float32[np.ndarray, "vertices 3"]


def extract_mesh(
    density_fn: Callable[[Float[Array, "n 3"]], Float[Array, " n"]],
    colour_fn: Callable[[Float[Array, "n 3"], Float[Array, "n 3"]], Float[Array, "n 3"]],
    *,
    threshold: float = 10.0,
    resolution: int = 96,
    half_extent: float = 1.0,
    min_part: float = 0.02,
    chunk: int = 65536,
) -> Mesh:
    """Return the surface where the density is `threshold` (Lorensen and Cline 1987; Lewiner et al. 2003).

    The mesh is closed: what reaches the border of the cube ends there in a flat face. Not differentiable.

    Args:
        density_fn: positions -> densities, per scene unit and at least 0.
        colour_fn: positions and unit viewing directions -> sRGB values; each vertex is looked at along its
            inward normal. A field without view dependence ignores the directions.
        threshold: density of the surface, above 0.
        resolution: samples along each side of the cube.
        half_extent: the cube is |x| <= half_extent in each axis.
        min_part: parts of less than this share of the largest part's volume are left out; 0 keeps all.
        chunk: positions in one call of the functions; every call has this many, so each compiles once.

    Raises:
        WordlightError: impossible options, densities that are not finite, or no density above the threshold.
    """
    _check_options(threshold, resolution, half_extent, min_part, chunk)
    axis = np.linspace(-half_extent, half_extent, resolution, dtype=np.float32)
    grid = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), axis=-1).reshape(-1, 3)
    densities = _in_chunks(density_fn, chunk, grid).reshape((resolution,) * 3)
    _check_densities(densities, threshold)
    vertices, faces = _surface(_without_small_parts(densities, threshold, min_part), threshold, half_extent)
    normals = _vertex_normals(vertices, faces)
    colours = np.clip(_in_chunks(colour_fn, chunk, vertices, -normals), 0.0, 1.0)
    return Mesh(vertices, faces, normals, colours)


def save_mesh(path: str | os.PathLike[str], mesh: Mesh, *, unlit: bool = True) -> None:
    """Write a mesh as .glb or .ply; the file appears whole or not at all.

    A .glb has +Y up and its front towards +Z, as glTF wants (2.0, section 3.4): world (x, y, z) becomes (y,
    z, x). Its colours are linear light (section 3.7.2.1), so that viewers show the field's sRGB values. A
    .ply keeps world axes, and sRGB values in bytes.

    Args:
        path: the suffix chooses the format.
        mesh: what to write.
        unlit: ask viewers of the .glb to show colours as they are (KHR_materials_unlit): a radiance field's
            colours hold its light already. False gives a matt material that the viewer's lights shade.

    Raises:
        WordlightError: a suffix of another format.
    """
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in _SUFFIXES:
        raise WordlightError(
            f"A mesh cannot be written to {path.name!r}: {suffix!r} is no format known here. "
            f"The suffix chooses the format. Use one of {', '.join(_SUFFIXES)}."
        )
    if suffix == ".ply":
        write_ply(path, mesh.vertices, mesh.faces, mesh.normals, mesh.colours)
        return
    y_up = [1, 2, 0]
    write_glb(path, mesh.vertices[:, y_up], mesh.faces, mesh.normals[:, y_up], mesh.colours, unlit=unlit)


def _check_options(
    threshold: float, resolution: int, half_extent: float, min_part: float, chunk: int
) -> None:
    impossible = [
        f"{name}={value} (has to be {rule})"
        for name, value, holds, rule in (
            ("threshold", threshold, 0 < threshold < np.inf, "above 0: empty space has density 0"),
            ("resolution", resolution, 2 <= resolution <= 1024, "from 2 to 1024"),
            ("half_extent", half_extent, 0 < half_extent < np.inf, "above 0"),
            ("min_part", min_part, 0 <= min_part <= 1, "from 0 to 1"),
            ("chunk", chunk, chunk >= 1, "at least 1"),
        )
        if not holds
    ]
    if impossible:
        raise WordlightError(
            f"No mesh can be made with {', '.join(impossible)}. "
            "A unit mixed up, such as a share in percent, is the usual cause. Pass values in these ranges."
        )


def _check_densities(densities: np.ndarray, threshold: float) -> None:
    if not np.isfinite(densities).all():
        raise WordlightError(
            f"{np.count_nonzero(~np.isfinite(densities))} of {densities.size} densities are not finite. "
            "Training that diverged is the usual cause. Use an earlier checkpoint or a smaller learning rate."
        )
    if densities.max() <= threshold:
        raise WordlightError(
            f"The field has no surface at density {threshold:g}: "
            f"densities range from {densities.min():.4g} to {densities.max():.4g} in the cube. "
            "A field that dissolved in training, or fog thinner than the threshold, is the usual cause. "
            "Pass a threshold inside the range, or train longer with a higher opacity target."
        )


def _in_chunks(function: Callable, chunk: int, *inputs: np.ndarray) -> np.ndarray:
    """Evaluate a function of rows in calls of one size; the last is filled up with its last row and cut."""
    count = len(inputs[0])
    results = []
    for start in range(0, count, chunk):
        rows = np.minimum(np.arange(start, start + chunk), count - 1)
        values = function(*(jnp.asarray(array[rows]) for array in inputs))
        results.append(np.asarray(values, np.float32)[: count - start])
    return np.concatenate(results)


def _without_small_parts(densities: np.ndarray, threshold: float, min_part: float) -> np.ndarray:
    """Empty the samples of parts that are small beside the largest; parts that touch at a corner are one."""
    from skimage.measure import label

    parts = np.asarray(label(densities > threshold, connectivity=3))
    volumes = np.bincount(parts.ravel())
    volumes[0] = 0
    small = volumes < min_part * volumes.max()
    small[0] = False
    return np.where(small[parts], 0.0, densities)


def _surface(densities: np.ndarray, threshold: float, half_extent: float) -> tuple[np.ndarray, np.ndarray]:
    """Return vertices and faces of the level set, closed at the border of the cube."""
    from skimage.measure import marching_cubes

    # Densities span orders of magnitude, and the crossing is interpolated along a straight line. The bounded,
    # monotonic 1 - 2^(-density / threshold) has the same level set, at one half, without the steps.
    solidity = np.pad(1.0 - np.exp2(-densities / threshold), 1).astype(np.float32)
    # "ascent" turns faces counter-clockwise as seen from the empty side.
    vertices, faces, _, _ = marching_cubes(solidity, 0.5, gradient_direction="ascent")
    spacing = 2.0 * half_extent / (densities.shape[0] - 1)
    vertices = np.clip((vertices - 1.0) * spacing - half_extent, -half_extent, half_extent)
    return vertices.astype(np.float32), faces.astype(np.int32)


def _vertex_normals(vertices: np.ndarray, faces: np.ndarray) -> np.ndarray:
    """Return the unit means of the normals of the faces around each vertex, weighted by their angles.

    Thuermer and Wuethrich 1998, Computing vertex normals from polygonal facets: unlike areas, angles do not
    favour whatever side of a vertex marching cubes happened to cut into larger triangles.
    """
    corners = vertices[faces].astype(np.float64)
    towards_next = _unit(np.roll(corners, -1, axis=1) - corners)
    towards_last = _unit(np.roll(corners, 1, axis=1) - corners)
    angles = np.arccos(np.clip(np.sum(towards_next * towards_last, axis=-1), -1.0, 1.0))
    face_normals = _unit(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]))
    weighted = (angles[..., None] * face_normals[:, None]).reshape(-1, 3)
    sums = [np.bincount(faces.ravel(), column, len(vertices)) for column in weighted.T]
    normals = _unit(np.stack(sums, axis=-1)).astype(np.float32)
    # A vertex of nothing but slivers without area still needs a unit vector (glTF 2.0, section 3.7.2.1).
    normals[~normals.any(axis=-1)] = (0.0, 0.0, 1.0)
    return normals


def _unit(vectors: np.ndarray) -> np.ndarray:
    """Return vectors of length one; zero stays zero."""
    return vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-20)
