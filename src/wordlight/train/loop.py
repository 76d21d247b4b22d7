"""The training loop: sample views, take a step, say how it went."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Literal, NamedTuple

import jax
from jax.sharding import Mesh
from jaxtyping import PRNGKeyArray

from wordlight.train.config import RunConfig
from wordlight.train.guide import RunGuide
from wordlight.train.health import Health, Record
from wordlight.train.sharding import make_mesh, replicate, shard
from wordlight.train.state import RunMetrics, RunState, init_state
from wordlight.train.step import sample_views, train_step
from wordlight.train.tint import tinted

# Metrics wait on the device for so many steps: fetching each at once would leave it idle in between.
FETCH_EVERY = 5

Status = Literal["running", "finished", "interrupted", "diverged", "failed"]
STOPPING = (signal.SIGINT, signal.SIGTERM)


class Update(NamedTuple):
    """What the loop tells while it runs.

    Attributes:
        state: after the last of the records; its arrays are given up at the next step.
        records: one a step since the last update.
        health: of the whole run so far.
    """

    state: RunState
    records: list[Record]
    health: Health


class Outcome(NamedTuple):
    """How a run ended: with which state, why, and how it had gone."""

    state: RunState
    status: Status
    health: Health


def train(
    config: RunConfig,
    guide: RunGuide,
    *,
    mesh: Mesh | None = None,
    state: RunState | None = None,
    report: Callable[[Update], None] = lambda update: None,
    stop: Callable[[], bool] = lambda: False,
) -> Outcome:
    """Train from a state, by default the run's first, to the configured number of steps.

    Step k draws its views from the seed and k alone, so a run that goes on from a saved state sees what it
    would have.

    Args:
        config: the run.
        guide: what looks at the views; goes into the compiled step as an argument.
        mesh: devices that share the views; by default `make_mesh(config.views)`.
        state: where to start; its arrays are given up to the first step.
        report: called after the first step and then every few.
        stop: asked after every step whether to end now.

    Returns:
        The last state, and whether the run finished, was stopped, or ended as `config.max_skipped` steps in a
        row were not finite.
    """
    mesh = mesh or make_mesh(config.views)
    start_key, view_key = jax.random.split(jax.random.key(config.seed))
    state = replicate(first_state(start_key, guide, config) if state is None else state, mesh)
    first, health = int(state.step), Health(skipped=int(state.skipped))
    status: Status = "finished"
    pending: list[RunMetrics] = []
    steps = take_steps(view_key, state, guide, config, mesh)
    for step, (state, metrics) in enumerate(steps, first):
        pending.append(metrics)
        stopped, last = stop(), step + 1 == config.steps
        if not (stopped or last or step == first or len(pending) == FETCH_EVERY):
            continue
        records, pending = fetch(step + 1 - len(pending), pending), []
        health = health.after(records)
        report(Update(state, records, health))
        status = _status(health, config, stopped, last)
        if status != "running":
            break
    return Outcome(state, status, health)


def first_state(key: PRNGKeyArray, guide: RunGuide, config: RunConfig) -> RunState:
    """Return the state a run starts from: a small blob in the colour that the guide likes best."""
    state = init_state(key, config)
    return state._replace(field=tinted(state.field, guide.guide, config=without_names(config)))


def take_steps(
    key: PRNGKeyArray, state: RunState, guide: RunGuide, config: RunConfig, mesh: Mesh
) -> Iterator[tuple[RunState, RunMetrics]]:
    """Yield the state and the metrics, still on the devices, after each step up to the last."""
    guide, shared = replicate(guide, mesh), without_names(config)
    for step in range(int(state.step), config.steps):
        views = sample_views(jax.random.fold_in(key, step), config.cameras, count=config.views)
        state, metrics = train_step(state, guide, shard(views, mesh), config=shared)
        yield state, metrics


def _status(health: Health, config: RunConfig, stopped: bool, last: bool) -> Status:
    if health.worst >= config.max_skipped:
        return "diverged"
    if last:
        return "finished"
    return "interrupted" if stopped else "running"


def without_names(config: RunConfig) -> RunConfig:
    """Return the configuration without what a compiled step does not depend on, so that all prompts share
    one."""
    return replace(config, prompt="", models=(), negatives=None, seed=0)


def fetch(first: int, pending: list[RunMetrics]) -> list[Record]:
    """Return metrics as numbers, the first of them of step `first`; waits for the device."""
    rows = (tuple(value.item() for value in metrics) for metrics in jax.device_get(pending))
    return [Record(step, *row) for step, row in enumerate(rows, first)]


@contextmanager
def interruptible() -> Iterator[Callable[[], bool]]:
    """Yield a function that tells whether SIGINT (Ctrl-C) or SIGTERM has come; a second one raises
    KeyboardInterrupt.

    Only the main thread may handle signals; elsewhere the function stays false.
    """
    seen = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield seen.is_set
        return

    def handle(number: int, frame: object) -> None:
        seen.set()
        for other in STOPPING:
            signal.signal(other, signal.default_int_handler)

    before = {number: signal.signal(number, handle) for number in STOPPING}
    try:
        yield seen.is_set
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
