"""Images of another size than the checkpoint's: the position embeddings' grid, resampled."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import wordlight as wl
from wordlight.clip.image_size import resized_positions
from wordlight.errors import WordlightError

GOLDEN = Path(__file__).parent / "golden"
GRIDS = (((4, 4), (7, 3)), ((7, 7), (4, 5)), ((5, 5), (5, 8)), ((6, 6), (2, 2)))


@pytest.mark.parametrize(("kernel", "antialias"), [("plain", False), ("antialias", True)])
@pytest.mark.parametrize(("old", "new"), GRIDS)
def test_the_grid_is_resampled_as_pytorch_does(old, new, kernel, antialias):
    name = f"{old[0]}x{old[1]}-{new[0]}x{new[1]}"
    with np.load(GOLDEN / "positions.npz") as stored:
        grid, expected = stored[name].reshape(-1, 3), stored[f"{name}-{kernel}"].reshape(-1, 3)
    np.testing.assert_allclose(
        resized_positions(jnp.asarray(grid), old, new, antialias=antialias), expected, atol=2e-6
    )


def test_rows_and_columns_keep_their_places_and_the_class_token_its_value():
    rows, columns = np.meshgrid(np.arange(3.0), np.arange(3.0), indexing="ij")
    grid = np.stack([rows, columns], axis=-1).reshape(9, 2)
    positions = jnp.asarray(np.concatenate([[[70.0, 80.0]], grid]), jnp.float32)
    wide = np.asarray(resized_positions(positions, (3, 3), (3, 6), antialias=True))
    assert wide[0].tolist() == [70, 80]
    resized = wide[1:].reshape(3, 6, 2)
    np.testing.assert_allclose(resized[..., 0], np.broadcast_to(np.arange(3.0)[:, None], (3, 6)), atol=1e-6)
    assert (np.diff(resized[..., 1], axis=1) > 0).all()


def test_the_same_grid_is_left_as_it_is():
    positions = jax.random.normal(jax.random.key(0), (17, 5))
    for antialias in (False, True):
        same = resized_positions(positions, (4, 4), (4, 4), antialias=antialias)
        np.testing.assert_allclose(same, positions, atol=1e-6)


@pytest.mark.parametrize("name", ["hf-quick-gelu", "hf-siglip", "open-clip-clipa"])
def test_a_model_takes_images_that_are_not_square(name):
    folder = GOLDEN / "towers" / name
    model = wl.load(folder, image_size=(16, 40))
    assert model.config.vision.image_size == model.image_spec.size == (16, 40)
    embeds = model.encode_image(jnp.full((2, 30, 50, 3), 0.5))
    np.testing.assert_allclose(jnp.linalg.norm(embeds, axis=-1), 1, atol=1e-6)
    gradient = jax.grad(lambda x: model.encode_image(x)[0])(jnp.full((30, 50, 3), 0.5))
    assert np.isfinite(gradient).all()
    assert np.abs(gradient).max() > 0


def test_a_resnet_keeps_its_size():
    with pytest.raises(WordlightError, match=r"ResNet.*\(96, 96\).*Leave image_size out"):
        wl.load(GOLDEN / "towers" / "open-clip-resnet", image_size=96)


@pytest.mark.parametrize("size", [0, -224, (16, 0), (-1, 16)])
def test_sizes_that_cannot_be_are_refused(size):
    with pytest.raises(WordlightError, match=r"is not a side or a \(height, width\)"):
        wl.load(GOLDEN / "towers" / "hf-quick-gelu", image_size=size)


def test_a_patch_must_fit():
    with pytest.raises(WordlightError, match=r"patch_size = 8.*fit"):
        wl.load(GOLDEN / "towers" / "hf-quick-gelu", image_size=(4, 40))
