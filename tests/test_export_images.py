"""Pictures: levels, files, sheets, depth and shading, each against values worked out by hand."""

import jax.numpy as jnp
import numpy as np
import pytest
from PIL import Image

from wordlight.errors import WordlightError
from wordlight.export.colour import decode_srgb, encode_srgb, lightness_ramp
from wordlight.export.files import replacing
from wordlight.export.images import colourize_depth, contact_sheet, save_png, shade_normals, to_uint8


def grey(level: float, height: int = 4, width: int = 6) -> np.ndarray:
    return np.full((height, width, 3), level, np.float32)


def test_levels_are_rounded_and_clipped():
    levels = to_uint8(np.array([-1.0, 0.0, 0.49 / 255, 0.51 / 255, 0.5, 1.0, 7.0, np.inf, -np.inf, np.nan]))
    assert levels.tolist() == [0, 0, 0, 1, 128, 255, 255, 255, 0, 0]


def test_every_level_survives_a_round_trip():
    levels = np.arange(256, dtype=np.uint8)
    np.testing.assert_array_equal(to_uint8(levels / np.float32(255)), levels)
    assert to_uint8(levels) is levels


@pytest.mark.parametrize("shape", [(5, 7), (5, 7, 3), (5, 7, 4), (1, 1, 3)])
def test_a_saved_image_reads_back(tmp_path, shape):
    image = np.random.default_rng(0).random(shape, np.float32)
    save_png(tmp_path / "new" / "image.png", jnp.asarray(image))
    with Image.open(tmp_path / "new" / "image.png") as saved:
        np.testing.assert_array_equal(np.asarray(saved), to_uint8(image))
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["image.png"]


@pytest.mark.parametrize("shape", [(3, 5, 7), (2, 5, 7, 3), (5,), (0, 5, 3)])
def test_what_is_no_image_is_refused(tmp_path, shape):
    with pytest.raises(WordlightError, match=r"shape \(.*is no image.*usual cause.*Pass \[height, width\]"):
        save_png(tmp_path / "image.png", np.zeros(shape))
    assert not (tmp_path / "image.png").exists()


def break_half_way(path):
    with replacing(path) as partial:
        partial.write_text("half")
        raise RuntimeError("power cut")


def test_a_failure_leaves_the_older_file(tmp_path):
    path = tmp_path / "sheet.png"
    path.write_text("older")
    with pytest.raises(RuntimeError, match="power cut"):
        break_half_way(path)
    assert path.read_text() == "older"
    assert list(tmp_path.iterdir()) == [path]


def test_a_sheet_holds_each_image_where_it_belongs():
    sheet = contact_sheet([[grey(0.1), grey(0.2)], np.stack([grey(0.3)])], gap=2, background=0.5)
    assert sheet.shape == (2 * 4 + 3 * 2, 2 * 6 + 3 * 2, 3)
    np.testing.assert_allclose(sheet[2:6, 2:8], 0.1)
    np.testing.assert_allclose(sheet[2:6, 10:16], 0.2)
    np.testing.assert_allclose(sheet[8:12, 2:8], 0.3)
    np.testing.assert_allclose(sheet[8:12, 10:16], 0.5)
    np.testing.assert_allclose(sheet[:2], 0.5)


def test_bytes_and_floats_share_a_sheet():
    sheet = contact_sheet([[grey(1.0), np.full((4, 6, 3), 51, np.uint8)]], gap=0)
    np.testing.assert_allclose(sheet[:, 6:], 0.2, rtol=1e-6)


def test_labels_lie_below_their_images():
    plain = contact_sheet([[grey(0.2, 20, 60)], [grey(0.2, 20, 60)]])
    labelled = contact_sheet([[grey(0.2, 20, 60)], [grey(0.2, 20, 60)]], labels=[["a red car, and more"], []])
    assert labelled.shape[0] > plain.shape[0]
    np.testing.assert_array_equal(labelled[:24], plain[:24])
    assert labelled[24:].min() < 0.2
    np.testing.assert_array_equal(labelled[-28:], plain[-28:])


@pytest.mark.parametrize("rows", [[], [[]], [[grey(0.1), grey(0.1, 5)]], [[np.zeros((4, 6))]]])
def test_a_sheet_of_nothing_or_of_several_sizes_is_refused(rows):
    with pytest.raises(WordlightError, match=r"images of one shape, not .*usual cause.*colourize_depth"):
        contact_sheet(rows)


def test_near_is_brighter_than_far():
    depth = np.linspace(2.0, 4.0, 50, dtype=np.float32)[None]
    image = colourize_depth(depth, np.ones_like(depth))
    luminance = decode_srgb(image) @ np.array([0.2126, 0.7152, 0.0722])
    assert np.all(np.diff(luminance[0]) <= 1e-6)
    assert luminance[0, 0] > 0.7
    assert luminance[0, -1] < 0.05


def test_images_of_one_call_share_a_scale():
    depth = np.stack([np.full((3, 3), 2.0), np.full((3, 3), 4.0)])
    image = colourize_depth(depth, np.ones_like(depth))
    np.testing.assert_allclose(image[0, 0, 0], lightness_ramp(np.array(1.0)), atol=1e-6)
    np.testing.assert_allclose(image[1, 0, 0], lightness_ramp(np.array(0.0)), atol=1e-6)


@pytest.mark.parametrize("depth", [0.0, np.nan, np.inf, 1e30])
@pytest.mark.parametrize("background", [0.0, 1.0])
def test_empty_depth_is_background(depth, background):
    image = colourize_depth(np.full((3, 4), depth), np.zeros((3, 4)), background=background)
    np.testing.assert_array_equal(image, np.full((3, 4, 3), background, np.float32))


def test_flat_depth_is_finite():
    assert np.isfinite(colourize_depth(np.full((3, 4), 2.5), np.ones((3, 4)))).all()


def test_shading_follows_the_light():
    normals = np.array([[[0.0, 0.0, 5.0], [1.0, 0.0, 0.0], [0.0, 0.0, -0.1], [0.0, 0.0, 0.0]]])
    shaded = shade_normals(normals, np.ones((1, 4)), light=(0.0, 0.0, 2.0))
    np.testing.assert_allclose(shaded[0, :, 0], [0.92, 0.08 + 0.84 / 4, 0.08, 0.08 + 0.84 / 4], rtol=1e-5)
    np.testing.assert_array_equal(shaded[..., 0], shaded[..., 2])


def test_shading_of_empty_space_is_background():
    normals = np.full((2, 3, 3), np.nan)
    np.testing.assert_array_equal(shade_normals(normals, np.zeros((2, 3))), np.ones((2, 3, 3)))


def test_srgb_and_linear_light_invert_each_other():
    values = np.linspace(0.0, 1.0, 1001)
    np.testing.assert_allclose(encode_srgb(decode_srgb(values)), values, atol=1e-7)
    # Middle grey of the sRGB standard.
    np.testing.assert_allclose(decode_srgb(np.array([0.0, 0.5, 1.0])), [0.0, 0.21404, 1.0], atol=1e-5)
