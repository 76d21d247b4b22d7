"""Routes that take turns, each in a process of its own."""

import contextlib
import json
import os
import statistics
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, NamedTuple

ROOT = Path(__file__).parents[1]
PARITY = ROOT / ".venv-parity" / "bin" / "python"
# glibc keeps what a step frees for the next one; see docs/conventions.md.
SETTINGS = {"arena_max": 1, "mmap_threshold": 2**32, "trim_threshold": 2**32, "tcache_count": 0}
KEPT_MEMORY = {"GLIBC_TUNABLES": ":".join(f"glibc.malloc.{k}={v}" for k, v in SETTINGS.items())}
FLAX = ROOT / ".venv-bench" / "bin" / "python"


@dataclass(frozen=True)
class Route:
    """One way to do the work of a row.

    Attributes:
        name: how the table calls it.
        module: of `bench.routes`; it calls `serve`.
        task: what that prepares; JSON.
        python: interpreter of the environment.
        environment: variables set for the process.
    """

    name: str
    module: str
    task: dict[str, Any]
    python: Path = PARITY
    environment: dict[str, str] = field(default_factory=dict)


class RouteError(Exception):
    """A route could not be prepared or run; the message says why."""


class Worker:
    """A route's process."""

    def __init__(self, route: Route, stack: contextlib.ExitStack):
        command = [str(route.python), "-m", f"bench.routes.{route.module}"]
        if not route.python.is_file():
            raise RouteError(f"there is no {route.python.relative_to(ROOT)}; make bench sets it up")
        pipe = subprocess.PIPE
        environment = os.environ | route.environment
        process = subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, text=True, env=environment)
        self._process = stack.enter_context(process)
        assert process.stdin is not None
        assert process.stdout is not None
        self._requests: IO[str] = stack.enter_context(process.stdin)
        self._answers: IO[str] = process.stdout
        self.prepared = self.ask({"task": route.task})

    def run(self) -> float:
        """Return the seconds of one run."""
        return self.ask({"run": True})["seconds"]

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """Send a request and return the answer."""
        try:
            print(json.dumps(request), file=self._requests, flush=True)
        except BrokenPipeError:
            raise RouteError(f"the process ended ({self._process.poll()})") from None
        line = self._answers.readline()
        answer = json.loads(line) if line else {"error": f"the process ended ({self._process.poll()})"}
        if "error" in answer:
            raise RouteError(str(answer["error"]).splitlines()[0])
        return answer


@dataclass(frozen=True)
class Turns:
    """What routes that took turns measured.

    Attributes:
        seconds: of every run, by route.
        values: what the routes computed, by route.
        failed: why a route did not run, by route.
    """

    seconds: dict[str, list[float]]
    values: dict[str, float | None]
    failed: dict[str, str]

    def median(self, name: str) -> float:
        """Return a route's median seconds."""
        return statistics.median(self.seconds[name])


def take_turns(routes: Sequence[Route], rounds: int) -> Turns:
    """Run every route `rounds` times, one after the other, A B C A B C, after warming each up.

    Whatever else the machine does falls on all of them.
    """
    with contextlib.ExitStack() as stack:
        failed: dict[str, str] = {}
        workers = dict(_started(routes, stack, failed))
        seconds: dict[str, list[float]] = {name: [] for name in workers}
        for _ in range(rounds):
            for name, worker in list(workers.items()):
                try:
                    seconds[name].append(worker.run())
                except RouteError as error:
                    failed[name] = str(error)
                    del workers[name], seconds[name]
        values = {name: worker.prepared["value"] for name, worker in workers.items()}
    return Turns(seconds, values, failed)


def _started(
    routes: Sequence[Route], stack: contextlib.ExitStack, failed: dict[str, str]
) -> Iterator[tuple[str, Worker]]:
    for route in routes:
        try:
            yield route.name, Worker(route, stack)
        except RouteError as error:
            failed[route.name] = str(error)


class Alone(NamedTuple):
    """What a route measured with nothing beside it.

    Attributes:
        seconds: median of its runs.
        peak: most bytes its process held.
        first: seconds from nothing to its first result.
        growth: by how much that raised the most bytes held.
        value: its result.
    """

    seconds: float
    peak: int
    first: float
    growth: int
    value: float


def run_alone(route: Route, rounds: int) -> Alone:
    """Run a route in a process of its own, which ends with it."""
    with contextlib.ExitStack() as stack:
        worker = Worker(route, stack)
        answers = [worker.ask({"run": True}) for _ in range(rounds)]
    seconds = statistics.median(answer["seconds"] for answer in answers)
    prepared = worker.prepared
    return Alone(seconds, answers[-1]["peak"], prepared["first"], prepared["growth"], prepared["value"])
