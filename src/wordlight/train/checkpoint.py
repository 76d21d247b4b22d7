"""Saving and restoring a run's state with Orbax, whatever devices it was on."""

import errno
import logging
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

import jax
from jax.sharding import SingleDeviceSharding

from wordlight.errors import WordlightError
from wordlight.radiance.pyramid import PyramidField
from wordlight.train.config import RunConfig
from wordlight.train.run_file import read_config
from wordlight.train.run_folder import CHECKPOINTS
from wordlight.train.sharding import gather
from wordlight.train.state import RunState, init_state

KEPT = 2
# Orbax takes these in a path for a pattern when it puts the parts of a saved state into one database.
PATTERN = frozenset("[]*?")


class Checkpoints:
    """The saved states of one run, the latest two of them; a context manager."""

    def __init__(self, folder: Path) -> None:
        import orbax.checkpoint as ocp

        path = folder.resolve() / CHECKPOINTS
        options = ocp.CheckpointManagerOptions(max_to_keep=KEPT, enable_async_checkpointing=False)
        files = ocp.PyTreeCheckpointHandler(use_ocdbt=PATTERN.isdisjoint(str(path)))
        self._manager = ocp.CheckpointManager(path, item_handlers=files, options=options)

    def __enter__(self) -> "Checkpoints":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._manager.close()

    def latest(self) -> int | None:
        """Return the step of the latest saved state, or None."""
        return self._manager.latest_step()

    def save(self, state: RunState) -> None:
        """Save the state under its step, unless it is there already; whole or not at all.

        Raises:
            WordlightError: it cannot be written, on a full disk for example.
        """
        import orbax.checkpoint as ocp

        step, folder = int(state.step), self._manager.directory
        if step in self._manager.all_steps():
            return
        saved = _as_dict(gather(state))
        try:
            _check_space(Path(folder), saved)
            with _silent():
                self._manager.save(step, args=ocp.args.PyTreeSave(saved))
        # Orbax raises many classes, for a full disk a ValueError.
        except Exception as error:
            _remove_partial(Path(folder))
            raise WordlightError(
                f"The checkpoint of step {step} in {folder} cannot be written ({_reason(error)}). A full "
                "disk, or a folder that is not yours, is the usual cause. Free some space, or name another "
                "folder; what was written before is kept."
            ) from error

    def restore(self, config: RunConfig) -> RunState:
        """Return the latest state, on one device.

        Raises:
            WordlightError: there is none, or it does not fit the configuration.
        """
        import orbax.checkpoint as ocp

        step, folder = self.latest(), self._manager.directory
        if step is None:
            raise WordlightError(
                f"There is no checkpoint in {folder}. The run ended before its first one, or the folder was "
                "emptied. Make the run again."
            )
        shapes = _as_dict(_shapes(config))
        places = ocp.checkpoint_utils.construct_restore_args(shapes)
        try:
            saved = self._manager.restore(step, args=ocp.args.PyTreeRestore(shapes, restore_args=places))
        # Orbax raises many classes for files that are missing, cut short or of other shapes.
        except Exception as error:
            raise WordlightError(
                f"The checkpoint of step {step} in {folder} cannot be restored ({_reason(error)}). Its files "
                "are damaged, or run.json was changed after it was written. Restore the folder from a copy, "
                "or make the run again."
            ) from error
        return RunState(**saved)


def load_run(folder: Path) -> tuple[RunConfig, PyramidField]:
    """Return the configuration and the latest field of the run in a folder; raises as `load_state` does."""
    config, state = load_state(folder)
    return config, state.field


def load_state(folder: Path) -> tuple[RunConfig, RunState]:
    """Return the configuration and the latest state of the run in a folder.

    Raises:
        WordlightError: the folder holds no run or no checkpoint, or they cannot be read.
    """
    config = read_config(folder)
    if not (folder / CHECKPOINTS).is_dir():
        raise WordlightError(
            f"The run in {folder} has no {CHECKPOINTS} folder. It ended before its first checkpoint, or the "
            "folder was moved. Make the run again."
        )
    with Checkpoints(folder) as checkpoints:
        return config, checkpoints.restore(config)


def _reason(error: Exception) -> str:
    """Return what an error of Orbax says, without the description of the file that it goes on with."""
    if isinstance(error, OSError):
        return error.strerror or str(error)
    if "No space left" in str(error):
        return "No space left on device"
    first = (str(error).strip() or type(error).__name__).splitlines()[0]
    return first.split(" [tensorstore_spec", 1)[0]


def _check_space(folder: Path, tree: Any) -> None:
    """Raise an OSError where the disk is too full; Orbax prints pages of tracebacks when it comes upon it."""
    needed = sum(leaf.nbytes for leaf in jax.tree.leaves(tree))
    if shutil.disk_usage(folder).free < needed:
        raise OSError(errno.ENOSPC, f"No space left on device for its {needed / 1e6:.1f} MB")


def _remove_partial(folder: Path) -> None:
    """Remove what a save that failed has left, so that there is room to say so in `run.json`."""
    for path in folder.glob("*.orbax-checkpoint-tmp*"):
        shutil.rmtree(path, ignore_errors=True)


@contextmanager
def _silent() -> Iterator[None]:
    """Keep Orbax from logging errors that it raises as well, and from warning that a state in separate files
    was not put into one database."""
    logger = logging.getLogger("absl")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)


def _as_dict(state: Any) -> dict[str, Any]:
    return state._asdict()


def _shapes(config: RunConfig) -> Any:
    place = SingleDeviceSharding(jax.local_devices()[0])
    shapes = jax.eval_shape(lambda: init_state(jax.random.key(0), config))
    return jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=place), shapes)
