"""`wordlight evaluate` over many folders: which are judged, marked or left out, and where the file goes."""

import json

import pytest

from tiny_runs import save_tiny_model, save_tiny_run
from wordlight import evaluate as module
from wordlight.cli import main
from wordlight.errors import WordlightError
from wordlight.evaluate import evaluate
from wordlight.train import run_file
from wordlight.train.run_file import read_run


@pytest.fixture(scope="module")
def judge(tmp_path_factory):
    return save_tiny_model(tmp_path_factory.mktemp("judge") / "model")


@pytest.fixture(autouse=True)
def small(monkeypatch, judge):
    monkeypatch.setattr(module, "SIZE", 16)
    monkeypatch.setattr(module, "SAMPLES", 8)
    monkeypatch.setattr(module, "load", lambda name: judge)


def save_run(folder, prompt="a red car", status="finished"):
    save_tiny_run(folder, prompt)
    run_file.write_json(folder / run_file.NAME, read_run(folder) | {"status": status})
    return folder


def refused(capsys, *args):
    assert main(args=["evaluate", *map(str, args)]) == 2
    return capsys.readouterr().err


def test_unfinished_runs_are_marked_with_their_step(capsys, tmp_path):
    save_run(tmp_path / "done")
    save_run(tmp_path / "stopped", "a chair", "interrupted")
    args = [str(tmp_path / "done"), str(tmp_path / "stopped"), "--json", str(tmp_path / "new" / "out.json")]
    assert main(args=["evaluate", *args]) == 0
    told = capsys.readouterr().out
    assert "a chair (interrupted, step 0 of 8)" in told
    assert "a red car (" not in told
    assert "2 runs, 1 of them unfinished" in told
    runs = json.loads((tmp_path / "new" / "out.json").read_text())["runs"]
    assert [(run["status"], run["step"]) for run in runs] == [("finished", 0), ("interrupted", 0)]


def test_a_run_that_is_given_twice_counts_once(judge, tmp_path, monkeypatch):
    folder = save_run(tmp_path / "run", "a red car.")
    (tmp_path / "link").symlink_to(folder)
    monkeypatch.chdir(tmp_path)
    same = [folder, tmp_path / "link", tmp_path / "run" / ".." / "run"]
    results = evaluate(same, judges={"one": judge})
    assert [(result.run, result.caption) for result in results] == [(str(folder), "a red car")]


def test_folders_that_cannot_be_judged_are_left_out_and_named(capsys, tmp_path):
    save_run(tmp_path / "good")
    save_run(tmp_path / "strange", "something red")
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").touch()
    bare = save_run(tmp_path / "bare")
    (bare / "checkpoints").rename(tmp_path / "moved")
    names = ("empty", "file", "bare", "strange", "good")
    assert main(args=["evaluate", *(str(tmp_path / name) for name in names)]) == 0
    told = capsys.readouterr()
    reasons = ("is not a run", "cannot be read as a run", "has no checkpoints", "cannot be judged")
    for name, reason in zip(names, reasons, strict=False):
        line = next(line for line in told.err.splitlines() if f"Left out {tmp_path / name}:" in line)
        assert reason in line
    assert "1 runs" in told.out


def test_nothing_is_judged_where_no_folder_can_be(capsys, tmp_path):
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    told = refused(capsys, tmp_path / "one", tmp_path / "two")
    assert told.count("Left out") == 2
    assert "None of the 2 folders holds a run that can be judged" in told
    with pytest.raises(WordlightError, match="is not a run"):
        evaluate([tmp_path / "one", tmp_path / "two"])


def test_the_file_is_checked_before_anything_is_judged(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(module, "evaluate", lambda *_, **__: pytest.fail("judged"))
    (tmp_path / "file").touch()
    assert "it is a folder" in refused(capsys, tmp_path, "--json", tmp_path)
    assert "is a file" in refused(capsys, tmp_path, "--json", tmp_path / "file" / "out.json")
    monkeypatch.setattr("os.access", lambda path, mode: False)
    assert "read-only" in refused(capsys, tmp_path, "--json", tmp_path / "out.json")


def test_tables_are_printed_even_where_the_file_fails(capsys, monkeypatch, tmp_path):
    def full(path, value):
        raise OSError(28, "No space left on device")

    save_run(tmp_path / "run")
    monkeypatch.setattr(run_file, "write_json", full)
    assert main(args=["evaluate", str(tmp_path / "run"), "--json", str(tmp_path / "out.json")]) == 2
    told = capsys.readouterr()
    assert "R-Precision" in told.out
    assert "No space left" in told.err
