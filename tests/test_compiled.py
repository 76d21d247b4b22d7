"""Where compiled programs are kept, and who may say otherwise."""

import os
import subprocess
import sys

import pytest

from wordlight.cli.compiled import cache_folder

SHOW = """
import jax
from wordlight.cli.compiled import keep_compiled

keep_compiled()
print(jax.config.jax_compilation_cache_dir)
"""


def test_the_users_cache_folder_holds_them(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "wordlight" / "compiled"
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "wordlight" / "compiled"


@pytest.mark.parametrize("named", [None, "elsewhere"])
def test_a_folder_that_jax_was_told_of_stays(tmp_path, named):
    environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path)}
    environment.pop("JAX_COMPILATION_CACHE_DIR", None)
    expected = tmp_path / "wordlight" / "compiled"
    if named:
        expected = tmp_path / named
        environment["JAX_COMPILATION_CACHE_DIR"] = str(expected)
    found = subprocess.run([sys.executable, "-c", SHOW], env=environment, capture_output=True, text=True)
    assert found.stdout.strip() == str(expected), found.stderr
