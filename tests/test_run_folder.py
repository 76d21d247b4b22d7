"""Names of run folders, and what a run may replace."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest

from tiny_runs import RUN
from wordlight.errors import WordlightError
from wordlight.train import run_file
from wordlight.train.config import RunConfig
from wordlight.train.run_folder import check_folder, default_folder, prepare_folder, slug


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("a yellow bulldozer", "a-yellow-bulldozer"),
        ("../../etc/passwd", "etc-passwd"),
        ("a/b\\c:d*e?", "a-b-c-d-e"),
        ("Café crème", "cafe-creme"),
        ("🚜", "run"),
        ("🚜 tractor 🚜", "tractor"),
        ("a" * 300, "a" * 40),
        ("-o --overwrite", "o-overwrite"),
        ("line\nbreak\x00", "line-break"),
    ],
)
def test_a_slug_is_safe_on_any_file_system(prompt, expected):
    assert slug(prompt) == expected


def test_the_folder_lies_in_runs_and_tells_configurations_apart():
    configs = [RunConfig("🚜"), RunConfig("🚗"), RunConfig("🚜", seed=1), RunConfig("x/.." * 100)]
    folders = [default_folder(config) for config in configs]
    assert len(set(folders)) == len(configs)
    assert all(folder.parent.name == "runs" and len(folder.name) < 60 for folder in folders)
    assert default_folder(RunConfig("🚜")) == folders[0]


@pytest.fixture
def old_run(tmp_path):
    folder = tmp_path / "run"
    for name in ("checkpoints/12", "checkpoints/mine", "other"):
        (folder / name).mkdir(parents=True)
    for name in ("sheet.png", "mesh.glb", "notes.txt", "other/sheet.png"):
        (folder / name).write_text("old")
    run_file.write_json(folder / "run.json", {"wordlight": "1"})
    return folder


def test_a_folder_with_another_run_is_refused_naming_the_ways_out(old_run):
    with pytest.raises(WordlightError, match=r"already holds a run .*sheet.png.* -o, or pass --overwrite"):
        check_folder(old_run)


def test_overwriting_removes_only_what_runs_write(old_run):
    check_folder(old_run, overwrite=True)
    prepare_folder(old_run)
    left = sorted(str(path.relative_to(old_run)) for path in old_run.rglob("*"))
    assert left == ["checkpoints", "checkpoints/mine", "notes.txt", "other", "other/sheet.png"]


def test_files_that_no_run_wrote_are_refused_even_so(tmp_path):
    (tmp_path / "checkpoints").mkdir()
    with pytest.raises(WordlightError, match=r"no readable run.json .* -o"):
        check_folder(tmp_path, overwrite=True)


def test_a_folder_with_other_things_or_none_is_fine_and_left_alone(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    check_folder(tmp_path)
    check_folder(tmp_path / "new" / "deep")
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_a_path_through_a_file_is_refused(tmp_path):
    (tmp_path / "file").write_text("mine")
    for path in (tmp_path / "file", tmp_path / "file" / "run"):
        with pytest.raises(WordlightError, match="is a file"):
            check_folder(path)


def test_a_configuration_survives_its_file(tmp_path):
    config = replace(RUN, prompt='"..\\/🚜' * 60, negatives=("smoke", "fog"))
    run_file.write_json(tmp_path / "run.json", {"wordlight": "1", "config": config})
    assert run_file.read_config(tmp_path) == config


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"prompt": 7}, "ValueError: 7 is not str"),
        ({"sides": "no"}, "ValueError: 'no' is not bool"),
        ({"models": [None]}, "ValueError: None is not str"),
        ({"models": "demo"}, "ValueError: 'demo' is not a list"),
        ({"steps": "many"}, "ValueError: invalid literal"),
        ({"colour": "red"}, "KeyError: 'colour'"),
    ],
)
def test_values_of_another_type_are_refused(tmp_path, changed, reason):
    config = run_file.plain(RUN) | changed
    run_file.write_json(tmp_path / "run.json", {"wordlight": "1", "config": config})
    with pytest.raises(WordlightError, match=re.escape(f"cannot be read as a run ({reason}")):
        run_file.read_config(tmp_path)


def test_a_number_beyond_all_bounds_is_refused(tmp_path):
    (tmp_path / "run.json").write_text('{"wordlight": "1", "config": {"prompt": "a car", "steps": 1e999}}')
    with pytest.raises(WordlightError, match="OverflowError"):
        run_file.read_config(tmp_path)


def test_numbers_that_are_not_finite_become_null():
    line = run_file.json_line({"loss": float("nan"), "rate": np.inf, "step": 3, "name": "é"})
    assert json.loads(line) == {"loss": None, "rate": None, "step": 3, "name": "é"}
    assert line.endswith("}\n")
