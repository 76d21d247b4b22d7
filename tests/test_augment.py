"""Random views and backgrounds: what each weight, range and key does, and the gradient that comes back."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tiny_clip import pictures
from wordlight.augment import (
    byte_noise,
    checker_background,
    noise_background,
    random_background,
    random_views,
    smooth_background,
    smooth_noise,
    solid_background,
    window_matrix,
)

KEY = jax.random.key(0)
BACKGROUNDS = (noise_background, checker_background, smooth_background, solid_background, random_background)
STILL = {"zoom": (1.0, 1.0), "shift": 0.0, "blur": (1.0, 1.0), "noise": 0.0}


def window(start: float, stop: float, size: int, target: int, blur: float = 1.0) -> np.ndarray:
    return np.asarray(
        window_matrix(jnp.float32(start), jnp.float32(stop), size, target, blur=jnp.float32(blur))
    )


# Windows


@pytest.mark.parametrize(("size", "target"), [(8, 8), (7, 3), (3, 7), (1, 4), (5, 1)])
@pytest.mark.parametrize(("start", "stop"), [(0.0, 1.0), (-0.3, 1.2), (0.4, 0.5), (1.5, 2.0), (0.5, 0.5)])
@pytest.mark.parametrize("blur", [1.0, 2.5])
def test_rows_sum_to_one_wherever_the_window_lies(size, target, start, stop, blur):
    weights = window(start, stop, size, target, blur)
    assert weights.shape == (target, size)
    assert (weights >= 0).all()
    np.testing.assert_allclose(weights.sum(-1), 1, rtol=1e-5)


def test_the_whole_image_at_its_own_size_is_the_image():
    np.testing.assert_allclose(window(0, 1, 6, 6), np.eye(6), atol=1e-6)


def test_a_window_cuts_out_its_part():
    np.testing.assert_allclose(window(0.25, 0.75, 8, 4), np.eye(8)[2:6], atol=1e-6)


def test_half_the_size_is_a_triangle_over_four_samples():
    np.testing.assert_allclose(window(0, 1, 8, 4)[1], [0, 1 / 8, 3 / 8, 3 / 8, 1 / 8, 0, 0, 0], atol=1e-6)


def test_twice_the_size_is_linear_interpolation():
    np.testing.assert_allclose(window(0, 1, 3, 6)[2:4], [[1 / 4, 3 / 4, 0], [0, 3 / 4, 1 / 4]], atol=1e-6)


def test_beyond_the_image_its_edge_is_repeated():
    np.testing.assert_allclose(window(-1, 0, 4, 4), np.eye(4)[[0, 0, 0, 0]], atol=1e-6)
    np.testing.assert_allclose(window(1, 2, 4, 4), np.eye(4)[[3, 3, 3, 3]], atol=1e-6)


@pytest.mark.parametrize(("blur", "reach"), [(1.0, 1), (2.0, 3), (3.0, 5)])
def test_blur_is_the_half_width_of_the_kernel(blur, reach):
    row = window(0, 1, 21, 21, blur)[10]
    assert (row > 1e-6).sum() == reach
    expected = np.maximum(1 - np.abs(np.arange(21) - 10) / blur, 0)
    np.testing.assert_allclose(row, expected / expected.sum(), atol=1e-6)


# Views


def test_a_view_that_moves_and_blurs_nothing_is_the_image():
    image = pictures(size=(12, 10))
    np.testing.assert_allclose(random_views(KEY, image, size=(12, 10), **STILL), image, atol=1e-5)


@pytest.mark.parametrize("batch", [(), (1,), (2, 3)])
def test_views_of_any_leading_axes_have_the_size_asked_for(batch):
    assert random_views(KEY, pictures(*batch, size=(9, 14)), size=(7, 5)).shape == (*batch, 7, 5, 3)


def test_a_constant_image_stays_constant_but_for_the_noise():
    grey = jnp.full((4, 9, 11, 3), 0.3)
    np.testing.assert_allclose(random_views(KEY, grey, size=(8, 8), noise=0.0), 0.3, atol=1e-5)
    noisy = random_views(KEY, grey, size=(8, 8), noise=0.1)
    strength = np.std(noisy, axis=(1, 2, 3))
    assert (strength > 0).all()
    assert (strength < 0.11).all()
    np.testing.assert_allclose(np.mean(noisy, axis=(1, 2, 3)), 0.3, atol=0.03)


def test_noise_has_at_most_the_standard_deviation_asked_for():
    black = jnp.zeros((64, 32, 32, 3))
    strength = np.std(random_views(KEY, black, size=(32, 32), **STILL | {"noise": 0.2}), axis=(1, 2, 3))
    np.testing.assert_allclose([strength.max(), strength.mean()], [0.2, 0.1], atol=0.03)


def test_each_image_draws_its_own_view_and_the_key_decides():
    same = jnp.broadcast_to(pictures(size=(16, 16)), (3, 16, 16, 3))
    views = random_views(KEY, same, size=(16, 16))
    assert np.abs(views[0] - views[1]).max() > 1e-3
    np.testing.assert_array_equal(views, random_views(KEY, same, size=(16, 16)))
    assert np.abs(views - random_views(jax.random.key(1), same, size=(16, 16))).max() > 1e-3


def test_zoom_and_shift_move_the_window():
    ramp = jnp.broadcast_to(jnp.linspace(0, 1, 41)[None, :, None], (41, 41, 3))
    near = random_views(KEY, ramp, size=(41, 41), **STILL | {"zoom": (0.5, 0.5)})
    np.testing.assert_allclose([near[0, 0, 0], near[0, -1, 0]], [0.25, 0.75], atol=0.02)
    far = random_views(KEY, ramp, size=(41, 41), **STILL | {"zoom": (2.0, 2.0)})
    np.testing.assert_allclose([far[0, 0, 0], far[0, -1, 0], far[0, 20, 0]], [0, 1, 0.5], atol=0.02)
    moved = random_views(KEY, jnp.stack([ramp] * 32), size=(41, 41), **STILL | {"shift": 0.1})[:, 0, 20, 0]
    assert np.abs(moved - 0.5).max() < 0.11
    assert np.std(moved) > 0.03


def test_views_are_linear_in_the_image_so_the_gradient_is_exact():
    image, other = pictures(2, size=(10, 12)), pictures(2, seed=5, size=(10, 12))

    def total(x):
        return jnp.sum(
            jnp.sin(jnp.arange(8 * 8 * 3.0)).reshape(1, 8, 8, 3) * random_views(KEY, x, size=(8, 8))
        )

    gradient = jax.grad(total)(image)
    np.testing.assert_allclose(jnp.vdot(gradient, other - image), total(other) - total(image), rtol=1e-3)


def test_views_work_under_jit_and_vmap_without_a_callback():
    images, keys = pictures(3, size=(10, 12)), jax.random.split(KEY, 3)
    plain = [random_views(key, image, size=(8, 8)) for key, image in zip(keys, images, strict=True)]
    mapped = jax.jit(jax.vmap(lambda key, image: random_views(key, image, size=(8, 8))))
    np.testing.assert_allclose(mapped(keys, images), plain, atol=1e-5)
    assert "callback" not in str(jax.make_jaxpr(mapped)(keys, images))


# Backgrounds


@pytest.mark.parametrize("make", BACKGROUNDS, ids=lambda make: make.__name__)
@pytest.mark.parametrize("batch", [(), (2, 3)])
def test_backgrounds_are_pictures(make, batch):
    picture = make(KEY, batch, 6, 9)
    assert picture.shape == (*batch, 6, 9, 3)
    assert picture.dtype == jnp.float32
    assert picture.min() >= 0
    assert picture.max() <= 1


@pytest.mark.parametrize("make", BACKGROUNDS, ids=lambda make: make.__name__)
def test_backgrounds_differ_between_images_and_keys_and_repeat_for_a_key(make):
    pair = make(KEY, (2,), 8, 8)
    assert np.abs(pair[0] - pair[1]).max() > 0.01
    np.testing.assert_array_equal(pair, make(KEY, (2,), 8, 8))
    assert np.abs(pair - make(jax.random.key(7), (2,), 8, 8)).max() > 0.01


def test_solid_is_one_colour_and_checker_two():
    assert len(np.unique(solid_background(KEY, (), 8, 8).reshape(-1, 3), axis=0)) == 1
    colours, counts = np.unique(
        checker_background(KEY, (), 32, 32).reshape(-1, 3), axis=0, return_counts=True
    )
    assert len(colours) == 2
    assert counts.min() > 100


def test_smooth_noise_has_no_sharp_edge():
    smooth = smooth_noise(KEY, (8,), 64, 64)
    assert np.abs(np.diff(smooth, axis=1)).max() < 0.3
    assert np.std(smooth) > 0.05
    assert smooth_noise(KEY, (2,), 5, 6, channels=1).shape == (2, 5, 6, 1)


def test_byte_noise_is_even_and_independent_between_pixels_and_channels():
    noise = np.asarray(byte_noise(KEY, (4,), 32, 32))
    assert noise.shape == (4, 32, 32, 3)
    np.testing.assert_allclose([noise.mean(), noise.std()], [0.5, 12**-0.5], atol=0.01)
    flat = noise.reshape(-1, 3)
    assert np.abs(np.corrcoef(flat.T) - np.eye(3)).max() < 0.06
    assert abs(np.corrcoef(noise[:, :, 1:].ravel(), noise[:, :, :-1].ravel())[0, 1]) < 0.06


def test_all_four_kinds_of_background_appear():
    pictures = np.asarray(random_background(KEY, (200,), 12, 12)).reshape(200, -1, 3)
    colours = np.array([len(np.unique(picture, axis=0)) for picture in pictures])
    solid, checker = np.mean(colours == 1), np.mean(colours == 2)
    assert 0.15 < solid < 0.35
    assert 0.15 < checker < 0.35
