"""The page in a real Chromium, over HTTPS and HTTP/2, through both proxies."""

from __future__ import annotations

import asyncio
from importlib.util import find_spec
from pathlib import Path

import pytest
from tools.chromium import chromium, missing

from tests.hub.running import ANTIPHON, served
from tests.proxy.proxies import DEADLINE, NAME, free_port, proxy_before

pytestmark = pytest.mark.skipif(find_spec("playwright") is None, reason="needs playwright")

PROTOCOLS = """() => performance.getEntriesByType("navigation")
  .concat(performance.getEntriesByType("resource")).map((entry) => entry.nextHopProtocol)"""


async def test_the_page_works_over_https_and_http2(
    program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if why := missing():
        pytest.skip(why)
    from tools.session_page import SessionPage

    from tests.browser.visiting import run

    monkeypatch.setenv("ANTIPHON_REHEARSAL_PACE", "0")
    port = free_port()
    origin = f"https://{NAME}:{port}"
    folder, proxies = tmp_path / "hub", tmp_path / "proxy"
    folder.mkdir(mode=0o700)
    proxies.mkdir()
    options = "--public-url", origin, "--trusted-proxy", "127.0.0.1/32,192.0.2.0/24"
    with served(folder, *options, agent=()) as hub:
        assert hub.acp.startswith("ws://127.0.0.1:")
        with proxy_before(program, int(hub.port), proxies, port):
            link = (await run(*ANTIPHON, "link", "--data", str(folder))).strip()
            assert link.startswith(f"{origin}/#login=")
            async with chromium(f"--host-resolver-rules=MAP {NAME} 127.0.0.1") as browser:
                context = await browser.new_context(ignore_https_errors=True, reduced_motion="reduce")
                context.set_default_timeout(DEADLINE * 1000)
                page = await context.new_page()
                sockets: asyncio.Queue[str] = asyncio.Queue()
                page.on("websocket", lambda socket: sockets.put_nowait(socket.url))
                await page.goto(link)
                session = SessionPage(page)
                await session.come_in()
                await session.begin(str(folder))
                await session.turn("plan")
                await session.reads("All three steps are done")
                assert sockets.get_nowait() == f"wss://{NAME}:{port}/acp"
                cookies = await context.cookies()
                assert [(cookie["secure"], cookie["httpOnly"]) for cookie in cookies] == [(True, True)]
                protocols = set(await page.evaluate(PROTOCOLS))
                assert protocols == {"h2"}, protocols
