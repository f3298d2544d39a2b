"""Reaching a hub from the command line: by its address, by the folder of one that runs, or by its store."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from antiphon.cli.describing import one_line
from antiphon.cli.exits import Exit, Failure
from antiphon.client import Client, connect
from antiphon.errors import AntiphonError, CallFailed, LinkLost
from antiphon.hub import Hub, HubFolder


def find_hub(hub: str | None, token: str | None, data: str | None) -> tuple[str, str] | None:
    """Address and token of the hub that is meant, if one runs. Raises `Failure`."""
    if hub is not None:
        address = hub if "://" in hub else f"ws://{hub}/acp"
        if token is None:
            folder = HubFolder(data)
            token = folder.token if (folder.path / "token").exists() else None
        if token is None:
            raise Failure("a token is needed for this hub: --token, or ANTIPHON_TOKEN", Exit.USAGE)
        return address, token
    running = HubFolder(data).running()
    return None if running is None else (running.acp, token or running.token)


@asynccontextmanager
async def reached(
    hub: str | None, token: str | None, data: str | None, *, store: bool = False, **connecting: Any
) -> AsyncIterator[Client]:
    """A client of the hub; with `store`, where none runs, of what it has kept."""
    found = find_hub(hub, token, data)
    if found is not None:
        address, secret = found
        async with connect(address, token=secret, version=2, **connecting) as client:
            yield client
        return
    folder = HubFolder(data)
    if not store:
        raise Failure(f"no hub runs in {folder.path}: start one with `antiphon serve`")
    if not folder.sessions.exists():
        raise Failure(f"there are no sessions in {folder.path}: `antiphon serve` begins to keep some")
    from antiphon.stores.sqlite import SQLiteStore

    with folder.held():
        kept = Hub({}, store=SQLiteStore(folder.sessions))
        async with connect(kept, version=2, **connecting) as client:
            yield client


async def find_session(client: Client, named: str) -> Any:
    """The session of this id, or whose id begins so. Raises `Failure`."""
    found = [info async for info in client.list_sessions(archived="include")]
    exact = [info for info in found if info.session_id == named]
    near = exact or [
        info for info in found if info.session_id.startswith((named, f"sess_{named}")) and len(named) >= 4
    ]
    if len(near) == 1:
        return near[0]
    if near:
        raise Failure(f"{len(near)} sessions begin with {named!r}: write more of it", Exit.USAGE)
    raise Failure(f"there is no session {named!r}: `antiphon sessions list` shows what there is")


def run_told(work: Callable[[], Awaitable[None]]) -> Exit:
    """Run it; what goes wrong is one line on stderr."""
    logging.getLogger("antiphon").addHandler(logging.NullHandler())
    logging.getLogger("antiphon").propagate = False

    async def main() -> None:
        await work()

    try:
        asyncio.run(main())
    except Failure as failure:
        return _tell(str(failure), failure.code)
    except LinkLost as error:
        return _tell(f"the hub cannot be reached: {error.reason}", Exit.ERROR)
    except CallFailed as error:
        return _tell(f"the hub refused: {error.error.message}", Exit.ERROR)
    except AntiphonError as error:
        return _tell(str(error), Exit.ERROR)
    except (KeyboardInterrupt, asyncio.CancelledError):
        return Exit.CANCELLED
    except BrokenPipeError:
        return Exit.ERROR
    return Exit.DONE


def _tell(line: str, code: Exit) -> Exit:
    print(f"antiphon: {one_line(line, limit=600)}", file=sys.stderr)
    return code
