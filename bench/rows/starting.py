"""Row 9: importing, compiling, and starting again."""

import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.report import OURS, Row
from bench.workers import ROOT

PROMPT = "a yellow bulldozer"


def importing(*, rounds: int) -> Row:
    """Return the row of `import wordlight` beside `import jax`, each in a process of its own."""
    seconds: dict[str, list[float]] = {"import wordlight": [], "import jax": []}
    for _ in range(rounds):
        for statement, times in seconds.items():
            start = time.perf_counter()
            subprocess.run([sys.executable, "-c", statement], check=True)
            times.append(time.perf_counter() - start)
    medians = {name: statistics.median(times) for name, times in seconds.items()}
    more = medians["import wordlight"] - medians["import jax"]
    notes = (f"{more:.2f} s beyond import jax",)
    return Row("9", "process that imports and ends", medians, notes=notes, ours="import wordlight")


def compiling() -> Row:
    """Return the row of the first step of `wordlight dream`, in a first and in a second process."""
    with tempfile.TemporaryDirectory() as cache, tempfile.TemporaryDirectory() as folder:
        seconds = [parts(Path(folder), Path(cache), "--steps", "12") for _ in range(2)]
    values = {OURS: seconds[0]["compile"], "second process, same cache": seconds[1]["compile"]}
    notes = (f"programs compiled in a step after the first: {recompiled()}",)
    return Row("9", "first step of dream, nearly all of it compiling", values, notes=notes)


def parts(folder: Path, cache: Path, *options: str) -> dict[str, float]:
    """Run `wordlight dream` with the default preset and return the seconds of its parts."""
    from wordlight.train.run_file import read_run

    command = [sys.executable, "-m", "wordlight", "dream", PROMPT, "-o", str(folder), "--overwrite", *options]
    environment = os.environ | {"JAX_COMPILATION_CACHE_DIR": str(cache)}
    subprocess.run(command, check=True, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL)
    return read_run(folder)["seconds"]


def recompiled() -> int:
    """Return how many programs are compiled between the sixth step and the eleventh of a run."""
    code = f"""
import jax
from dataclasses import replace
from wordlight.clip.load import load
from wordlight.train.config import RunConfig
from wordlight.train.guide import make_guide
from wordlight.train.loop import train

config = replace(RunConfig("{PROMPT}"), steps=11)
guide = make_guide([load(name) for name in config.models], config)
train(config, guide, report=lambda update: jax.config.update("jax_log_compiles", int(update.state.step) >= 6))
"""
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return len(re.findall(r"Finished XLA compilation", found.stderr))
