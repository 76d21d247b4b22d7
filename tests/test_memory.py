"""What was freed goes back to the system."""

import platform
import re
from pathlib import Path

import pytest

from wordlight import memory


def resident() -> int:
    """Kilobytes that this process holds."""
    [found] = re.findall(r"VmRSS:\s+(\d+)", Path("/proc/self/status").read_text())
    return int(found)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc can be asked")
def test_what_was_freed_is_held_no_longer():
    small = [bytes(5000) for _ in range(10_000)]  # beyond what Python itself keeps
    last = bytes(5000)  # above them all, so that glibc cannot give them back of itself
    del small
    before = resident()
    memory.give_back_memory()
    assert before - resident() > 20_000
    assert len(last) == 5000


def test_another_c_library_is_left_alone(monkeypatch):
    monkeypatch.setattr(platform, "libc_ver", lambda: ("", ""))
    monkeypatch.setattr(memory.ctypes, "CDLL", None)
    memory.give_back_memory()
