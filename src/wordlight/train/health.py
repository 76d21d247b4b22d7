"""What can go wrong with a run while it goes: steps that are not finite, an object that dissolves or fills
the view."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

from wordlight.errors import WordlightError

WINDOW = 10
DISSOLVED, FILLED = 0.01, 0.95


class TrainingDivergedError(WordlightError):
    """Too many steps in a row had a loss or a gradient that is not finite."""


class Record(NamedTuple):
    """Figures of one step on the host; see `RunMetrics`."""

    step: int
    loss: float
    similarity: float
    opacity: float
    gradient_norm: float
    skipped: int


@dataclass(frozen=True)
class Health:
    """What a run's records have shown so far, as a value.

    Attributes:
        skipped: steps skipped so far.
        in_a_row: steps skipped since the last good one.
        worst: most steps skipped in a row.
        opacities: of the last good steps, `WINDOW` at most.
        condition: `"dissolved"`, `"filled"` or, where all is well, empty.
        warnings: a line each time that the condition turned bad and when the first step was skipped.
    """

    skipped: int = 0
    in_a_row: int = 0
    worst: int = 0
    opacities: tuple[float, ...] = ()
    condition: str = ""
    warnings: tuple[str, ...] = ()

    def after(self, records: Iterable[Record]) -> "Health":
        """Return the health with more steps counted."""
        health = self
        for record in records:
            health = health._after(record)
        return health

    def _after(self, record: Record) -> "Health":
        if record.skipped > self.skipped:
            return self._skipped(record)
        opacities = (*self.opacities, record.opacity)[-WINDOW:]
        condition = _condition(opacities)
        changed = bool(condition) and condition != self.condition
        lines = (_warning(condition, record),) if changed else ()
        return replace(
            self, in_a_row=0, opacities=opacities, condition=condition, warnings=self.warnings + lines
        )

    def _skipped(self, record: Record) -> "Health":
        in_a_row = self.in_a_row + 1
        line = (
            f"Step {record.step} was skipped, as its loss or gradient is not finite. "
            "Later ones are counted only."
        )
        lines = () if self.skipped else (line,)
        worst = max(self.worst, in_a_row)
        return replace(
            self,
            skipped=record.skipped,
            in_a_row=in_a_row,
            worst=worst,
            warnings=self.warnings + lines,
        )


def _condition(opacities: tuple[float, ...]) -> str:
    if len(opacities) < WINDOW:
        return ""
    mean = sum(opacities) / WINDOW
    if mean < DISSOLVED:
        return "dissolved"
    return "filled" if mean > FILLED else ""


def _warning(condition: str, record: Record) -> str:
    if condition == "dissolved":
        return (
            f"The object has dissolved: at step {record.step} it covers {record.opacity:.2%} of the view. "
            "The opacity penalty outweighs the guidance. Lower its weight or the transmittance target, or "
            "try another seed."
        )
    return (
        f"The object fills the view: at step {record.step} it covers {record.opacity:.2%} of it. The opacity "
        "penalty is too weak, or the camera too close. Raise the penalty's weight or the transmittance "
        "target, or the radius."
    )
