"""One step: where the cameras stand, what moves, what is compiled, what happens when numbers are not
finite."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tiny_runs import RUN, save_tiny_model
from wordlight.train.config import CameraConfig
from wordlight.train.guide import RunGuide, make_guide
from wordlight.train.state import init_state
from wordlight.train.step import sample_views, train_step


@pytest.fixture(scope="module")
def guide(tmp_path_factory):
    return make_guide([save_tiny_model(tmp_path_factory.mktemp("step") / "model")], RUN)


def views(seed=0):
    return sample_views(jax.random.key(seed), RUN.cameras, count=RUN.views)


def state():
    return init_state(jax.random.key(0), RUN)


def with_log_scale(guide: RunGuide, value: float) -> RunGuide:
    """The guide with another temperature; NaN there makes loss and gradient NaN."""
    model = guide.guide.model  # pyright: ignore[reportAttributeAccessIssue]
    params = model.params | {"logit_scale": jnp.float32(value)}
    return replace(guide, guide=replace(guide.guide, model=model.replace_params(params)))


def elevations(config: CameraConfig, count: int = 512) -> np.ndarray:
    pose = np.asarray(sample_views(jax.random.key(0), config, count=count).cameras.pose)
    position = pose[:, :, 3]
    return np.rad2deg(np.arcsin(position[:, 2] / np.linalg.norm(position, axis=1)))


def test_training_never_looks_from_the_held_out_band():
    drawn = elevations(CameraConfig(elevation=(-5.0, 55.0), held_out=(20.0, 26.0)))
    assert ((drawn > -5.01) & (drawn < 55.01)).all()
    assert not ((drawn > 20.01) & (drawn < 25.99)).any()
    # 25 of the 54 degrees that are left lie below the band.
    assert (drawn < 20.01).mean() == pytest.approx(25 / 54, abs=0.07)


@pytest.mark.parametrize("band", [(60.0, 70.0), (-30.0, -10.0)])
def test_a_band_outside_the_range_changes_nothing(band):
    drawn = elevations(CameraConfig(elevation=(0.0, 40.0), held_out=band))
    assert drawn.min() > -0.01
    assert drawn.max() < 40.01
    assert drawn.mean() == pytest.approx(20, abs=2)


def test_views_stand_evenly_round_the_object():
    position = np.asarray(sample_views(jax.random.key(3), RUN.cameras, count=6).cameras.pose)[:, :, 3]
    azimuth = np.sort(np.rad2deg(np.arctan2(position[:, 1], position[:, 0])) % 360)
    np.testing.assert_allclose(np.diff(azimuth), 60, atol=1e-3)


def test_a_step_moves_the_field_and_counts(guide):
    before = state()
    after, metrics = train_step(state(), guide, views(), config=RUN)
    assert all(np.isfinite(value) for value in jax.tree.leaves(metrics))
    assert (int(after.step), int(after.skipped)) == (1, 0)
    assert not np.allclose(after.field.levels[0], before.field.levels[0])


def test_a_step_is_compiled_once_and_other_weights_are_arguments(guide):
    first, metrics = train_step(state(), guide, views(), config=RUN)
    compiled = train_step._cache_size()
    train_step(first, guide, views(1), config=RUN)
    _, others = train_step(state(), with_log_scale(guide, 0.1), views(), config=RUN)
    assert train_step._cache_size() == compiled
    assert float(others.loss) != float(metrics.loss)


def test_a_step_never_calls_back_to_the_host(guide):
    jaxpr = jax.make_jaxpr(lambda *inputs: train_step(*inputs, config=RUN))(state(), guide, views())
    assert "callback" not in str(jaxpr)


def test_a_step_that_is_not_finite_leaves_the_field_and_is_counted(guide):
    broken = with_log_scale(guide, float("nan"))
    after, metrics = train_step(state(), broken, views(), config=RUN)
    assert not np.isfinite(metrics.loss)
    assert (int(after.step), int(after.skipped), int(after.skipped_in_a_row)) == (1, 1, 1)
    np.testing.assert_array_equal(after.field.levels[0], state().field.levels[0])
    healed, _ = train_step(after, guide, views(), config=RUN)
    assert (int(healed.skipped), int(healed.skipped_in_a_row)) == (1, 0)
