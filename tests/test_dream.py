"""Whole runs, tiny ones: what lies in the folder when all goes well, and when it does not."""

import json
from contextlib import contextmanager
from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest
from PIL import Image

import wordlight as wl
from tiny_runs import RESULTS, RUN, silent
from wordlight.radiance.grids import VoxelConfig, VoxelField
from wordlight.train import dream as dream_module
from wordlight.train.checkpoint import load_run
from wordlight.train.dream import dream
from wordlight.train.health import TrainingDivergedError
from wordlight.train.results import write_mesh


@pytest.fixture(scope="module")
def config(model_folder):
    return replace(RUN, models=(model_folder,), prompt="a photo of a red car")


@pytest.fixture(scope="module")
def run(config, tmp_path_factory):
    return dream(config, output=tmp_path_factory.mktemp("out") / "run", results=RESULTS, console=silent())


def read(folder):
    return json.loads((folder / "run.json").read_text(encoding="utf-8"))


def test_a_run_leaves_pictures_figures_and_a_checkpoint(run):
    folder, summary = run
    made = {path.name for path in folder.iterdir()}
    wanted = {"turntable.mp4", "sheet.png", "preview.png", "metrics.jsonl", "run.json", "checkpoints"}
    assert wanted <= made <= wanted | {"mesh.glb"}
    # A mesh, or a line that says why there is none.
    assert ("mesh.glb" in made) != any("There is no mesh.glb" in line for line in summary.warnings)
    with Image.open(folder / "sheet.png") as sheet:
        assert sheet.width > 2 * RESULTS.sheet_size
    with Image.open(folder / "preview.png") as preview:
        assert preview.size == (16, 16)


def test_the_run_file_tells_everything(run, config):
    folder, _ = run
    told = read(folder)
    assert (told["prompt"], told["seed"], told["status"], told["steps"]) == (
        "a photo of a red car",
        0,
        "finished",
        RUN.steps,
    )
    assert {"wordlight", "jax", "python", "scores", "warnings", "skipped_steps", "devices"} <= set(told)
    assert {"load", "compile", "train", "export"} == set(told["seconds"])
    assert {"similarity", "best_other", "wins", "opacity"} == set(told["scores"])
    assert told["config"]["models"] == list(config.models)


def test_metrics_are_one_object_a_step(run):
    folder, _ = run
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == list(range(RUN.steps))
    assert {"loss", "similarity", "opacity", "gradient_norm", "skipped", "seconds"} < set(lines[0])


def test_the_field_is_read_back(run, config):
    again, field = load_run(run[0])
    assert again == config
    assert [level.shape[0] for level in field.levels] == list(config.field.resolutions)


def test_the_same_folder_is_refused_and_keeps_its_files(run, config):
    before = read(run[0])
    with pytest.raises(wl.WordlightError, match="already holds a run"):
        dream(config, output=run[0], results=RESULTS, console=silent())
    assert read(run[0]) == before


def test_an_interrupted_run_still_has_its_results(config, tmp_path, monkeypatch):
    @contextmanager
    def at_once():
        yield lambda: True

    monkeypatch.setattr(dream_module, "interruptible", at_once)
    folder, summary = dream(config, output=tmp_path / "run", results=RESULTS, console=silent())
    assert (summary.status, summary.steps) == ("interrupted", 1)
    assert (folder / "sheet.png").exists()
    assert (folder / "checkpoints" / "1").is_dir()


def test_a_diverged_run_says_why_and_keeps_its_results(config, tmp_path, monkeypatch):
    model = wl.load(config.models[0])
    broken = model.replace_params(model.params | {"logit_scale": jnp.float32(np.nan)})
    monkeypatch.setattr(dream_module, "load", lambda name: broken)
    with pytest.raises(TrainingDivergedError, match="steps in a row had a loss or a gradient"):
        dream(config, output=tmp_path / "run", results=RESULTS, console=silent())
    told = read(tmp_path / "run")
    assert (told["status"], told["skipped_steps"] >= RUN.max_skipped) == ("diverged", True)
    assert (tmp_path / "run" / "sheet.png").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"prompt": " "}, "is empty"),
        ({"prompt": "a red dragon"}, "dragon"),
        ({"models": ("./nowhere",)}, "There is no model"),
        ({"models": ()}, "no guide"),
        ({"models": ("demo", " ")}, "name is missing or empty"),
        ({"plain": 1.5}, r"plain 1.5 \(it has to be a share"),
        ({"ambient": (0.9, 0.2)}, r"ambient \(0.9, 0.2\)"),
        ({"steps": 0}, r"steps 0 \(it has to be from 1"),
        ({"views": 0}, "views 0"),
        ({"seed": -1}, "seed -1"),
        ({"cameras": replace(RUN.cameras, size=15)}, "size 15"),
        ({"cameras": replace(RUN.cameras, size=2049)}, "size 2049"),
        ({"cameras": replace(RUN.cameras, samples=0)}, "samples 0"),
        ({"cameras": replace(RUN.cameras, elevation=(20.0, 25.0))}, "held_out"),
        ({"steps": -3, "views": -4}, "steps -3 .*views -4"),
    ],
)
def test_what_cannot_work_is_refused_before_anything_is_written(config, tmp_path, change, message):
    with pytest.raises(wl.WordlightError, match=message):
        dream(replace(config, **change), output=tmp_path / "run", results=RESULTS, console=silent())
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize(("raw", "made"), [(5.0, True), (-9.0, False)])
def test_a_mesh_or_a_line_that_says_the_field_is_empty(tmp_path, raw, made):
    field = VoxelField(jnp.full((4, 4, 4, 4), raw), VoxelConfig(4))
    lines = write_mesh(tmp_path / "mesh.glb", field, RESULTS)
    assert (tmp_path / "mesh.glb").exists() == made
    assert bool(lines) != made
    assert made or "densities range from" in lines[0]
