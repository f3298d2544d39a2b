"""A hub beyond loopback: over TLS, or said to be insecure, or not at all."""

from __future__ import annotations

import asyncio
import os
import subprocess
from pathlib import Path

import pytest

from antiphon.client import ClientOptions, connect
from antiphon.errors import LinkLost, LocalError
from antiphon.hub import Hub
from antiphon.hub.access.origins import is_loopback
from tests import warm
from tests.hub.running import DEADLINE, served
from tests.transports.certificates import certificates


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("127.0.0.1", True),
        ("127.8.9.10", True),
        ("::1", True),
        ("[::1]", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("", False),
        ("192.168.1.2", False),
        ("localhost.evil.example", False),
    ],
)
def test_what_only_this_machine_reaches(host: str, loopback: bool) -> None:
    assert is_loopback(host) is loopback


def listed(*words: str) -> subprocess.CompletedProcess[str]:
    return warm.run(["sessions", "list", *words], timeout=DEADLINE)


def prompted(address: str, token: str, *words: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "ANTIPHON_TOKEN": token}
    return warm.run(["prompt", "plan", *words, "--", address], timeout=DEADLINE, env=env)


async def test_a_hub_is_reached_over_tls_by_those_who_trust_it(tmp_path: Path) -> None:
    trusting, _ = certificates(tmp_path)
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    folder = tmp_path / "hub"
    folder.mkdir(mode=0o700)
    with served(folder, "--tls-cert", str(cert), "--tls-key", str(key)) as hub:
        assert hub.acp.startswith("wss://127.0.0.1:")
        async with asyncio.timeout(DEADLINE):
            for address in (hub.acp, hub.acp.replace("wss:", "https:")):
                async with connect(address, token=hub.token, options=ClientOptions(tls=trusting)) as client:
                    session = await client.new_session("/")
                    assert (await (await session.prompt("plan")).drained()).stop_reason == "end_turn"
            with pytest.raises(LinkLost, match="certificate"):
                async with connect(hub.acp, token=hub.token, reconnect=False):
                    pass
        by_folder = listed("--data", str(folder))
        assert by_folder.returncode == 0, by_folder.stderr
        reach = ["--hub", hub.acp, "--token", hub.token, "--data", str(tmp_path / "none")]
        assert listed(*reach).returncode != 0
        named = listed(*reach, "--ca", str(cert))
        assert named.returncode == 0, named.stderr
        assert named.stdout == by_folder.stdout != ""
        for address in (hub.acp, hub.acp.replace("wss:", "https:")):
            assert prompted(address, hub.token).returncode != 0
            done = prompted(address, hub.token, "--ca", str(cert))
            assert done.returncode == 0, done.stderr
            assert "All three steps are done" in done.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--host", "0.0.0.0"], "--tls-cert"),
        (["--host", "::"], "--insecure-bind"),
        (["--tls-key", "KEY"], "--tls-key needs --tls-cert"),
        (["--tls-cert", "KEY"], "cannot use the certificate"),
    ],
)
def test_what_would_be_open_to_all_is_refused(words: list[str], said: str, tmp_path: Path) -> None:
    certificates(tmp_path)
    given = [str(tmp_path / "key.pem") if word == "KEY" else word for word in words]
    done = warm.run(["serve", "--port", "0", "--data", str(tmp_path), *given], timeout=DEADLINE)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("words", "address"),
    [
        (["--insecure-bind", "--allow-host", "hub.example"], "ws://127.0.0.1:"),
        (["--tls-cert", "CERT", "--tls-key", "KEY", "--allow-host", "localhost"], "wss://localhost:"),
    ],
)
def test_a_hub_that_listens_everywhere_is_reached_from_here(
    words: list[str], address: str, tmp_path: Path
) -> None:
    certificates(tmp_path)
    files = {"CERT": str(tmp_path / "cert.pem"), "KEY": str(tmp_path / "key.pem")}
    folder = tmp_path / "hub"
    folder.mkdir(mode=0o700)
    with served(folder, "--host", "0.0.0.0", *(files.get(word, word) for word in words)) as hub:
        assert hub.acp.startswith(address)
        assert listed("--data", str(folder)).returncode == 0


async def test_a_hub_in_python_is_as_careful() -> None:
    with pytest.raises(LocalError, match="TLS"):
        async with Hub({}).listening("0.0.0.0"):
            pass
    async with Hub({}).listening("0.0.0.0", insecure=True) as hub:
        assert hub.port
