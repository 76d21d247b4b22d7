"""Saved states come back bit for bit, wherever they were saved."""

import json
import shutil
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tiny_runs import RUN, save_tiny_run
from wordlight.errors import WordlightError
from wordlight.radiance.pyramid import PyramidConfig
from wordlight.train.checkpoint import Checkpoints, load_run
from wordlight.train.sharding import make_mesh, replicate
from wordlight.train.state import init_state


def state(step: int = 3):
    return init_state(jax.random.key(7), RUN)._replace(step=jnp.int32(step))


def test_a_state_saved_on_two_devices_comes_back_on_one(tmp_path):
    with Checkpoints(tmp_path) as checkpoints:
        checkpoints.save(replicate(state(), make_mesh(2)))
        restored = checkpoints.restore(RUN)
    assert jax.tree.structure(restored) == jax.tree.structure(state())
    for a, b in zip(jax.tree.leaves(restored), jax.tree.leaves(state()), strict=True):
        np.testing.assert_array_equal(a, b)
        assert (a.dtype, a.weak_type) == (b.dtype, b.weak_type)
        assert len(a.devices()) == 1


def test_the_latest_two_are_kept_and_saving_a_step_again_does_nothing(tmp_path):
    with Checkpoints(tmp_path) as checkpoints:
        for step in (1, 2, 2, 3):
            checkpoints.save(state(step))
        assert checkpoints.latest() == 3
    assert sorted(path.name for path in (tmp_path / "checkpoints").iterdir()) == ["2", "3"]


@pytest.mark.parametrize("name", ["a[1]b", "x*y?{z} %20#"])
def test_a_path_may_hold_any_characters(tmp_path, name, capfd):
    config = save_tiny_run(tmp_path / name / "run")
    assert load_run(tmp_path / name / "run")[0] == config
    assert "WARNING" not in capfd.readouterr().err


def test_a_full_disk_is_refused_and_keeps_what_was_written(tmp_path, monkeypatch):
    def full(self, step, args):
        (tmp_path / "checkpoints" / "4.orbax-checkpoint-tmp").mkdir()
        raise ValueError("RESOURCE_EXHAUSTED: Error writing [OS error 28: No space left on device]")

    with Checkpoints(tmp_path) as checkpoints:
        checkpoints.save(state(3))
        monkeypatch.setattr(type(checkpoints._manager), "save", full)
        message = r"step 4 .* cannot be written \(No space left on device\)\. .* Free some space"
        with pytest.raises(WordlightError, match=message):
            checkpoints.save(state(4))
    assert [path.name for path in (tmp_path / "checkpoints").iterdir()] == ["3"]


def test_a_disk_with_too_little_room_is_refused_before_anything_is_written(tmp_path, monkeypatch, capfd):
    usage = shutil.disk_usage(tmp_path)._replace(free=1000)
    with Checkpoints(tmp_path) as checkpoints:
        monkeypatch.setattr("shutil.disk_usage", lambda path: usage)
        with pytest.raises(WordlightError, match=r"\(No space left on device for its \d+\.\d MB\)"):
            checkpoints.save(state())
    assert not any((tmp_path / "checkpoints").iterdir())
    assert "Traceback" not in capfd.readouterr().err


def test_a_run_is_read_back(tmp_path):
    config = save_tiny_run(tmp_path / "run", "a blue chair")
    again, field = load_run(tmp_path / "run")
    assert again == config
    np.testing.assert_array_equal(field.levels[0], init_state(jax.random.key(0), config).field.levels[0])


def test_a_checkpoint_of_another_configuration_is_refused(tmp_path):
    with Checkpoints(tmp_path) as checkpoints:
        checkpoints.save(state())
        other = replace(RUN, field=PyramidConfig(resolutions=(4, 6, 8)))
        with pytest.raises(WordlightError, match=r"checkpoint of step 3 .* cannot be restored"):
            checkpoints.restore(other)


def test_a_folder_without_checkpoints_is_refused(tmp_path):
    with Checkpoints(tmp_path) as checkpoints, pytest.raises(WordlightError, match="no checkpoint in"):
        checkpoints.restore(RUN)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "is not a run: it holds no run.json"),
        ("{", "cannot be read as a run"),
        ("[]", "does not name the version"),
        ('{"wordlight": "1"}', "KeyError: 'config'"),
        ('{"wordlight": "1", "config": {"prompt": "x", "steeps": 3}}', "steeps"),
        ('{"wordlight": "1", "config": {"prompt": "x", "steps": null}}', "TypeError"),
        (json.dumps({"wordlight": "1", "config": {"prompt": "x"}}), "has no checkpoints folder"),
    ],
)
def test_what_is_no_run_is_refused_with_the_reason(tmp_path, text, message):
    if text is not None:
        (tmp_path / "run.json").write_text(text)
    with pytest.raises(WordlightError, match=message):
        load_run(tmp_path)
