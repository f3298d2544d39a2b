"""`/healthz` and `/metrics`. Metrics are in the text format of Prometheus, without names of clients or
content."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Protocol

from antiphon.bridge.losses import LOSSES, LossCounter
from antiphon.engine.snapshot import state_word
from antiphon.hub.access.admission import METRICS
from antiphon.hub.alerts.channel import AlertCounts
from antiphon.transports.http.exchange import Handler, Reply, plain
from antiphon.transports.http.request_counts import REFUSALS, RequestCounts
from antiphon.transports.http.routes import Readable

TYPE = "text/plain; version=0.0.4; charset=utf-8"
STATES = ("idle", "running", "requires_action")
OPEN = ("/healthz",)
"""Open to everybody: monitors have no token, and the hub's existence is visible anyway."""
_STARTED = time.time()


class Source(Protocol):
    """The parts of a hub that are measured."""

    version: str
    http: Any
    agents: Any
    upstreams: Any
    losses: LossCounter
    cluster: Any
    alerts: Any

    @property
    def stopping(self) -> bool: ...
    @property
    def live(self) -> Collection[Any]: ...
    @property
    def distant(self) -> Collection[Any]: ...
    @property
    def clients(self) -> int: ...


def status_routes(hub: Source) -> dict[str, Handler]:
    async def health() -> Reply:
        return plain(503, "stopping") if hub.stopping else plain(200, "ok")

    async def metrics() -> Reply:
        return Reply(200, "".join(_lines(hub)).encode(), {"Content-Type": TYPE})

    return {"/healthz": Readable(health), METRICS: Readable(metrics)}


def _lines(hub: Source) -> Iterator[str]:
    folds = [session.fold for session in hub.live]
    states = Counter(state_word(fold) for fold in folds)
    running = {name: len(hub.upstreams.of(name)) for name in hub.agents}
    yield from _metric("hub_info", "The version of the hub.", {"version": {hub.version: 1}})
    yield from _metric("sessions", "Open sessions, by state.", {"state": {s: states[s] for s in STATES}})
    yield from _metric("questions", "Open questions.", sum(len(f.questions.open) for f in folds))
    yield from _metric("prompts_queued", "Queued prompts.", sum(len(f.prompts.queued) for f in folds))
    yield from _metric("agents", "Running agents, by name.", {"agent": running})
    yield from _metric("clients", "Connected clients.", hub.clients)
    lost = {name: hub.losses.counts[name] for name in LOSSES}
    about = "What could not be translated between v1 and v2, by name (docs/translation.md)."
    yield from _metric("bridge_losses_total", about, {"loss": lost}, kind="counter")
    yield from _alerts(hub.alerts.counts)
    if hub.http is not None:
        yield from _metric("http_connections", "ACP connections over HTTP streams.", hub.http.connections)
        yield from _metric("http_streams", "Open HTTP streams.", hub.http.streams)
        yield from _answered(hub.http.counts)
        ended = "Sockets that were closed because of an exception or a failed TLS handshake."
        yield from _metric("socket_failures_total", ended, hub.http.faults.total, kind="counter")
    if hub.cluster is not None:
        yield from _cluster(hub)
    yield from _process()


def _alerts(counts: AlertCounts) -> Iterator[str]:
    if not counts.delivered:
        return  # no channel is in use
    told = {"channel": counts.delivered}
    yield from _metric("alerts_delivered_total", "Alerts that a receiver took.", told, kind="counter")
    told = {"channel": counts.failed}
    yield from _metric("alerts_failed_total", "Alerts that no attempt delivered.", told, kind="counter")
    told = {"channel": counts.dropped}
    about = "Alerts that were dropped because too many waited for a receiver."
    yield from _metric("alerts_dropped_total", about, told, kind="counter")


def _cluster(hub: Source) -> Iterator[str]:
    yield from _metric("cluster_hubs", "Hubs that share the store.", len(hub.cluster.peers))
    yield from _metric("cluster_sessions_owned", "Open sessions that this hub works on.", len(hub.live))
    about = "Open sessions that another hub works on."
    yield from _metric("cluster_sessions_followed", about, len(hub.distant))
    about = "Sessions that this hub took over from others."
    yield from _metric("cluster_takeovers_total", about, hub.cluster.takeovers, kind="counter")
    about = "Operations that were sent to the owners of sessions, by result."
    sent = {"result": hub.cluster.forwarded}
    yield from _metric("cluster_operations_forwarded_total", about, sent, kind="counter")


def _answered(counts: RequestCounts) -> Iterator[str]:
    yield from _head("http_requests_total", "Requests, by method and class of status.", "counter")
    for (method, status), count in sorted(counts.requests.items()):
        yield f'antiphon_http_requests_total{{method="{method}",status="{status}"}} {count}\n'
    refused = {str(status): counts.refused[status] for status in sorted(REFUSALS)}
    about = "Refused requests: not admitted, too large, or too slow."
    yield from _metric("http_refused_total", about, {"status": refused}, kind="counter")


def _process() -> Iterator[str]:
    yield from _metric(
        "process_start_time_seconds", "Start of the process, in Unix time.", _STARTED, ours=False
    )
    yield from _metric(
        "process_cpu_seconds_total",
        "CPU time of the process.",
        time.process_time(),
        ours=False,
        kind="counter",
    )
    try:
        with open("/proc/self/statm") as file:
            pages = int(file.read().split()[1])
    except OSError:
        return  # not on this platform
    size = pages * os.sysconf("SC_PAGE_SIZE")
    yield from _metric("process_resident_memory_bytes", "Resident memory of the process.", size, ours=False)


def _head(name: str, about: str, kind: str, *, ours: bool = True) -> Iterator[str]:
    name = f"antiphon_{name}" if ours else name
    yield f"# HELP {name} {about}\n# TYPE {name} {kind}\n"


def _metric(
    name: str,
    about: str,
    value: float | Mapping[str, Mapping[str, float]],
    *,
    ours: bool = True,
    kind: str = "gauge",
) -> Iterator[str]:
    """Write one number, or one per value of a label."""
    yield from _head(name, about, kind, ours=ours)
    name = f"antiphon_{name}" if ours else name
    if not isinstance(value, Mapping):
        yield f"{name} {value}\n"
        return
    for label, numbers in value.items():
        for of, number in numbers.items():
            escaped = of.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
            yield f'{name}{{{label}="{escaped}"}} {number}\n'
