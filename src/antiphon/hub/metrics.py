"""How a hub is doing, in the text format of Prometheus. Nothing of it says who is there, or what is said."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from antiphon.engine.snapshot import state_word
from antiphon.transports.http_tally import REFUSALS, Tally

if TYPE_CHECKING:
    from antiphon.hub.hub import Hub

TYPE = "text/plain; version=0.0.4; charset=utf-8"
STATES = ("idle", "running", "requires_action")
_BEGAN = time.time()


def metrics(hub: Hub) -> bytes:
    return "".join(_lines(hub)).encode()


def _lines(hub: Hub) -> Iterator[str]:
    folds = [session.fold for session in hub.live]
    states = Counter(state_word(fold) for fold in folds)
    running = {name: len(hub.upstreams.of(name)) for name in hub.agents}
    yield from _told("hub_info", "Which hub this is.", {"version": {hub.version: 1}})
    yield from _told(
        "sessions", "Sessions that are open, by what they do.", {"state": {s: states[s] for s in STATES}}
    )
    yield from _told(
        "questions", "Questions that wait for an answer.", sum(len(f.questions.open) for f in folds)
    )
    yield from _told("prompts_queued", "Prompts that wait.", sum(len(f.prompts.queued) for f in folds))
    yield from _told("agents", "Agents that run, by name.", {"agent": running})
    yield from _told("clients", "Clients that are connected.", hub.clients)
    if hub.http is not None:
        yield from _told("http_connections", "Those of them that are over HTTP.", hub.http.connections)
        yield from _told("http_streams", "Streams that they read from.", hub.http.streams)
        yield from _answered(hub.http.tally)
        ended = "Sockets that an exception ended."
        yield from _told("socket_failures_total", ended, hub.http.faults.total, kind="counter")
    yield from _process()


def _answered(tally: Tally) -> Iterator[str]:
    yield from _head("http_requests_total", "Requests, by method and by how they were answered.", "counter")
    for (method, status), count in sorted(tally.requests.items()):
        yield f'antiphon_http_requests_total{{method="{method}",status="{status}"}} {count}\n'
    refused = {str(status): tally.refused[status] for status in sorted(REFUSALS)}
    about = "Requests of those who are not let in, or take too much, or too long."
    yield from _told("http_refused_total", about, {"status": refused}, kind="counter")


def _process() -> Iterator[str]:
    about = "Of the process"
    yield from _told("process_start_time_seconds", f"{about}: its start.", _BEGAN, ours=False)
    yield from _told(
        "process_cpu_seconds_total", f"{about}: its work.", time.process_time(), ours=False, kind="counter"
    )
    try:
        with open("/proc/self/statm") as file:
            pages = int(file.read().split()[1])
    except OSError:
        return  # not on this platform
    size = pages * os.sysconf("SC_PAGE_SIZE")
    yield from _told("process_resident_memory_bytes", f"{about}: its memory.", size, ours=False)


def _head(name: str, about: str, kind: str, *, ours: bool = True) -> Iterator[str]:
    name = f"antiphon_{name}" if ours else name
    yield f"# HELP {name} {about}\n# TYPE {name} {kind}\n"


def _told(
    name: str,
    about: str,
    value: float | Mapping[str, Mapping[str, float]],
    *,
    ours: bool = True,
    kind: str = "gauge",
) -> Iterator[str]:
    """A number, or several by the values of one label."""
    yield from _head(name, about, kind, ours=ours)
    name = f"antiphon_{name}" if ours else name
    if not isinstance(value, Mapping):
        yield f"{name} {value}\n"
        return
    for label, numbers in value.items():
        for of, number in numbers.items():
            escaped = of.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
            yield f'{name}{{{label}="{escaped}"}} {number}\n'
