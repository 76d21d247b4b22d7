"""The loop: one seed one result, stopping and going on, and what it says when a run goes wrong."""

import os
import signal
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tiny_runs import RUN, save_tiny_model
from wordlight.train.guide import make_guide
from wordlight.train.health import WINDOW, Health, Record
from wordlight.train.loop import first_state, interruptible, train
from wordlight.train.step import train_step


@pytest.fixture(scope="module")
def guide(tmp_path_factory):
    return make_guide([save_tiny_model(tmp_path_factory.mktemp("loop") / "model")], RUN)


@pytest.fixture(scope="module")
def whole(guide):
    return train(RUN, guide)


def assert_same(one, other):
    for a, b in zip(jax.tree.leaves(one.state), jax.tree.leaves(other.state), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_run_finishes_and_the_same_seed_gives_the_same_bits_without_compiling_again(guide, whole):
    assert (whole.status, int(whole.state.step)) == ("finished", RUN.steps)
    compiled = train_step._cache_size()
    assert_same(train(RUN, guide), whole)
    assert train_step._cache_size() == compiled


def test_another_seed_gives_another_object_and_another_prompt_is_no_other_program(guide, whole):
    compiled = train_step._cache_size()
    other = train(replace(RUN, seed=1, prompt="a blue car"), guide)
    assert not np.allclose(other.state.field.levels[1], whole.state.field.levels[1])
    assert train_step._cache_size() == compiled


def test_every_step_is_reported_once_in_order(guide):
    updates = []
    train(RUN, guide, report=updates.append)
    assert [r.step for update in updates for r in update.records] == list(range(RUN.steps))
    assert len(updates[0].records) == 1
    assert all(np.isfinite(r.loss) for update in updates for r in update.records)


def test_stopped_at_a_step_and_continued_is_the_uninterrupted_run(guide, whole):
    answers = iter([False, False, True])
    stopped = train(RUN, guide, stop=lambda: next(answers))
    assert (stopped.status, int(stopped.state.step)) == ("interrupted", 3)
    assert_same(train(RUN, guide, state=stopped.state), whole)


def test_a_run_of_steps_that_are_not_finite_ends_early_with_the_field_as_it_was(guide):
    model = guide.guide.model
    params = model.params | {"logit_scale": jnp.float32(np.nan)}
    broken = replace(guide, guide=replace(guide.guide, model=model.replace_params(params)))
    outcome = train(RUN, broken)
    assert outcome.status == "diverged"
    assert int(outcome.state.step) < RUN.steps
    assert outcome.health.worst >= RUN.max_skipped
    assert "Step 0 was skipped" in outcome.health.warnings[0]
    start = first_state(jax.random.split(jax.random.key(RUN.seed))[0], broken, RUN)
    np.testing.assert_array_equal(outcome.state.field.levels[0], start.field.levels[0])


def records(opacities, skipped=()):
    """Records with these opacities; the steps in `skipped` were skipped."""
    counts = np.cumsum([step in skipped for step in range(len(opacities))])
    return [Record(s, 1.0, 0.1, o, 1.0, int(counts[s])) for s, o in enumerate(opacities)]


@pytest.mark.parametrize(
    ("opacity", "condition", "words"),
    [(0.001, "dissolved", "has dissolved"), (0.99, "filled", "fills the view"), (0.3, "", None)],
)
def test_an_object_that_dissolves_or_fills_the_view_is_reported_once(opacity, condition, words):
    health = Health().after(records([0.3] * 5 + [opacity] * 40))
    assert health.condition == condition
    assert len(health.warnings) == (words is not None)
    assert words is None or words in health.warnings[0]


def test_an_object_that_comes_back_is_healthy_and_the_warning_stays():
    health = Health().after(records([0.001] * WINDOW + [0.3] * WINDOW))
    assert (health.condition, len(health.warnings)) == ("", 1)


def test_skipped_steps_are_counted_in_all_and_in_a_row():
    health = Health().after(records([0.3] * 8, skipped=(1, 4, 5, 6)))
    assert (health.skipped, health.worst, health.in_a_row) == (4, 3, 0)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_interrupt_is_noted_and_the_second_raises(number):
    before = signal.getsignal(number)
    with interruptible() as stop:
        assert not stop()
        os.kill(os.getpid(), number)
        assert stop()
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), number)
    assert signal.getsignal(number) is before
