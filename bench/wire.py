"""The wire against the official SDKs: `make bench-wire`, or `python -m bench.wire [--quick]`.

Every stream is one turn of `agent_message_chunk` updates of about 40 bytes of text over stdio between two
processes of the same make, each update decoded, validated and handed to a handler; the time runs from
sending the prompt until its turn has ended and all have been handled.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.peers import install

from bench.harness import Measurement, Ratio, Unavailable, run_group

ROOT = Path(__file__).parents[1]
PEERS = ROOT / "tests" / "peers"
OURS = [sys.executable, str(ROOT / "examples" / "wire_agent.py")]
TIMEOUT = 400.0

SMALL = {
    "sessionUpdate": "agent_message_chunk",
    "content": {"type": "text", "text": "forty characters of text, to the letter."},
}
BIG = {
    "sessionUpdate": "tool_call_update",
    "toolCallId": "call-1",
    "status": "completed",
    "content": [{"type": "content", "content": {"type": "text", "text": "one line of output\n" * 55_000}}],
}


def line(update: dict[str, Any]) -> bytes:
    params = {"sessionId": "session-1", "update": update}
    frame = {"jsonrpc": "2.0", "method": "session/update", "params": params}
    return json.dumps(frame, separators=(",", ":")).encode() + b"\n"


def output(command: Sequence[str], **options: Any) -> dict[str, Any]:
    result = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=TIMEOUT, check=False, **options
    )
    if result.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{result.stdout}{result.stderr}")
    found: dict[str, Any] = json.loads(result.stdout.splitlines()[-1])
    return found


def had(what: Callable[[], Any]) -> str:
    try:
        return str(what())
    except install.PeerUnavailable as reason:
        raise Unavailable(str(reason)) from None


def ours(version: int, *mode: str) -> dict[str, Any]:
    return output(
        [sys.executable, "-m", "bench.wire_client", *(["--v1"] if version == 1 else []), *mode, "--", *OURS]
    )


def python_sdk(*mode: str) -> dict[str, Any]:
    python, folder = had(install.python_sdk), PEERS / "sdk_python"
    return output(
        [python, str(folder / "client.py"), "--bench", *mode, "--", python, str(folder / "agent.py")]
    )


def ts_sdk(version: int, *mode: str) -> dict[str, Any]:
    env = {**os.environ, "ACP_TS_SDK": had(install.ts_sdk)}
    node, folder = had(install.node), PEERS / "sdk_ts"
    client, agent = folder / f"client_v{version}.mjs", folder / f"agent_v{version}.mjs"
    return output([node, str(client), "--bench", *mode, "--", node, str(agent)], env=env)


def per_second(run: Callable[..., dict[str, Any]], count: int) -> Callable[[], float]:
    return lambda: count / run("stream", str(count))["seconds"]


def import_time(python: Callable[[], str], statement: str) -> float:
    """Milliseconds that an import takes, less those of an interpreter that imports nothing."""
    command = [
        python(),
        "-c",
        f"import time; t = time.perf_counter(); {statement}; print(time.perf_counter() - t)",
    ]
    run = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    return float(run.stdout) * 1e3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a run of under 50 seconds")
    quick = parser.parse_args().quick
    rounds, theirs, pings = (3, 15_000, 300) if quick else (5, 100_000, 2000)

    with tempfile.TemporaryDirectory() as folder:
        small, big = Path(folder) / "small.json", Path(folder) / "big.json"
        small.write_bytes(line(SMALL))
        big.write_bytes(line(BIG))
        decoding: dict[str, dict[str, Any]] = {}

        def decode(whose: str, python: Callable[[], str], script: str) -> float:
            """Runs the script once for both figures; the second is read from what it printed."""
            decoding[whose] = output([python(), str(ROOT / "bench" / script), str(small), str(big)])
            return float(decoding[whose]["small_us"])

        def decoded_big(whose: str) -> float:
            if whose not in decoding:
                raise Unavailable("its small decode was not measured")
            return float(decoding[whose]["big_ms"])

        def raw() -> float:
            script = str(ROOT / "bench" / "raw_stream.py")
            return 100_000 / output([sys.executable, script, "100000", str(small)])["seconds"]

        our_v1, our_v2 = functools.partial(ours, 1), functools.partial(ours, 2)
        ts_v1, ts_v2 = functools.partial(ts_sdk, 1), functools.partial(ts_sdk, 2)
        measurements = [
            Measurement("stream antiphon v1", "messages/s", per_second(our_v1, 100_000)),
            Measurement("stream python-sdk v1", "messages/s", per_second(python_sdk, theirs)),
            Measurement("stream ts-sdk v1", "messages/s", per_second(ts_v1, theirs)),
            Measurement("stream antiphon v2", "messages/s", per_second(our_v2, 100_000)),
            Measurement("stream ts-sdk v2", "messages/s", per_second(ts_v2, theirs)),
            Measurement("stream raw os.write/os.read", "messages/s", raw),
            Measurement("rtt antiphon v1", "µs, p50", lambda: our_v1("rtt", str(pings))["p50_us"]),
            Measurement("rtt python-sdk v1", "µs, p50", lambda: python_sdk("rtt", str(pings))["p50_us"]),
            Measurement("rtt ts-sdk v1", "µs, p50", lambda: ts_v1("rtt", str(pings))["p50_us"]),
            Measurement("spawn antiphon", "s", lambda: our_v1("spawn")["seconds"]),
            Measurement("spawn python-sdk", "s", lambda: python_sdk("spawn")["seconds"]),
            Measurement(
                "import antiphon",
                "ms",
                lambda: import_time(lambda: sys.executable, "from antiphon.wire import Connection"),
            ),
            Measurement(
                "import acp", "ms", lambda: import_time(lambda: had(install.python_sdk), "import acp")
            ),
            Measurement(
                "decode small antiphon",
                "µs",
                lambda: decode("ours", lambda: sys.executable, "decode_antiphon.py"),
            ),
            Measurement(
                "decode small python-sdk",
                "µs",
                lambda: decode("theirs", lambda: had(install.python_sdk), "peers_decode_python_sdk.py"),
            ),
            Measurement("decode 1 MB antiphon", "ms", lambda: decoded_big("ours")),
            Measurement("decode 1 MB python-sdk", "ms", lambda: decoded_big("theirs")),
        ]
        ratios = [
            Ratio("stdio_stream_vs_python_sdk", "stream antiphon v1", "stream python-sdk v1", at_least=15),
            Ratio("stdio_stream_vs_ts_sdk_v1", "stream antiphon v1", "stream ts-sdk v1", at_least=10),
            Ratio("stdio_stream_vs_ts_sdk_v2", "stream antiphon v2", "stream ts-sdk v2", at_least=10),
            Ratio("stdio_stream_vs_raw", "stream antiphon v1", "stream raw os.write/os.read"),
            Ratio("prompt_rtt_vs_python_sdk", "rtt antiphon v1", "rtt python-sdk v1", at_most=0.5),
            Ratio("import_vs_python_sdk", "import antiphon", "import acp", at_most=0.2),
            Ratio("spawn_vs_python_sdk", "spawn antiphon", "spawn python-sdk", at_most=0.3),
            # Times: a decode ratio is how many of ours fit into one of theirs.
            Ratio(
                "decode_small_vs_python_sdk", "decode small python-sdk", "decode small antiphon", at_least=8
            ),
            Ratio("decode_1mb_vs_python_sdk", "decode 1 MB python-sdk", "decode 1 MB antiphon", at_least=2),
        ]
        if quick:  # only reported, and no part of a ratio
            measurements = [one for one in measurements if one.name != "rtt ts-sdk v1"]
        run_group("wire", measurements, ratios, rounds=rounds)


if __name__ == "__main__":
    main()
