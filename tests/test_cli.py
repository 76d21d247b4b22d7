"""The command: its help, its tables, its errors, and its exit codes."""

import importlib.metadata
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tiny_runs import RUN, save_tiny_run
from wordlight.cli import main
from wordlight.cli.dream import Dream
from wordlight.cli.images import read_image
from wordlight.errors import WordlightError
from wordlight.train.config import RunConfig
from wordlight.train.dream import Summary
from wordlight.train.presets import PRESETS, find_preset


@pytest.fixture
def picture(tmp_path):
    path = tmp_path / "red.png"
    Image.new("RGB", (40, 30), (200, 10, 10)).save(path)
    return path


def refused(capsys, *args):
    """Run the command, which has to refuse; return what it says."""
    assert main(args=[str(a) for a in args]) == 2
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err
    assert captured.err.startswith("wordlight: ")
    return captured.err


def test_the_command_says_its_version(capsys):
    assert main(args=["--version"]) == 0
    assert capsys.readouterr().out == f"wordlight {importlib.metadata.version('wordlight')}\n"


def test_models_lists_families_and_what_is_on_this_disk(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    assert main(args=["models", "--family", "siglip"]) == 0
    listed = capsys.readouterr().out
    assert "google/siglip2-base-patch16-224" in listed
    assert "375.2 M" in listed
    assert "openai/" not in listed
    assert main(args=["models", "--local"]) == 0
    here = capsys.readouterr().out
    assert {"demo", "judge-vit"} <= set(here.split())


@pytest.mark.parametrize("command", ["dream", "score", "evaluate", "models"])
def test_help_describes_every_option(capsys, command):
    with pytest.raises(SystemExit) as stopped:
        main(args=[command, "--help"])
    assert stopped.value.code == 0
    text = " ".join(capsys.readouterr().out.replace("│", " ").split())
    wanted = {
        "dream": ["-o DIR", "by default runs/", "--preset {fast,default,fine}", PRESETS[0].description,
                  "--seed INT", "--steps INT", "--negatives", "--overwrite"],
        "score": ["IMAGE", "--text", "--model", "cosine"],
        "evaluate": ["RUN", "--json FILE", "both judges"],
        "models": ["--local", "--family", "Hugging Face Hub"],
    }[command]  # fmt: skip
    missing = [words for words in wanted if words.lower() not in text.lower()]
    assert not missing, text


def test_help_loads_nothing_heavy():
    code = """
import sys
from wordlight.cli import main
try:
    main(args=["--help"])
except SystemExit:
    pass
loaded = {"optax", "orbax", "PIL", "av", "skimage"} & set(sys.modules)
assert not loaded, loaded
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "evaluate" in done.stdout


def test_a_misspelt_option_is_named(capsys):
    with pytest.raises(SystemExit) as stopped:
        main(args=["dream", "a red car", "--sed", "3"])
    assert stopped.value.code == 2
    assert "--seed" in capsys.readouterr().err


def test_a_prompt_without_quotes_is_shown_with_them(capsys):
    with pytest.raises(SystemExit) as stopped:
        main(args=["dream", "a", "red", "car", "--seed", "3"])
    assert stopped.value.code == 2
    assert 'needs quotes: "a red car"' in capsys.readouterr().err


def test_options_override_the_preset():
    options = Dream("a red car", preset="fast", steps=7, size=20, seed=3, negatives=("fog",), sides=False)
    fast = find_preset("fast").apply(RunConfig("a red car"))
    cameras = replace(fast.cameras, size=20)
    expected = replace(fast, steps=7, seed=3, negatives=("fog",), sides=False, cameras=cameras)
    assert options.config() == expected
    assert Dream("a red car").config() == RunConfig("a red car")


@pytest.mark.parametrize("preset", PRESETS, ids=lambda preset: preset.name)
def test_presets_are_described_and_possible(preset):
    from wordlight.train.checks import check_config

    assert preset.description
    check_config(preset.apply(RunConfig("a red car")))


@pytest.mark.parametrize(("status", "code"), [("finished", 0), ("interrupted", 130)])
def test_dream_says_what_it_made(capsys, monkeypatch, tmp_path, status, code):
    (tmp_path / "sheet.png").touch()
    summary = Summary(RUN, "softmax", 3, 1, status=status, steps=5, scores={"similarity": 0.25})
    summary.warnings.append("The object has dissolved.")
    asked = {}

    def dream(config, **options):
        asked.update(options, config=config)
        return tmp_path, summary

    monkeypatch.setattr("wordlight.train.dream.dream", dream)
    assert main(args=["dream", "a red car", "-o", str(tmp_path), "--overwrite", "--seed", "4"]) == code
    assert (asked["output"], asked["overwrite"], asked["config"].seed) == (tmp_path, True, 4)
    told = capsys.readouterr().out
    assert all(
        words in told for words in (f"{status} after 5 steps", "similarity 0.250", "dissolved", "sheet.png")
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["", "-o", "run"], "is empty"),
        (["a red dragon", "-o", "run"], "dragon"),
        (["a red car", "-o", ""], "folder '' given with -o has no name"),
        (["a red car", "-o", "run", "--seed", "-1"], "seed -1 (it has to be from 0 to 4294967295)"),
        (["a red car", "-o", "run", "--model", "./nowhere"], "There is no model './nowhere'"),
        (["a red car", "-o", "run", "--size", "8"], "size 8"),
        (["a red car", "-o", "run", "--size", "4096"], "size 4096"),
        (["a red car", "-o", "run", "--steps", "0"], "steps 0"),
        (["a red car", "-o", "run", "--views", "0"], "views 0"),
        (["a red car", "-o", "run", "--samples", "0"], "samples 0"),
    ],
)
def test_dream_refuses_before_it_writes(capsys, monkeypatch, tmp_path, model_folder, options, message):
    monkeypatch.chdir(tmp_path)
    options = options if "--model" in options else [*options, "--model", model_folder]
    assert message in refused(capsys, "dream", *options)
    assert not any(tmp_path.iterdir())


def test_dream_refuses_a_broken_model_and_a_folder_with_a_run(capsys, tmp_path):
    (tmp_path / "model").mkdir()
    assert "holds neither config.json" in refused(
        capsys, "dream", "a car", "-o", tmp_path / "r", "--model", tmp_path / "model"
    )
    save_tiny_run(tmp_path / "run")
    assert "--overwrite" in refused(capsys, "dream", "a car", "-o", tmp_path / "run")


def test_files_that_cannot_be_written_are_no_traceback(capsys, monkeypatch):
    def full(self):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Dream, "run", full)
    assert "No space left on device" in refused(capsys, "dream", "a red car")


def test_an_interrupt_before_training_is_130(capsys, monkeypatch):
    def interrupted(self):
        raise KeyboardInterrupt

    monkeypatch.setattr(Dream, "run", interrupted)
    assert main(args=["dream", "a red car"]) == 130
    assert "Interrupted" in capsys.readouterr().err


def test_score_prints_every_pair(capsys, monkeypatch, picture, model_folder):
    monkeypatch.setenv("COLUMNS", "200")
    args = ["score", str(picture), "--text", "a red car", "--text", "a blue chair", "--model", model_folder]
    assert main(args=args) == 0
    told = capsys.readouterr().out
    rows = [line for line in told.splitlines() if "red.png" in line]
    assert ["a red car" in rows[0], "a blue chair" in rows[1]] == [True, True]
    shares = [float(row.replace("│", " ").split()[-1].rstrip("%")) for row in rows]
    assert sum(shares) == pytest.approx(100, abs=0.2)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["missing.png", "--text", "a red car"], "missing.png cannot be read"),
        (["red.png"], "there is none"),
        (["red.png", "--text", " "], "hold an empty one"),
        (["red.png", "--text", "a red dragon"], "dragon"),
        (["text.png", "--text", "a red car"], "text.png cannot be read"),
    ],
)
def test_score_refuses(capsys, monkeypatch, picture, model_folder, args, message):
    monkeypatch.chdir(picture.parent)
    Path("text.png").write_text("no picture")
    assert message in refused(capsys, "score", *args, "--model", model_folder)


def saved(tmp_path, image, name="image.png", **options):
    image.save(tmp_path / name, **options)
    return read_image(tmp_path / name)


def test_transparent_parts_become_white(tmp_path):
    half = Image.new("RGBA", (4, 2), (255, 0, 0, 0))
    half.paste((255, 0, 0, 255), (0, 0, 2, 2))
    read = saved(tmp_path, half)
    np.testing.assert_array_equal(read[0], [[1, 0, 0], [1, 0, 0], [1, 1, 1], [1, 1, 1]])
    grey = saved(tmp_path, Image.new("LA", (2, 2), (0, 0)))
    np.testing.assert_array_equal(grey, np.ones((2, 2, 3)))


def test_palettes_and_grey_become_rgb(tmp_path):
    palette = Image.new("RGB", (3, 2), (0, 255, 0)).convert("P")
    np.testing.assert_allclose(saved(tmp_path, palette)[0, 0], [0, 1, 0])
    np.testing.assert_allclose(
        saved(tmp_path, palette, "clear.png", transparency=palette.getpixel((0, 0))), 1
    )
    np.testing.assert_allclose(
        saved(tmp_path, Image.new("L", (3, 2), 51)), np.full((2, 3, 3), 0.2), atol=1e-6
    )
    deep = Image.fromarray(np.full((2, 3), 32768, np.uint16))
    np.testing.assert_allclose(saved(tmp_path, deep), np.full((2, 3, 3), 0.5), atol=1e-4)


def test_a_photograph_is_turned_upright(tmp_path):
    wide = Image.new("RGB", (6, 4), "white")
    wide.paste("black", (0, 0, 3, 4))
    exif = Image.Exif()
    exif[0x0112] = 6  # taken with the camera turned: show it a quarter turn clockwise
    read = saved(tmp_path, wide, exif=exif)
    assert read.shape == (6, 4, 3)
    np.testing.assert_array_equal(read[:3], 0)
    np.testing.assert_array_equal(read[3:], 1)


def test_a_picture_that_was_cut_short_is_refused(tmp_path):
    rng = np.random.default_rng(0)
    Image.fromarray(rng.integers(0, 255, (64, 64, 3), np.uint8)).save(tmp_path / "cut.png")
    whole = (tmp_path / "cut.png").read_bytes()
    (tmp_path / "cut.png").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(WordlightError, match=r"cut.png cannot be read"):
        read_image(tmp_path / "cut.png")


def test_evaluate_prints_tables_and_writes_json(capsys, monkeypatch, tmp_path, model_folder):
    import wordlight as wl
    from wordlight import evaluate as module

    judge = wl.load(model_folder)
    monkeypatch.setattr(module, "SIZE", 16)
    monkeypatch.setattr(module, "SAMPLES", 8)
    monkeypatch.setattr(module, "load", lambda name: judge)
    monkeypatch.setenv("COLUMNS", "250")
    save_tiny_run(tmp_path / "run", "a red car")
    assert main(args=["evaluate", str(tmp_path / "run"), "--json", str(tmp_path / "out.json")]) == 0
    told = capsys.readouterr().out
    assert all(
        words in told for words in ("a red car", "judge-vit", "judge-resnet", "R-Precision", "both", "±")
    )
    assert set(json.loads((tmp_path / "out.json").read_text())) == {"precision", "runs"}


def test_evaluate_refuses_what_is_no_run(capsys, tmp_path):
    assert "is not a run" in refused(capsys, "evaluate", tmp_path)
