"""Rows 3 and 4: preprocessing with its gradient, and prompts to embeddings."""

from pathlib import Path

from bench.report import OURS, Row
from bench.workers import Route, Turns, take_turns


def preprocessing(*, batch: int, rounds: int, tower: Row) -> Row:
    """Return the row of 512x512 to 224; `tower` is row 1 of the same batch."""
    task = {"batch": batch, "size": 512}
    routes = [
        Route(OURS, "preprocessing", task | {"way": "wordlight"}),
        Route("jax.image.resize, crop, normalisation", "preprocessing", task | {"way": "by hand"}),
    ]
    turns = take_turns(routes, rounds)
    share = turns.median(OURS) / tower.values[OURS]
    notes = (f"{100 * share:.1f} % of row 1 at batch {batch}", *differences(turns))
    return Row(
        "3", f"preprocessing 512x512 to 224 with its gradient, batch {batch}", medians(turns), notes=notes
    )


def text(folder: Path, *, count: int, rounds: int) -> Row:
    """Return the row of prompts, tokenised and embedded."""
    task = {"folder": str(folder), "count": count}
    routes = [Route(OURS, "wordlight_text", task), Route("transformers, PyTorch", "torch_text", task)]
    turns = take_turns(routes, rounds)
    title = f"{count} prompts tokenised and embedded, text tower of ViT-B/32"
    return Row("4", title, medians(turns), failed=tuple(turns.failed.items()), notes=differences(turns))


def medians(turns: Turns) -> dict[str, float]:
    """Return the median of every route."""
    return {name: turns.median(name) for name in turns.seconds}


def differences(turns: Turns, *names: str) -> tuple[str, ...]:
    """Return a note on how far the results of routes (by default of all) lie apart."""
    chosen = [turns.values.get(name) for name in names or turns.values]
    values = [value for value in chosen if value is not None]
    if len(values) < 2:
        return ()
    return (f"relative difference of the results: {(max(values) - min(values)) / abs(values[0]):.0e}",)
