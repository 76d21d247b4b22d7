"""How a run ends when it is stopped or something fails: what `run.json` says, and what is kept."""

import json
import os
import signal
from dataclasses import replace

import jax
import pytest

from tiny_runs import RESULTS, RUN, save_tiny_model, silent
from wordlight.errors import WordlightError
from wordlight.train import dream as dream_module
from wordlight.train.checkpoint import Checkpoints, load_run
from wordlight.train.checks import enough_memory
from wordlight.train.dream import dream
from wordlight.train.results import write_results
from wordlight.train.run_folder import own_folder


@pytest.fixture(scope="module")
def config(tmp_path_factory):
    folder = tmp_path_factory.mktemp("end") / "model"
    save_tiny_model(folder)
    return replace(RUN, models=(str(folder),))


def read(folder):
    return json.loads((folder / "run.json").read_text(encoding="utf-8"))


def test_a_first_interrupt_while_results_are_written_loses_nothing(config, tmp_path, monkeypatch):
    seen = []

    def interrupted(folder, *args, **options):
        seen.append(read(folder))
        os.kill(os.getpid(), signal.SIGINT)
        return write_results(folder, *args, **options)

    monkeypatch.setattr(dream_module, "write_results", interrupted)
    console = silent()
    folder, summary = dream(config, output=tmp_path / "run", results=RESULTS, console=console)
    assert (seen[0]["status"], seen[0]["steps"]) == ("finished", RUN.steps)
    assert (summary.status, (folder / "sheet.png").exists()) == ("finished", True)
    assert "Writing the results (Ctrl-C twice abandons them)" in console.file.getvalue()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_second_one_abandons_them_and_the_run_file_says_so(config, tmp_path, monkeypatch, number):
    def interrupted(*args, **options):
        os.kill(os.getpid(), number)
        os.kill(os.getpid(), number)

    monkeypatch.setattr(dream_module, "write_results", interrupted)
    with pytest.raises(KeyboardInterrupt):
        dream(config, output=tmp_path / "run", results=RESULTS, console=silent())
    told = read(tmp_path / "run")
    assert (told["status"], told["steps"]) == ("interrupted", RUN.steps)
    assert load_run(tmp_path / "run")[0] == config


@pytest.mark.parametrize(
    ("error", "reason"), [(OSError(28, "full"), "full"), (RuntimeError(), "RuntimeError")]
)
def test_a_run_that_dies_does_not_stay_running(config, tmp_path, monkeypatch, error, reason):
    def save(self, state):
        raise error

    monkeypatch.setattr(Checkpoints, "save", save)
    with pytest.raises(type(error)):
        dream(config, output=tmp_path / "run", results=RESULTS, console=silent())
    told = read(tmp_path / "run")
    assert (told["status"], told["steps"]) == ("failed", RUN.steps)
    assert reason in told["reason"]


def test_a_lack_of_memory_names_what_to_lower(config, tmp_path, monkeypatch):
    def train(*args, **options):
        raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 9 bytes.")

    monkeypatch.setattr(dream_module, "train", train)
    message = r"size 16, views 2 and samples 8\. .* = 4,096 points .* Lower --size first"
    with pytest.raises(WordlightError, match=message):
        dream(config, output=tmp_path / "run", results=RESULTS, console=silent())
    assert "Memory ran out" in read(tmp_path / "run")["reason"]


def test_other_errors_of_the_device_stay_what_they_are():
    with pytest.raises(jax.errors.JaxRuntimeError, match="INTERNAL"), enough_memory(RUN):
        raise jax.errors.JaxRuntimeError("INTERNAL: broken")


def test_a_folder_that_a_run_is_writing_to_is_refused_until_it_ends(config, tmp_path):
    with own_folder(tmp_path / "run"):
        with pytest.raises(WordlightError, match=r"Another run is writing to .* Wait .* with -o"):
            dream(config, output=tmp_path / "run", overwrite=True, results=RESULTS, console=silent())
        assert not any((tmp_path / "run").iterdir())
    with own_folder(tmp_path / "run"):
        pass
