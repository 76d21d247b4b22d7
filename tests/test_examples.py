"""The examples run as they stand: bare JAX, Flax Linen, Flax NNX and Equinox."""

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
NEEDS = {"flax_linen_field": "flax", "flax_nnx_field": "flax", "equinox_field": "equinox"}


@pytest.mark.parametrize("name", sorted(path.stem for path in EXAMPLES.glob("*.py")))
def test_the_loss_in_an_example_falls(name: str) -> None:
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    main = runpy.run_path(str(EXAMPLES / f"{name}.py"))["main"]

    losses = main(steps=12)

    assert min(losses[-3:]) < losses[0]
