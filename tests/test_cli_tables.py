"""What the command's tables keep whole, which figures they leave out, and pictures that are refused."""

import warnings

import numpy as np
import pytest
from PIL import Image
from rich.console import Console
from rich.table import Table

from tiny_runs import save_tiny_model
from wordlight.cli import main
from wordlight.cli.images import read_image
from wordlight.cli.tables import print_whole
from wordlight.clip.known_models import known_models
from wordlight.errors import WordlightError


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return save_tiny_model(tmp_path_factory.mktemp("tables") / "model")


def test_models_prints_every_id_whole_through_a_pipe(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    assert main(args=["models"]) == 0
    told = capsys.readouterr().out
    assert [model.name for model in known_models() if f" {model.name} " not in told] == []


@pytest.mark.parametrize("columns", [20, 60, 80, 200])
def test_the_first_column_is_whole_on_a_terminal(capsys, monkeypatch, columns):
    monkeypatch.setattr(Console, "is_terminal", True)
    monkeypatch.setenv("COLUMNS", str(columns))
    table = Table("model", "family", "parameters")
    table.add_row("some/very-long-id with a space", "a long family", "1.0 M")
    print_whole(table)
    told = capsys.readouterr().out
    assert "some/very-long-id with a space" in told
    assert "…" not in told
    assert len(told.splitlines()[0]) <= max(columns, 50)


def test_an_unknown_family_is_refused_with_those_known(capsys):
    assert main(args=["models", "--family", "xyz"]) == 2
    told = capsys.readouterr().err
    assert "No family is called 'xyz'" in told
    assert "OpenAI, LAION" in told
    assert "Give a part of one" in told


def test_score_prints_paths_whole_and_no_share_of_one_text(capsys, monkeypatch, tmp_path, model):
    monkeypatch.setenv("COLUMNS", "60")
    path = tmp_path / ("long" * 30 + "[1].png")
    Image.new("RGB", (8, 8)).save(path)
    args = ["score", str(path), "--model", str(tmp_path / "model"), "--text", "a red car"]
    monkeypatch.setattr("wordlight.clip.load.load", lambda name: model)
    assert main(args=args) == 0
    told = capsys.readouterr().out
    assert str(path) in told
    assert "similarity" in told
    assert "probability" not in told
    assert "%" not in told
    assert main(args=[*args, "--text", "a car"]) == 0
    assert "probability" in capsys.readouterr().out


def test_unknown_words_are_answered_with_the_whole_vocabulary(model):
    with pytest.raises(WordlightError, match="Unknown word 'dragon'") as refused:
        model.tokenize("a red dragon")
    assert "more (see" not in str(refused.value)
    assert all(f" {word}, " in str(refused.value) for word in ("train", "tree", "white"))


def test_a_prompt_that_is_too_long_is_answered_for_commands_and_for_python(model):
    with pytest.raises(WordlightError, match=r"Shorten the prompt, or split it .*; in Python, truncate=True"):
        model.tokenize("car " * 40)


def test_large_pictures_are_read_without_a_warning_and_too_large_ones_are_called_so(tmp_path, monkeypatch):
    Image.new("RGB", (40, 30)).save(tmp_path / "large.png")
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 1000)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_image(tmp_path / "large.png").shape == (30, 40, 3)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 500)
    with pytest.raises(
        WordlightError, match=r"is too large \(Image size \(1200 pixels\).*Make the picture"
    ) as e:
        read_image(tmp_path / "large.png")
    assert "misspelt" not in str(e.value)


@pytest.mark.parametrize(
    ("values", "told"),
    [
        (np.float32([[0, 255]]), "from 0 to 255, and white is 1 "),
        (np.float32([[-0.5, 1]]), "from -0.5 to 1, and white is 1 "),
        (np.float32([[np.nan, 1]]), "nan"),
        (np.int32([[0, 70000]]), "from 0 to 70000, and white is 65535 "),
    ],
)
def test_numbers_beyond_white_are_refused(tmp_path, values, told):
    Image.fromarray(values).save(tmp_path / "deep.tiff")
    with pytest.raises(WordlightError, match=r"deep.tiff holds numbers .* Scale them") as refused:
        read_image(tmp_path / "deep.tiff")
    assert told in str(refused.value)


def test_floats_up_to_white_are_read_as_they_are(tmp_path):
    Image.fromarray(np.float32([[0, 0.25, 1]])).save(tmp_path / "deep.tiff")
    np.testing.assert_array_equal(read_image(tmp_path / "deep.tiff")[0, :, 0], [0, 0.25, 1])
