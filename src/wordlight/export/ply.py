"""Coloured meshes as binary PLY files."""

from pathlib import Path

import numpy as np
from jaxtyping import Float32, Int32

from wordlight.export.files import replacing
from wordlight.export.images import to_uint8

_VERTEX = [("x", "<f4"), ("y", "<f4"), ("z", "<f4"), ("nx", "<f4"), ("ny", "<f4"), ("nz", "<f4")]
_COLOUR = [("red", "u1"), ("green", "u1"), ("blue", "u1")]
_FACE = [("count", "u1"), ("corners", "<i4", (3,))]
_PLY_NAMES = {"<f4": "float", "u1": "uchar"}


def write_ply(
    path: Path,
    vertices: Float32[np.ndarray, "v 3"],
    faces: Int32[np.ndarray, "f 3"],
    normals: Float32[np.ndarray, "v 3"],
    colours: Float32[np.ndarray, "v 3"],
) -> None:
    """Write a mesh in its own axes; colours are sRGB values in [0, 1] and stored as bytes."""
    rows = np.empty(len(vertices), _VERTEX + _COLOUR)
    columns = np.concatenate([vertices, normals, to_uint8(colours)], axis=1)
    for name, column in zip(rows.dtype.names or (), columns.T, strict=True):
        rows[name] = column
    polygons = np.empty(len(faces), _FACE)
    polygons["count"], polygons["corners"] = 3, faces
    properties = "".join(f"property {_PLY_NAMES[kind]} {name}\n" for name, kind in _VERTEX + _COLOUR)
    header = (
        f"ply\nformat binary_little_endian 1.0\nelement vertex {len(rows)}\n{properties}"
        f"element face {len(polygons)}\nproperty list uchar int vertex_indices\nend_header\n"
    )
    with replacing(path) as partial:
        partial.write_bytes(header.encode("ascii") + rows.tobytes() + polygons.tobytes())
