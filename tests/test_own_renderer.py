"""A JAX programmer's own renderer with our loss, under every transformation (`programs/own_renderer.py`)."""

import os
import subprocess
import sys
from pathlib import Path

PROGRAM = Path(__file__).parent / "programs" / "own_renderer.py"


def test_every_check_of_the_program_holds():
    environment = os.environ | {"XLA_FLAGS": ""}  # the program makes its own two devices
    done = subprocess.run(
        [sys.executable, str(PROGRAM), "demo"], env=environment, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "FAIL" not in done.stdout
    assert done.stdout.count("ok ") == 13
