"""Meshes: shapes whose volume and colours are known, read back by another program (trimesh)."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import trimesh

from wordlight.errors import WordlightError
from wordlight.export.colour import decode_srgb
from wordlight.export.mesh import extract_mesh, save_mesh

RADIUS = 0.6


def ball(positions, *, centre=(0.0, 0.0, 0.0), radius=RADIUS):
    """Dense inside, empty outside, crossing density 10 on the sphere."""
    distance = jnp.linalg.norm(positions - jnp.array(centre)[None, :], axis=-1)
    return 20.0 * jax.nn.sigmoid((radius - distance) * 60.0)


def position_colours(positions, directions):
    return 0.5 + 0.5 * positions


def as_trimesh(mesh) -> trimesh.Trimesh:
    return trimesh.Trimesh(mesh.vertices, mesh.faces, process=False)


@pytest.fixture(scope="module")
def ball_mesh():
    return extract_mesh(jax.jit(ball), position_colours, resolution=48)


def test_a_ball_has_its_volume_and_is_closed(ball_mesh):
    solid = as_trimesh(ball_mesh)
    assert solid.is_watertight
    assert solid.is_winding_consistent
    assert solid.volume == pytest.approx(4 / 3 * np.pi * RADIUS**3, rel=0.02)
    np.testing.assert_allclose(np.linalg.norm(ball_mesh.vertices, axis=1), RADIUS, rtol=0.01)


def test_normals_point_outwards(ball_mesh):
    np.testing.assert_allclose(np.linalg.norm(ball_mesh.normals, axis=1), 1.0, rtol=1e-5)
    radial = ball_mesh.vertices / np.linalg.norm(ball_mesh.vertices, axis=1, keepdims=True)
    assert np.sum(ball_mesh.normals * radial, axis=1).min() > 0.99


def test_colours_are_those_of_the_field_at_the_vertices(ball_mesh):
    np.testing.assert_allclose(ball_mesh.colours, 0.5 + 0.5 * ball_mesh.vertices, atol=1e-6)


def test_each_vertex_is_looked_at_head_on(ball_mesh):
    looked = extract_mesh(ball, lambda positions, directions: 0.5 - 0.5 * directions, resolution=48)
    np.testing.assert_allclose(looked.colours, 0.5 + 0.5 * ball_mesh.normals, atol=1e-6)


def test_colours_are_clipped():
    mesh = extract_mesh(ball, lambda positions, directions: 9.0 * positions, resolution=16)
    assert (mesh.colours.min(), mesh.colours.max()) == (0.0, 1.0)


def test_any_chunk_gives_the_same_mesh(ball_mesh):
    sizes = []

    def counted(positions):
        sizes.append(len(positions))
        return ball(positions)

    mesh = extract_mesh(counted, position_colours, resolution=48, chunk=10_000)
    np.testing.assert_allclose(mesh.vertices, ball_mesh.vertices, atol=1e-5)
    np.testing.assert_array_equal(mesh.faces, ball_mesh.faces)
    assert set(sizes) == {10_000}


@pytest.mark.parametrize("half_extent", [1.0, 0.5])
def test_a_full_box_closes_at_its_border(half_extent):
    mesh = extract_mesh(
        lambda positions: jnp.full(len(positions), 100.0),
        position_colours,
        resolution=12,
        half_extent=half_extent,
    )
    solid = as_trimesh(mesh)
    assert solid.is_watertight
    assert np.abs(mesh.vertices).max() == half_extent
    assert solid.volume == pytest.approx((2 * half_extent) ** 3, rel=0.02)


def two_balls(positions):
    return ball(positions, centre=(-0.3, 0.0, 0.0), radius=0.5) + ball(
        positions, centre=(0.7, 0.0, 0.0), radius=0.15
    )


@pytest.mark.parametrize(("min_part", "parts"), [(0.0, 2), (0.02, 2), (0.1, 1)])
def test_small_parts_are_left_out(min_part, parts):
    mesh = extract_mesh(two_balls, position_colours, resolution=48, min_part=min_part)
    assert as_trimesh(mesh).body_count == parts


def test_densities_of_all_sizes_keep_the_surface_in_place():
    def hard(positions):
        return 1e6 * jnp.maximum(RADIUS - jnp.linalg.norm(positions, axis=-1), 0.0)

    mesh = extract_mesh(hard, position_colours, resolution=64)
    assert as_trimesh(mesh).volume == pytest.approx(4 / 3 * np.pi * RADIUS**3, rel=0.05)


def empty(positions):
    return jnp.linspace(0.25, 2.0, len(positions))


def test_an_empty_field_is_refused_with_its_range():
    with pytest.raises(WordlightError) as caught:
        extract_mesh(empty, position_colours, resolution=8, chunk=8**3)
    assert str(caught.value) == (
        "The field has no surface at density 10: densities range from 0.25 to 2 in the cube. "
        "A field that dissolved in training, or fog thinner than the threshold, is the usual cause. "
        "Pass a threshold inside the range, or train longer with a higher opacity target."
    )


def test_densities_that_are_not_finite_are_refused():
    with pytest.raises(WordlightError, match=r"512 of 512 densities are not finite.*earlier checkpoint"):
        extract_mesh(lambda positions: jnp.full(len(positions), jnp.nan), position_colours, resolution=8)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"threshold": 0.0}, "threshold=0.0"),
        ({"threshold": float("nan")}, "threshold=nan"),
        ({"resolution": 1}, "resolution=1"),
        ({"resolution": 5000}, "resolution=5000"),
        ({"half_extent": -1.0}, "half_extent=-1.0"),
        ({"min_part": 2.0}, "min_part=2.0"),
        ({"chunk": 0}, "chunk=0"),
    ],
)
def test_impossible_options_are_named(options, named):
    with pytest.raises(
        WordlightError, match=f"No mesh can be made with {named} .*Pass values in these ranges"
    ):
        extract_mesh(ball, position_colours, **options)


def load(path) -> trimesh.Trimesh:
    return trimesh.load(path, process=False, force="mesh")  # pyright: ignore[reportReturnType]


def glb_attributes(path) -> tuple[dict, dict[str, np.ndarray]]:
    """The JSON part of a .glb and its vertex attributes, straight from the bytes."""
    data = path.read_bytes()
    length = int.from_bytes(data[12:16], "little")
    document = json.loads(data[20 : 20 + length])
    binary = data[28 + length :]
    arrays = {}
    for name, index in document["meshes"][0]["primitives"][0]["attributes"].items():
        view = document["bufferViews"][document["accessors"][index]["bufferView"]]
        piece = binary[view["byteOffset"] : view["byteOffset"] + view["byteLength"]]
        arrays[name] = np.frombuffer(piece, "<f4").reshape(-1, 3)
    return document, arrays


def test_glb_is_y_up_with_the_front_towards_z(tmp_path, ball_mesh):
    save_mesh(tmp_path / "mesh.glb", ball_mesh)
    loaded = load(tmp_path / "mesh.glb")
    world = ball_mesh.vertices
    np.testing.assert_array_equal(loaded.vertices, np.stack([world[:, 1], world[:, 2], world[:, 0]], axis=-1))
    np.testing.assert_array_equal(loaded.faces, ball_mesh.faces)
    assert loaded.is_watertight
    assert loaded.volume > 0


def test_glb_holds_normals_and_linear_light(tmp_path, ball_mesh):
    save_mesh(tmp_path / "mesh.glb", ball_mesh)
    _, arrays = glb_attributes(tmp_path / "mesh.glb")
    np.testing.assert_array_equal(arrays["NORMAL"], ball_mesh.normals[:, [1, 2, 0]])
    np.testing.assert_allclose(arrays["COLOR_0"], decode_srgb(ball_mesh.colours), atol=1e-6)


@pytest.mark.parametrize("unlit", [True, False])
def test_glb_is_unlit_when_asked(tmp_path, ball_mesh, unlit):
    save_mesh(tmp_path / "mesh.glb", ball_mesh, unlit=unlit)
    document, _ = glb_attributes(tmp_path / "mesh.glb")
    assert ("KHR_materials_unlit" in document.get("extensionsUsed", [])) is unlit
    assert ("extensions" in document["materials"][0]) is unlit


def test_ply_keeps_world_axes_and_srgb(tmp_path, ball_mesh):
    save_mesh(tmp_path / "mesh.ply", ball_mesh)
    loaded = load(tmp_path / "mesh.ply")
    np.testing.assert_array_equal(loaded.vertices, ball_mesh.vertices)
    np.testing.assert_array_equal(loaded.faces, ball_mesh.faces)
    colours = loaded.visual.vertex_colors  # pyright: ignore
    np.testing.assert_allclose(np.asarray(colours)[:, :3] / 255, ball_mesh.colours, atol=0.51 / 255)


def test_other_formats_are_refused(tmp_path, ball_mesh):
    with pytest.raises(WordlightError, match=r"'\.obj' is no format known here.*Use one of \.glb, \.ply"):
        save_mesh(tmp_path / "mesh.obj", ball_mesh)
    assert list(tmp_path.iterdir()) == []
