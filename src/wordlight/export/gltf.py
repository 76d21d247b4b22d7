"""Coloured meshes as binary glTF 2.0 files (Khronos specification 2.0.1, section 4.4)."""

import json
import struct
from pathlib import Path

import numpy as np
from jaxtyping import Float32, Int32

from wordlight.export.colour import decode_srgb
from wordlight.export.files import replacing

_FLOAT, _UNSIGNED_INT = 5126, 5125
_VERTEX_BUFFER, _INDEX_BUFFER = 34962, 34963


def write_glb(
    path: Path,
    vertices: Float32[np.ndarray, "v 3"],
    faces: Int32[np.ndarray, "f 3"],
    normals: Float32[np.ndarray, "v 3"],
    colours: Float32[np.ndarray, "v 3"],
    *,
    unlit: bool,
) -> None:
    """Write a mesh whose axes are glTF's already: +Y up, front towards +Z.

    Colours are sRGB values in [0, 1]. They are stored as linear light in floats, since 8 bits of linear light
    would leave dark colours a handful of steps.
    """
    arrays = [vertices, normals, decode_srgb(colours), faces]
    # 4-byte elements throughout, so every array starts aligned.
    chunks = [array.astype(kind).tobytes() for array, kind in zip(arrays, ["<f4"] * 3 + ["<u4"], strict=True)]
    document = json.dumps(_document(chunks, vertices, faces, unlit), separators=(",", ":")).encode("ascii")
    with replacing(path) as partial:
        partial.write_bytes(_container(document + b" " * (-len(document) % 4), b"".join(chunks)))


def _container(document: bytes, binary: bytes) -> bytes:
    parts = [
        struct.pack("<I4s", len(document), b"JSON"),
        document,
        struct.pack("<I4s", len(binary), b"BIN\0"),
        binary,
    ]
    body = b"".join(parts)
    return struct.pack("<4sII", b"glTF", 2, 12 + len(body)) + body


def _document(chunks: list[bytes], vertices: np.ndarray, faces: np.ndarray, unlit: bool) -> dict:
    offsets = np.cumsum([0, *map(len, chunks)]).tolist()
    vector = {"componentType": _FLOAT, "count": len(vertices), "type": "VEC3"}
    # Bounds are required for positions (section 3.7.2.1).
    bounds = {"min": vertices.min(axis=0).tolist(), "max": vertices.max(axis=0).tolist()}
    indices = {"componentType": _UNSIGNED_INT, "count": faces.size, "type": "SCALAR"}
    material: dict = {"pbrMetallicRoughness": {"metallicFactor": 0.0, "roughnessFactor": 1.0}}
    document = {
        "asset": {"version": "2.0", "generator": "wordlight"},
        "scene": 0,
        "scenes": [{"nodes": [0]}],
        "nodes": [{"mesh": 0}],
        "meshes": [
            {
                "primitives": [
                    {"attributes": {"POSITION": 0, "NORMAL": 1, "COLOR_0": 2}, "indices": 3, "material": 0},
                ]
            }
        ],
        "materials": [material],
        "accessors": [
            {"bufferView": index, **accessor}
            for index, accessor in enumerate([{**vector, **bounds}, vector, vector, indices])
        ],
        "bufferViews": [
            {
                "buffer": 0,
                "byteOffset": offsets[index],
                "byteLength": len(chunk),
                "target": _INDEX_BUFFER if index == 3 else _VERTEX_BUFFER,
            }
            for index, chunk in enumerate(chunks)
        ],
        "buffers": [{"byteLength": offsets[-1]}],
    }
    if unlit:
        material["extensions"] = {"KHR_materials_unlit": {}}
        document["extensionsUsed"] = ["KHR_materials_unlit"]
    return document
