"""What a run cannot be made of, said before it starts where that can be known."""

import math
from collections.abc import Iterator
from contextlib import contextmanager

import jax

from wordlight.errors import WordlightError
from wordlight.train.config import RunConfig

Rule = tuple[str, object, bool, str]


def check_config(config: RunConfig) -> None:
    """Refuse an impossible run, naming every value that is.

    Raises:
        WordlightError: the prompt is empty or a number is out of its range.
    """
    if not config.prompt.strip():
        raise WordlightError(
            f"The prompt {config.prompt!r} is empty. An empty prompt means nothing to the model, and usually "
            "comes from "
            'an unset variable. Say what the object should be, for example "a yellow bulldozer".'
        )
    if not config.models or not all(name.strip() for name in config.models):
        raise WordlightError(
            f"The run has no guide: {config.models}. A name is missing or empty. Name at least one model, "
            'such as "demo".'
        )
    rules = (*_sizes(config), *_places(config), *_rates(config))
    wrong = [f"{name} {value} (it has to be {rule})" for name, value, holds, rule in rules if not holds]
    if wrong:
        raise WordlightError(
            f"No run can be made with {', '.join(wrong)}. A unit mixed up, or a digit too many, is the usual "
            "cause. Give values in these ranges, or leave the option out to take the preset's."
        )


@contextmanager
def enough_memory(config: RunConfig) -> Iterator[None]:
    """Turn a lack of memory inside into a refusal that names what to lower.

    Raises:
        WordlightError: memory ran out.
    """
    try:
        yield
    except (jax.errors.JaxRuntimeError, MemoryError) as error:
        if isinstance(error, jax.errors.JaxRuntimeError) and "RESOURCE_EXHAUSTED" not in str(error):
            raise
        size, samples = config.cameras.size, config.cameras.samples
        raise WordlightError(
            f"Memory ran out with size {size}, views {config.views} and samples {samples}. A step keeps up "
            f"to size x size x views x samples = {size * size * config.views * samples:,} points for the "
            "gradient. Lower --size first, as it counts twice, then --views or --samples."
        ) from error


def _sizes(config: RunConfig) -> Iterator[Rule]:
    cameras, resolutions = config.cameras, config.field.resolutions
    yield "steps", config.steps, 1 <= config.steps <= 10**6, "from 1 to 1000000"
    yield "views", config.views, 1 <= config.views <= 1024, "from 1 to 1024"
    yield "size", cameras.size, 16 <= cameras.size <= 2048, "from 16 to 2048 pixels"
    yield "samples", cameras.samples, 2 <= cameras.samples <= 2048, "from 2 to 2048"
    yield "seed", config.seed, 0 <= config.seed < 2**32, "from 0 to 4294967295"
    yield "max_skipped", config.max_skipped, config.max_skipped >= 1, "at least 1"
    fits = bool(resolutions) and all(2 <= r <= 512 for r in resolutions)
    yield "resolutions", resolutions, fits, "one or more numbers from 2 to 512"


def _places(config: RunConfig) -> Iterator[Rule]:
    cameras = config.cameras
    low, high = cameras.elevation
    start, end = cameras.held_out
    opening = cameras.field_of_view
    yield "elevation", cameras.elevation, -90 <= low <= high <= 90, "a range within -90 to 90 degrees"
    outside = start <= end and (low < start or high > end)
    yield "held_out", cameras.held_out, outside, "a range of elevations that leaves some to train on"
    yield "radius", cameras.radius, 0 < cameras.radius[0] <= cameras.radius[1] < math.inf, "a range above 0"
    yield "field_of_view", opening, 0 < opening < 180, "above 0 and below 180 degrees"


def _rates(config: RunConfig) -> Iterator[Rule]:
    optimizer = config.optimizer
    rate = optimizer.learning_rate
    yield "plain", config.plain, 0 <= config.plain <= 1, "a share from 0 to 1"
    for name, ambient in (("ambient", config.ambient), ("plain_ambient", config.plain_ambient)):
        yield name, ambient, 0 <= ambient[0] <= ambient[1] <= 1, "a range within 0 to 1"
    yield "learning_rate", rate, 0 < rate < math.inf, "above 0 and finite"
    yield "warmup", optimizer.warmup, 0 <= optimizer.warmup <= 1, "a share from 0 to 1"
    yield "clip", optimizer.clip, optimizer.clip > 0, "above 0"
