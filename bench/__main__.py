"""Every row of the table of speed: `make bench`, or `python -m bench` in the parity environment.

Writes `bench/results.json` and `docs/speed.md` as rows are done; `--only 1 3` measures some rows again and
keeps the others. On a machine with a GPU, and packages that use it: `--device cuda`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import tyro

from bench import checkpoints
from bench.report import Row, lines, write
from bench.rows import dreams, host, memory, preparing, quality, radiance, starting, towers
from bench.workers import ROOT

GPU_ROWS = (1, 2, 6, 7)
FILES = (ROOT / "bench" / "results.json", ROOT / "docs" / "speed.md")


@dataclass(frozen=True)
class Options:
    """What to measure.

    Attributes:
        only: numbers of rows; all if none is given.
        rounds: turns of every route.
        device: of PyTorch, `cpu` or `cuda`; JAX takes the best there is.
        cache: folder of the checkpoints with random weights, about 2.4 GB.
    """

    only: tuple[int, ...] = ()
    rounds: int = 10
    device: Literal["cpu", "cuda"] = "cpu"
    cache: Path = ROOT / ".cache" / "bench"


def rows(options: Options) -> Iterator[Row]:
    """Yield the rows, in order."""
    chosen, rounds = options.only or (range(1, 11) if options.device == "cpu" else GPU_ROWS), options.rounds
    if options.device != "cpu" and not set(chosen) <= set(GPU_ROWS):
        raise SystemExit(f"Rows {chosen} were asked for on {options.device}. Only {GPU_ROWS} can go there.")
    small = checkpoints.vit_b_32(options.cache / "vit-b-32")
    if {1, 2, 3} & set(chosen):
        for batch in (8, 1) if options.device == "cpu" else (64,):
            measured = list(towers.measure(small, batch=batch, rounds=rounds, device=options.device))
            yield from measured
            if batch == 8 and 3 in chosen:
                yield preparing.preprocessing(batch=batch, rounds=rounds, tower=measured[0])
    if 4 in chosen:
        yield preparing.text(small, count=1000, rounds=3)
    if 5 in chosen:
        yield host.measure(small, batch=1, rounds=rounds)
    if 6 in chosen:
        yield radiance.measure(rays=1024, rounds=min(rounds, 3), device=options.device)
        yield quality.measure()
    if 7 in chosen:
        yield from memory.whole_images((64, 128, 256, 512, 1024), rounds=3)
    if 8 in chosen:
        yield from memory.loading(checkpoints.vit_l_14(options.cache / "vit-l-14"), rounds=3)
    if 9 in chosen:
        yield starting.importing(rounds=rounds)
        yield starting.compiling()
    if 10 in chosen:
        yield dreams.whole()
        yield dreams.split(rounds=rounds)
        yield from dreams.costs(rounds=rounds)


def main(options: Options) -> None:
    """Measure, print every row as it is done, and write all of them."""
    done = []
    for row in rows(options):
        print("\n".join(lines(row)), flush=True)
        done.append(row)
        write(done, *FILES)
    write(done, *FILES, complete=True)


if __name__ == "__main__":
    main(tyro.cli(Options))
