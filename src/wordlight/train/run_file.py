"""`run.json` and `metrics.jsonl`: a run's configuration and figures as JSON, and back."""

import dataclasses
import json
import math
import types
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from wordlight.errors import WordlightError
from wordlight.export.files import replacing
from wordlight.train.config import RunConfig

NAME = "run.json"


def write_json(path: Path, value: object) -> None:
    """Write a value as JSON; the file is whole or not there."""
    with replacing(path) as partial:
        text = json.dumps(plain(value), indent=2, ensure_ascii=False, allow_nan=False)
        partial.write_text(text + "\n", encoding="utf-8")


def json_line(value: object) -> str:
    """Return a value as one line of JSON."""
    return json.dumps(plain(value), ensure_ascii=False, allow_nan=False) + "\n"


def plain(value: Any) -> Any:
    """Return a value of JSON's types: dataclasses and tuples opened, numbers that are not finite as null."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {str(name): plain(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, str | int) else str(value)


def read_run(folder: Path) -> dict[str, Any]:
    """Return what a folder's `run.json` holds.

    Raises:
        WordlightError: there is none, or no run wrote it.
    """
    path = folder / NAME
    try:
        run = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise WordlightError(
            f"{folder} is not a run: it holds no {NAME}. The path is misspelt, or names the folder above the "
            "runs. Give a folder that `wordlight dream` wrote, such as runs/a-yellow-bulldozer-1a2b3c4d."
        ) from error
    except (OSError, ValueError) as error:
        raise _broken(path, str(error)) from error
    if not isinstance(run, dict) or "wordlight" not in run:
        raise _broken(path, "it does not name the version of wordlight that wrote it")
    return run


def read_config(folder: Path) -> RunConfig:
    """Return the configuration of the run in a folder.

    Raises:
        WordlightError: the folder holds no run, or its configuration cannot be understood.
    """
    try:
        return decode(RunConfig, read_run(folder)["config"])
    except (KeyError, TypeError, AttributeError, ValueError, OverflowError) as error:
        if isinstance(error, WordlightError):
            raise
        raise _broken(folder / NAME, f"{type(error).__name__}: {error}") from error


def decode(kind: Any, value: Any) -> Any:
    """Return a value read from JSON as the type that an annotation names."""
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        hints = get_type_hints(kind)
        return kind(**{name: decode(hints[name], entry) for name, entry in value.items()})
    if get_origin(kind) is tuple:
        return _decode_tuple(get_args(kind), value)
    if get_origin(kind) in (Union, types.UnionType):
        inner = next(argument for argument in get_args(kind) if argument is not type(None))
        return None if value is None else decode(inner, value)
    if kind in (int, float):
        return kind(value)
    is_literal = get_origin(kind) is Literal
    if not (value in get_args(kind) if is_literal else isinstance(value, kind)):
        raise ValueError(f"{value!r} is not {kind if is_literal else kind.__name__}")
    return value


def _decode_tuple(kinds: tuple[Any, ...], values: Any) -> tuple[Any, ...]:
    if not isinstance(values, list):  # a word would become its letters
        raise ValueError(f"{values!r} is not a list")
    if kinds[-1] is Ellipsis:
        return tuple(decode(kinds[0], value) for value in values)
    return tuple(decode(kind, value) for kind, value in zip(kinds, values, strict=True))


def _broken(path: Path, reason: str) -> WordlightError:
    return WordlightError(
        f"{path} cannot be read as a run ({reason}). It was edited by hand, cut short, or written by another "
        "program or a newer version. Make the run again, or use the version that wrote it."
    )
