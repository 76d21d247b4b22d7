"""Memory that was freed, given back to the system."""

import ctypes
import platform


def give_back_memory() -> None:
    """Give the system what this process has freed, before much more is taken.

    Parsing a vocabulary and compiling a tower leave tens of megabytes that the C library would keep. Only
    glibc can be asked; with another C library nothing happens.
    """
    if platform.libc_ver()[0] == "glibc":
        ctypes.CDLL(None).malloc_trim(0)
