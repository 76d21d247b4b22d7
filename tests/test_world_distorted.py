"""Objects put together wrongly, which the guides learn to tell from right ones."""

import jax
import jax.numpy as jnp
import numpy as np

from wordlight.data.world.captions import words
from wordlight.data.world.distorted import (
    DISTORTED_CAPTIONS,
    DISTORTED_WORDS,
    SQUEEZE,
    distort,
    mixed,
    squeezed,
    turned,
)

KEY = jax.random.key(3)
COUNT = 24


def bars() -> jax.Array:
    """Return pictures of an upright bar with an upper end of its own, each of another brightness."""
    picture = np.zeros((COUNT, 64, 64, 6), np.uint8)
    picture[:, 12:52, 24:40] = 100 + 4 * np.arange(COUNT)[:, None, None, None]
    picture[:, 12:20, 24:40] = 40
    return jnp.asarray(picture)


def extents(pictures: jax.Array) -> np.ndarray:
    """Return how many rows and how many columns of each picture show something."""
    shown = np.asarray(pictures).max(axis=-1) > 20
    return np.stack([shown.any(axis=2).sum(axis=1), shown.any(axis=1).sum(axis=1)], axis=-1)


def test_every_caption_says_that_the_object_is_distorted():
    assert all(set(DISTORTED_WORDS) & set(words(caption)) for caption in DISTORTED_CAPTIONS)


def test_a_turned_object_lies_on_a_side_or_stands_on_its_head():
    before, after = bars(), turned(KEY, bars())
    turns = [jnp.rot90(before, k, axes=(1, 2)) for k in (1, 2, 3)]
    which = np.array([[np.array_equal(after[i], turn[i]) for turn in turns] for i in range(COUNT)])
    assert (which.sum(axis=1) == 1).all()
    assert which.any(axis=0).all()


def test_a_squeezed_object_is_thinner_or_flatter_and_stays_in_the_middle():
    after = squeezed(KEY, bars())
    assert after.dtype == jnp.uint8
    factors = extents(after) / extents(bars())
    narrow = factors.min(axis=1)
    assert (factors.max(axis=1) == 1).all()
    assert (narrow > SQUEEZE[0] - 0.1).all()
    assert (narrow < SQUEEZE[1] + 0.1).all()
    assert 0 < (factors[:, 0] < 1).sum() < COUNT
    weight = np.asarray(after, float).sum(axis=(1, 3))
    np.testing.assert_allclose((weight * (np.arange(64) + 0.5)).sum(1) / weight.sum(1), 32, atol=0.1)


def test_a_mixed_object_has_the_upper_or_the_left_half_of_the_one_before_it():
    before, after = bars(), mixed(KEY, bars())
    other = jnp.roll(before, 1, axis=0)
    np.testing.assert_array_equal(after[:, 32:, 32:], before[:, 32:, 32:])
    np.testing.assert_array_equal(after[:, :32, :32], other[:, :32, :32])
    across = [np.array_equal(after[i, :32], other[i, :32]) for i in range(COUNT)]
    assert 0 < sum(across) < COUNT


def test_all_three_ways_occur_and_the_key_decides():
    before, after = bars(), distort(KEY, bars())
    ways = [way(key, before) for way, key in zip((turned, squeezed, mixed), _keys(), strict=True)]
    which = np.array([[np.array_equal(after[i], way[i]) for way in ways] for i in range(COUNT)])
    assert (which.sum(axis=1) == 1).all()
    assert which.any(axis=0).all()
    np.testing.assert_array_equal(after, distort(KEY, before))
    assert not np.array_equal(after, distort(jax.random.key(4), before))


def _keys():
    _, *keys = jax.random.split(KEY, 4)
    return keys
