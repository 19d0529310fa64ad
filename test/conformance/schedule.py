# SPDX-License-Identifier: Apache-2.0
"""The execution of many runs, some of them at the same time."""

import contextlib
import time
from collections.abc import Callable, Generator, Sequence

from test.conformance.jobs import Job, RunResult
from test.conformance.running import Run
from test.conformance.screen import Screen

_POLL_SECONDS = 0.5


def run_all(
    jobs: Sequence[Job],
    run_of: Callable[[Job], Run],
    at_once: int,
    screen: Screen,
) -> Generator[tuple[Job, RunResult], None, None]:
    """Run jobs, and yield each result as soon as its run has ended.

    When the generator ends or is closed, it ends all runs under way.

    :param at_once: how many may run at the same time
    """
    waiting = [run_of(job) for job in jobs]
    running: list[Run] = []
    with contextlib.ExitStack() as unfinished:
        while waiting or running:
            while waiting and len(running) < at_once:
                run = waiting.pop(0)
                unfinished.callback(run.end)
                run.start()
                screen.started(run.job.name)
                running.append(run)
            time.sleep(_POLL_SECONDS)
            for run in list(running):
                screen.progressed(run.job.name, *run.progress())
                if run.is_over():
                    running.remove(run)
                    result = run.finish()
                    screen.finished(run.job.name, result)
                    yield run.job, result
