"""The state of a run, as a value."""

from typing import NamedTuple

import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray

from wordlight.radiance.pyramid import PyramidField
from wordlight.train.config import OptimizerConfig, RunConfig


class RunState(NamedTuple):
    """What a step takes and returns.

    Attributes:
        field: the object.
        optimizer: its optimiser's state.
        step: steps taken, skipped ones included.
        skipped: steps skipped because their gradient was not finite.
        skipped_in_a_row: those since the last good one.
    """

    field: PyramidField
    optimizer: optax.OptState
    step: Int[Array, ""]
    skipped: Int[Array, ""]
    skipped_in_a_row: Int[Array, ""]


class RunMetrics(NamedTuple):
    """Figures of one step, averaged over its views.

    Attributes:
        loss: what was minimised.
        similarity: cosine with the prompt.
        opacity: share of the image that is covered.
        gradient_norm: before clipping.
        skipped: steps skipped so far.
    """

    loss: Float[Array, ""]
    similarity: Float[Array, ""]
    opacity: Float[Array, ""]
    gradient_norm: Float[Array, ""]
    skipped: Int[Array, ""]


def make_optimizer(config: OptimizerConfig, steps: int) -> optax.GradientTransformation:
    """Return Adam behind a gradient clip, with a warm-up and a cosine decay to a tenth of the peak."""
    warmup = max(int(config.warmup * steps), 1)
    peak = config.learning_rate
    schedule = optax.warmup_cosine_decay_schedule(peak / 10, peak, warmup, max(steps, warmup + 1), peak / 10)
    return optax.chain(optax.clip_by_global_norm(config.clip), optax.adam(schedule, b2=0.99))


def init_state(key: PRNGKeyArray, config: RunConfig) -> RunState:
    """Return the state a run starts from."""
    field = PyramidField.init(key, config.field)
    optimizer = make_optimizer(config.optimizer, config.steps).init(field)  # type: ignore[arg-type]
    # An array for each, as a step takes the state's buffers over and none may be given twice.
    step, skipped, in_a_row = (jnp.zeros((), jnp.int32) for _ in range(3))
    return RunState(field, optimizer, step, skipped, in_a_row)
