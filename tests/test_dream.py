"""Whole runs, tiny ones: what lies in the folder when all goes well, and when it does not."""

import json
from contextlib import contextmanager
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from PIL import Image

import wordlight as wl
from tiny_runs import RESULTS, RUN, save_tiny_model, silent
from wordlight.radiance.grids import VoxelConfig, VoxelField
from wordlight.train import dream as dream_module
from wordlight.train.checkpoint import load_run
from wordlight.train.dream import dream
from wordlight.train.guide import contrast_texts, make_guidance, make_guide, plain_prompt
from wordlight.train.health import TrainingDivergedError
from wordlight.train.results import write_mesh


@pytest.fixture(scope="module")
def model_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dream") / "model"
    save_tiny_model(folder)
    return str(folder)


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


def test_the_world_sees_a_prompt_against_all_captions_that_are_not_true(model_folder):
    model = wl.load(model_folder)
    texts = contrast_texts(model, replace(RUN, negatives=("fog", "a toy")))
    assert texts[:2] == ("fog", "a toy")
    assert {"a blue car", "a red chair", "smoke"} <= set(texts)
    assert "a red car" not in texts
    assert len(set(texts)) == len(texts)
    assert make_guidance(model, RUN).config.loss == "softmax"


def test_other_models_have_no_negatives_but_those_given(model_folder, monkeypatch):
    monkeypatch.setattr("wordlight.train.guide.knows_only_the_world", lambda model: False)
    model = wl.load(model_folder)
    alone = make_guidance(model, RUN)
    assert (alone.config.loss, len(alone.negative_embeds)) == ("cosine", 0)
    against = make_guidance(model, replace(RUN, negatives=("a blue car",)))
    assert (against.config.loss, len(against.negative_embeds)) == ("softmax", 1)


def test_a_plain_view_is_to_show_the_kind_without_its_colour(model_folder, monkeypatch):
    model = wl.load(model_folder)
    assert plain_prompt(model, "an orange airplane") == "an airplane"
    assert plain_prompt(model, "something red") == "something red"
    guide = make_guide([model], RUN)
    kinds = guide.for_view(jnp.array(True)).text_embeds
    np.testing.assert_allclose(kinds, model.encode_text("a car"), atol=1e-6)
    coloured = guide.for_view(jnp.array(False)).text_embeds
    np.testing.assert_allclose(coloured, model.encode_text("a red car"), atol=1e-6)
    monkeypatch.setattr("wordlight.train.guide.knows_only_the_world", lambda model: False)
    assert plain_prompt(model, "a red car") == "a red car"


def test_several_models_guide_together_with_an_equal_say(model_folder):
    model = wl.load(model_folder)
    image, key = jax.random.uniform(jax.random.key(0), (32, 32, 3)), jax.random.key(1)
    one = replace(RUN, guidance=replace(RUN.guidance, views=None))
    alone, both = make_guide([model], one), make_guide([model, model], one)
    coloured = jnp.array(False)
    loss, metrics = both.for_view(coloured)(image, key)
    expected, _ = alone.for_view(coloured)(image, key)
    np.testing.assert_allclose(loss, expected, rtol=1e-5)
    assert len(metrics.members) == 2


@pytest.mark.parametrize(("raw", "made"), [(5.0, True), (-9.0, False)])
def test_a_mesh_or_a_line_that_says_the_field_is_empty(tmp_path, raw, made):
    field = VoxelField(jnp.full((4, 4, 4, 4), raw), VoxelConfig(4))
    lines = write_mesh(tmp_path / "mesh.glb", field, RESULTS)
    assert (tmp_path / "mesh.glb").exists() == made
    assert bool(lines) != made
    assert made or "densities range from" in lines[0]
