"""The examples run as they stand."""

import runpy
from pathlib import Path

EXAMPLES = Path(__file__).parents[1] / "examples"


def test_the_loss_in_an_own_training_step_falls() -> None:
    main = runpy.run_path(str(EXAMPLES / "own_training_step.py"))["main"]

    losses = main(steps=8)

    assert losses[-1] < losses[0]
