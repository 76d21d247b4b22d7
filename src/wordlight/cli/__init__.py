"""The `wordlight` command. What a subcommand needs is imported when it runs, so that `--help` answers at
once."""

import sys
from collections.abc import Sequence
from importlib.metadata import version
from itertools import takewhile
from typing import Annotated

import tyro

from wordlight.cli.compiled import keep_compiled
from wordlight.cli.dream import Dream
from wordlight.cli.evaluate import Evaluate
from wordlight.cli.models import Models
from wordlight.cli.score import Score
from wordlight.errors import WordlightError

Command = (
    Annotated[Dream, tyro.conf.subcommand("dream", prefix_name=False)]
    | Annotated[Score, tyro.conf.subcommand("score", prefix_name=False)]
    | Annotated[Evaluate, tyro.conf.subcommand("evaluate", prefix_name=False)]
    | Annotated[Models, tyro.conf.subcommand("models", prefix_name=False)]
)

DESCRIPTION = "From words to 3D objects. --version says which Wordlight this is."
REFUSED, INTERRUPTED = 2, 130


def main(*, args: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code.

    0: done. 2: refused, with the reason on stderr. 130: ended by Ctrl-C or SIGTERM; a run of `dream` has its
    results written even so, unless a second one came.
    """
    args = sys.argv[1:] if args is None else args
    if list(args) == ["--version"]:
        print(f"wordlight {version('wordlight')}")
        return 0
    try:
        command = tyro.cli(Command, args=args, prog="wordlight", description=DESCRIPTION)
    except SystemExit as stopped:
        if stopped.code:
            _ask_for_quotes(args)
        raise
    keep_compiled()
    try:
        return command.run()
    except WordlightError as error:
        print(f"wordlight: {error}", file=sys.stderr)
        return REFUSED
    except OSError as error:
        print(
            f"wordlight: A file could not be read or written ({error}). A full disk, or a folder that is not "
            "yours, is the usual cause. Free some space, or name another folder.",
            file=sys.stderr,
        )
        return REFUSED
    except KeyboardInterrupt:
        print("wordlight: Interrupted.", file=sys.stderr)
        return INTERRUPTED


def _ask_for_quotes(args: Sequence[str]) -> None:
    """Say how several words are one prompt, where `dream` was given them without quotes."""
    words = list(takewhile(lambda word: not word.startswith("-"), args[1:]))
    if "dream" in args[:1] and len(words) > 1:
        print(f'wordlight: A prompt of several words needs quotes: "{" ".join(words)}"', file=sys.stderr)
