"""Saving and restoring a run's state with Orbax, whatever devices it was on."""

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


class Checkpoints:
    """The saved states of one run, the latest two of them; a context manager."""

    def __init__(self, folder: Path) -> None:
        import orbax.checkpoint as ocp

        options = ocp.CheckpointManagerOptions(max_to_keep=KEPT, enable_async_checkpointing=False)
        self._manager = ocp.CheckpointManager(folder.resolve() / CHECKPOINTS, options=options)

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
        """Save the state under its step, unless it is there already; whole or not at all."""
        import orbax.checkpoint as ocp

        step = int(state.step)
        if step not in self._manager.all_steps():
            self._manager.save(step, args=ocp.args.StandardSave(_as_dict(gather(state))))

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
        shapes = _shapes(config)
        try:
            saved = self._manager.restore(step, args=ocp.args.StandardRestore(_as_dict(shapes)))
        # Orbax raises many classes for files that are missing, cut short or of other shapes.
        except Exception as error:
            reason = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise WordlightError(
                f"The checkpoint of step {step} in {folder} cannot be restored ({reason}). Its files are "
                "damaged, or run.json was changed after it was written. Restore the folder from a copy, or "
                "make the run again."
            ) from error
        return RunState(**saved)


def load_run(folder: Path) -> tuple[RunConfig, PyramidField]:
    """Return the configuration and the latest field of the run in a folder.

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
        return config, checkpoints.restore(config).field


def _as_dict(state: Any) -> dict[str, Any]:
    return state._asdict()


def _shapes(config: RunConfig) -> Any:
    place = SingleDeviceSharding(jax.local_devices()[0])
    shapes = jax.eval_shape(lambda: init_state(jax.random.key(0), config))
    return jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=place), shapes)
