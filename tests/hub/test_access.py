"""Nobody gets in who was not let in."""

from __future__ import annotations

from pathlib import Path

import pytest

from antiphon.errors import LinkLost, LocalError
from antiphon.hub import Hub
from antiphon.hub.access.admission import Admission
from antiphon.hub.access.audit import Audit
from antiphon.hub.access.limits import HubLimits
from antiphon.hub.access.origins import OriginPolicy
from antiphon.hub.access.tokens import Tokens, load_own_token
from antiphon.transports.http.exchange import Head, Headers, Reply
from antiphon.transports.websocket import connect_websocket

GOOD = {"Host": "127.0.0.1:8642", "Authorization": "Bearer secret"}


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        (GOOD, None),
        ({**GOOD, "Host": "localhost:1"}, None),
        ({**GOOD, "Host": "[::1]:1"}, None),
        ({**GOOD, "Origin": "http://127.0.0.1:8642"}, None),
        ({**GOOD, "Origin": "https://page.example"}, None),
        ({**GOOD, "Authorization": "Bearer other"}, 401),
        ({**GOOD, "Authorization": "Basic secret"}, 401),
        ({"Host": "127.0.0.1:8642"}, 401),
        ({**GOOD, "Host": "evil.example"}, 403),
        ({**GOOD, "Host": "[::1"}, 403),
        ({"Authorization": "Bearer secret"}, 403),
        ({**GOOD, "Origin": "http://evil.example"}, 403),
        ({**GOOD, "Origin": "null"}, 403),
        ({**GOOD, "Origin": "http://localhost:3000"}, 403),
    ],
)
def test_who_gets_in(headers: dict[str, str], status: int | None) -> None:
    keeper = Admission(
        OriginPolicy(origins=["https://page.example"]),
        Tokens("secret"),
        limits=HubLimits(),
        audit=Audit(),
    )
    answer = keeper.check(Head("GET", "/acp", Headers(headers.items())))
    assert (answer.status if isinstance(answer, Reply) else None) == status


def test_the_token_is_made_once_and_is_for_its_owner_alone(tmp_path: Path) -> None:
    token = load_own_token(tmp_path / "token")
    assert load_own_token(tmp_path / "token") == token
    assert (tmp_path / "token").stat().st_mode & 0o777 == 0o600
    (tmp_path / "token").chmod(0o644)
    with pytest.raises(LocalError, match="chmod 600"):
        load_own_token(tmp_path / "token")


async def test_a_websocket_is_refused_without_the_token() -> None:
    hub = Hub({})
    async with hub.listening():
        address = f"ws://127.0.0.1:{hub.port}/acp"
        with pytest.raises(LinkLost, match="401"):
            await connect_websocket(address)
        headers = {"Authorization": f"Bearer {hub.token}"}
        with pytest.raises(LinkLost, match="403"):
            await connect_websocket(address, headers={**headers, "Origin": "http://evil.example"})
        await (await connect_websocket(address, headers=headers)).aclose()
