"""The command begins again with huge pages once, and only where that is possible."""

import os
import subprocess
import sys

import pytest

from wordlight import huge_pages


@pytest.fixture
def started(monkeypatch):
    """What would be executed in place of this process."""
    calls = []
    monkeypatch.setattr(os, "execve", lambda *call: calls.append(call))
    monkeypatch.setattr(sys, "orig_argv", ["python3", "-m", "wordlight", "dream", "a red car"])
    return calls


def test_the_same_command_is_started_with_the_variable(started, monkeypatch):
    monkeypatch.delenv(huge_pages.VARIABLE, raising=False)
    monkeypatch.setattr(huge_pages, "offered", lambda: True)
    huge_pages.start_with_huge_pages()
    [(program, arguments, environment)] = started
    assert program == sys.executable
    assert arguments == [sys.executable, "-m", "wordlight", "dream", "a red car"]
    assert environment[huge_pages.VARIABLE] == huge_pages.VALUE
    assert environment.items() >= {k: v for k, v in os.environ.items() if k != huge_pages.VARIABLE}.items()


@pytest.mark.parametrize("value", [huge_pages.VALUE, "glibc.malloc.check=3", ""])
def test_a_variable_that_is_set_stays_as_it_is(started, monkeypatch, value):
    """Otherwise a process would begin for ever."""
    monkeypatch.setenv(huge_pages.VARIABLE, value)
    monkeypatch.setattr(huge_pages, "offered", lambda: True)
    huge_pages.start_with_huge_pages()
    assert not started


@pytest.mark.parametrize("setting", ["[always] madvise never", "always madvise [never]", None])
def test_nothing_is_started_where_it_would_change_nothing(started, monkeypatch, tmp_path, setting):
    monkeypatch.delenv(huge_pages.VARIABLE, raising=False)
    monkeypatch.setattr(huge_pages, "SYSTEM", tmp_path / "enabled")
    if setting:
        (tmp_path / "enabled").write_text(setting)
    huge_pages.start_with_huge_pages()
    assert not started


def test_the_command_still_answers(monkeypatch):
    """For real, in a process of its own."""
    environment = {k: v for k, v in os.environ.items() if k != huge_pages.VARIABLE}
    command = [sys.executable, "-m", "wordlight", "dream", "--help"]
    answer = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert answer.returncode == 0
    assert "usage: wordlight dream" in answer.stdout
