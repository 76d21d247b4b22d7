"""The worker's side of a measurement: prepare a task, then run it whenever asked and say how long it took.

Workers of other environments import this, so it needs nothing but Python.
"""

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Run = Callable[[], Any]
STATUS = Path("/proc/self/status")


def serve(prepare: Callable[[dict[str, Any]], Run]) -> None:
    """Answer requests from standard input until it ends.

    Args:
        prepare: returns what is to be timed. That returns a number, or None: numbers of the routes of a row
            are compared, so that nobody is fast by doing something else.
    """
    # What libraries print must not get between the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    run: Run | None = None
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if "task" in request:
                before, start = peak(), time.perf_counter()
                run = prepare(request["task"])
                value, first = run(), time.perf_counter() - start
                answer = {"value": value, "first": first, "growth": peak() - before}
                run()
            elif run is not None:
                answer = {"seconds": timed(run), "peak": peak()}
            else:
                answer = {"error": "no task was prepared"}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)


def peak() -> int:
    """Return the most bytes this process has held in memory so far.

    Not `ru_maxrss`, which a process takes over from the one that started it.
    """
    [line] = (line for line in STATUS.read_text().splitlines() if line.startswith("VmHWM"))
    return 1024 * int(line.split()[1])


def timed(run: Run) -> float:
    """Return how long a run took."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start
