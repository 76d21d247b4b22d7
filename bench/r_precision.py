"""R-Precision of `wordlight dream` over captions drawn from the world: `python -m bench.r_precision`.

Makes one object for each caption with the command a user would type, lets both judges rank them, and writes
the table and the picture of all objects, failures included. Objects that are already there are not made
again.
"""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from queue import Queue
from typing import Any

import numpy as np
import tyro
from PIL import Image

from wordlight.data.world.captions import all_captions
from wordlight.evaluate import RunJudgement, as_json, evaluate, precisions
from wordlight.export.images import contact_sheet, save_png
from wordlight.train import run_file
from wordlight.train.config import PresetName, RunConfig
from wordlight.train.presets import find_preset
from wordlight.train.results import ResultConfig

COLUMNS = 4
VIEWS_SHOWN = 3
GAP = 4  # between the pictures of a sheet


@dataclass(frozen=True)
class Options:
    """What to measure.

    Attributes:
        runs: folder that gets a folder for each caption.
        docs: folder that gets `r_precision.md` and `images/r_precision.png`.
        count: captions to draw.
        seed: draws the captions; every run itself has seed 0.
        preset: of `wordlight dream`.
        jobs: objects made at once, each on its share of the cores. Together they are made sooner, and each
            takes longer.
    """

    runs: Path = Path("runs/r_precision")
    docs: Path = Path("docs")
    count: int = 24
    seed: int = 0
    preset: PresetName = "default"
    jobs: int = 1


def draw_captions(count: int, seed: int) -> list[str]:
    """Return different captions of the world, drawn at random."""
    captions = all_captions()
    chosen = np.random.default_rng(seed).choice(len(captions), size=count, replace=False)
    return [captions[i] for i in chosen]


def make_all(captions: Sequence[str], folders: Sequence[Path], options: Options) -> None:
    """Make every object that is not there yet, several at once, each process on cores of its own."""
    cores = cores_here()
    jobs = max(1, min(options.jobs, len(cores)))
    shares: Queue[set[int]] = Queue()
    for job in range(jobs):
        shares.put(set(cores[job::jobs]))
    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(partial(_make, options.preset, shares), captions, folders))


def cores_here() -> list[int]:
    """Return the cores this process may use; systems that cannot say so have them all."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def is_made(folder: Path, config: RunConfig) -> bool:
    """Return whether a folder holds a finished run of that configuration."""
    if not (folder / run_file.NAME).is_file():
        return False
    run = run_file.read_run(folder)
    whole = run["status"] == "finished" and run["scores"]
    return bool(whole) and run_file.read_config(folder) == config


def _make(preset: PresetName, shares: "Queue[set[int]]", caption: str, folder: Path) -> None:
    if is_made(folder, find_preset(preset).apply(RunConfig(caption))):
        return
    command = [sys.executable, "-m", "wordlight", "dream", caption, "-o", str(folder), "--overwrite"]
    share = shares.get()
    try:
        process = subprocess.Popen([*command, "--preset", preset, "--seed", "0"])
        if hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(process.pid, share)
        if process.wait():
            raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
    finally:
        shares.put(share)


def table(results: Sequence[RunJudgement]) -> str:
    """Return the runs and the precisions as Markdown."""
    names = list(results[0].judges)
    lines = [f"| | caption | {' | '.join(f'{n}, colour | {n}, shape' for n in names)} | both |"]
    lines.append("|---" * (3 + 2 * len(names)) + "|")
    for index, result in enumerate(results, start=1):
        cells = [
            f"{r.rank}" if r.right else f"{r.rank} ({r.top})"
            for judgement in result.judges.values()
            for r in (judgement.colour, judgement.geometry)
        ]
        lines.append(
            f"| {index} | {result.caption} | {' | '.join(cells)} | {'yes' if result.colour_right else ''} |"
        )
    return "\n".join(lines)


def summary(results: Sequence[RunJudgement]) -> str:
    """Return the precisions with their standard errors as Markdown."""
    lines = ["| judge | in colour, among 240 captions | shape alone, among 24 kinds |", "|---|---|---|"]
    for name, row in precisions(results).items():
        cells = [
            f"{100 * row[what].value:.0f} ± {100 * row[what].standard_error:.0f} %"
            for what in ("colour", "geometry")
        ]
        lines.append(f"| {name} | {cells[0]} | {cells[1]} |")
    return "\n".join(lines)


def picture(folders: Sequence[Path]) -> np.ndarray:
    """Return the first views of every run's sheet, in reading order."""
    strips = [_views(folder / "sheet.png") for folder in folders]
    rows = [strips[i : i + COLUMNS] for i in range(0, len(strips), COLUMNS)]
    return contact_sheet(
        rows,
        labels=[
            [str(i + 1) for i in range(r, r + len(row))]
            for r, row in zip(range(0, len(strips), COLUMNS), rows, strict=True)
        ],
    )


def _views(sheet: Path) -> np.ndarray:
    """Return the first pictures of a sheet's first row, without their labels."""
    side = ResultConfig().sheet_size + GAP
    strip = Image.open(sheet).convert("RGB").crop((0, 0, VIEWS_SHOWN * side + GAP, side + GAP))
    small = strip.resize((strip.width * 96 // strip.height, 96))
    return np.asarray(small, np.float32) / 255


def write_docs(options: Options, results: Sequence[RunJudgement], folders: Sequence[Path]) -> None:
    """Write the page and its picture."""
    times = [json.loads((f / "run.json").read_text())["seconds"] for f in folders]
    totals: list[Any] = [sum(t.values()) for t in times]
    cores = len(cores_here())
    save_png(options.docs / "images" / "r_precision.png", picture(folders))
    page = f"""# R-Precision

`python -m bench.r_precision` makes one object with the `{options.preset}` preset for each of {options.count}
captions drawn from the embedded world with seed {options.seed}, and lets the two judges rank the true
caption, from views that training never used. In colour it competes with all 240 captions; with texture
removed, shaded by normals, with the 24 kinds. The figure in a cell is the rank of the true caption, and the
caption that came first instead.

{summary(results)}

A run counts as right when both judges rank its caption first. Errors are standard errors of a proportion;
where all {options.count} are right or wrong the formula gives 0, and rates {300 / options.count:.0f} points
away are still possible.
Median time of a run, {options.jobs} at once on {cores} cores: {np.median(totals):.0f} s.

{table(results)}

![all objects, three views each, numbered as in the table](images/r_precision.png)
"""
    (options.docs / "r_precision.md").write_text(page, encoding="utf-8")


def main(options: Options) -> None:
    """Make, judge and write."""
    captions = draw_captions(options.count, options.seed)
    folders = [options.runs / caption.replace(" ", "-") for caption in captions]
    make_all(captions, folders, options)
    results = evaluate(folders)
    (options.runs / "judgements.json").write_text(json.dumps(as_json(results), indent=2), encoding="utf-8")
    write_docs(options, results, folders)
    print(summary(results))


if __name__ == "__main__":
    main(tyro.cli(Options))
