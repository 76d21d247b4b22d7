"""The folder of a run: its name, its files, and what must not be overwritten."""

import hashlib
import json
import os
import re
import shutil
import sys
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from wordlight.errors import WordlightError
from wordlight.train import run_file
from wordlight.train.config import RunConfig

ROOT = Path("runs")
CHECKPOINTS = "checkpoints"
# The video becomes a GIF where no encoder of this machine writes MP4.
FILES = (
    "turntable.mp4",
    "turntable.gif",
    "sheet.png",
    "mesh.glb",
    "preview.png",
    "metrics.jsonl",
    run_file.NAME,
)
_LONGEST = 40


def default_folder(config: RunConfig) -> Path:
    """Return `runs/<slug>-<hash>`: the prompt made safe for any file system, and a hash of the
    configuration."""
    text = json.dumps(run_file.plain(config), sort_keys=True)
    return ROOT / f"{slug(config.prompt)}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def slug(text: str) -> str:
    """Return at most forty lower-case letters, digits and single hyphens that recall the text."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", plain)[:_LONGEST].strip("-") or "run"


def check_folder(folder: Path, *, overwrite: bool = False) -> None:
    """Refuse a folder in which a run would replace files; touches nothing.

    Raises:
        WordlightError: the path is no folder, it holds another run and `overwrite` is false, or it holds
            files of the names that a run writes and no run wrote them.
    """
    blocked = next((p for p in (folder, *folder.parents) if p.exists() and not p.is_dir()), None)
    if blocked is not None:
        raise WordlightError(
            f"The run cannot be written to {folder}: {blocked} is a file. A path that names a result instead "
            "of its folder is the usual cause. Choose another folder with -o."
        )
    taken = [name for name in (*FILES, CHECKPOINTS) if (folder / name).exists()]
    if not taken:
        return
    if not _holds_run(folder):
        raise WordlightError(
            f"{folder} already holds {', '.join(taken)}, and no readable {run_file.NAME} to show that a run "
            "wrote them. They are probably yours. Choose another folder with -o, or move them away."
        )
    if not overwrite:
        raise WordlightError(
            f"{folder} already holds a run ({', '.join(taken)}). The same prompt with the same options gets "
            "the same folder. Choose another one with -o, or pass --overwrite to replace the files of that "
            "run."
        )


def prepare_folder(folder: Path) -> None:
    """Remove the files of the run that a folder held, and nothing else; check it before."""
    for name in FILES:
        (folder / name).unlink(missing_ok=True)
    checkpoints = folder / CHECKPOINTS
    for step in checkpoints.glob("*") if checkpoints.is_dir() else ():
        if step.name.isdecimal() and step.is_dir() and not step.is_symlink():
            shutil.rmtree(step)


@contextmanager
def own_folder(folder: Path, *, overwrite: bool = False) -> Iterator[None]:
    """Make the folder ready for a run, and keep other runs out of it until the end.

    Raises:
        WordlightError: another run is writing to it, or `check_folder` refuses it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    place = os.open(folder, os.O_RDONLY) if sys.platform != "win32" else None
    try:
        if place is not None and not _locked(place):
            raise WordlightError(
                f"Another run is writing to {folder}. The same prompt with the same options gets the same "
                "folder, so the command was probably started twice. Wait for the other run, or choose "
                "another folder with -o."
            )
        check_folder(folder, overwrite=overwrite)
        prepare_folder(folder)
        yield
    finally:
        if place is not None:
            os.close(place)


def _locked(place: int) -> bool:
    """Lock an open folder; the system drops the lock with the process. False where another one holds it."""
    if sys.platform == "win32":
        return True
    import fcntl

    try:
        fcntl.flock(place, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return True
    return True


def _holds_run(folder: Path) -> bool:
    try:
        run_file.read_run(folder)
    except WordlightError:
        return False
    return True
