"""Views on several devices: the numbers of one device, to rounding."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tiny_runs import RUN, save_tiny_model
from wordlight.errors import WordlightError
from wordlight.train.guide import make_guide
from wordlight.train.loop import train
from wordlight.train.sharding import gather, make_mesh, replicate, shard


@pytest.mark.parametrize(("views", "devices"), [(1, 1), (2, 2), (3, 3), (4, 4), (6, 3), (5, 1), (8, 4)])
def test_as_many_of_four_devices_as_share_the_views_out_evenly(views, devices):
    assert len(jax.local_devices()) == 4
    assert make_mesh(views).shape == {"views": devices}


def test_given_devices_that_do_not_divide_the_views_are_refused():
    with pytest.raises(WordlightError, match="3 views cannot be shared out evenly over 2 devices"):
        make_mesh(3, devices=jax.local_devices()[:2])


def test_a_batch_is_cut_and_a_state_is_copied():
    mesh = make_mesh(4)
    parts = shard(jnp.arange(8.0), mesh).addressable_shards
    assert [part.data.shape for part in parts] == [(2,)] * 4
    copies = replicate(jnp.arange(8.0), mesh).addressable_shards
    assert [copy.data.shape for copy in copies] == [(8,)] * 4
    assert len(gather(replicate(jnp.arange(8.0), mesh)).devices()) == 1


def test_keys_are_cut_as_well():
    keys = shard(jax.random.split(jax.random.key(0), 4), make_mesh(4))
    np.testing.assert_array_equal(
        jax.random.key_data(keys), jax.random.key_data(jax.random.split(jax.random.key(0), 4))
    )


def test_one_and_two_devices_give_the_same_object(tmp_path):
    guide = make_guide([save_tiny_model(tmp_path / "model")], RUN)
    devices = jax.local_devices()
    one, two = (train(RUN, guide, mesh=make_mesh(2, devices=devices[:n])) for n in (1, 2))
    assert len(two.state.field.levels[0].devices()) == 2
    # Adam divides each gradient by its own size, so that the rounding of the smallest ones grows.
    for a, b in zip(one.state.field.levels, two.state.field.levels, strict=True):
        np.testing.assert_allclose(a, b, atol=2e-3)
