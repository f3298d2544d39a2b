"""The public URL of a hub, and which pages are its own by it."""

from __future__ import annotations

import pytest

from antiphon.errors import LocalError
from antiphon.hub.access.origins import OriginPolicy, read_public_url


@pytest.mark.parametrize(
    ("given", "origin"),
    [
        ("https://hub.example", "https://hub.example"),
        ("HTTPS://Hub.Example/", "https://hub.example"),
        ("https://hub.example:443/", "https://hub.example"),
        ("https://hub.example:8443", "https://hub.example:8443"),
        ("http://hub.example:80", "http://hub.example"),
        ("https://[2001:DB8::1]:8443", "https://[2001:db8::1]:8443"),
    ],
)
def test_a_public_url_is_read_as_browsers_write_it(given: str, origin: str) -> None:
    assert read_public_url(given) == origin


@pytest.mark.parametrize(
    "given",
    [
        "",
        "hub.example",
        "//hub.example",
        "wss://hub.example",
        "https://",
        "https://hub.example/hub",
        "https://hub.example?a",
        "https://hub.example#a",
        "https://ann@hub.example",
        "https://@hub.example",
        "https://hub.example:x",
        "https://[x",
        "https://hub.exam\x1bple",
        "https://hüb.example",
        "https://hub example",
    ],
)
def test_anything_else_is_refused(given: str) -> None:
    with pytest.raises(LocalError, match=r"URL|host"):
        read_public_url(given)


@pytest.mark.parametrize(
    ("host", "origin", "own"),
    [
        ("hub.example", "https://hub.example", True),
        ("hub.example:443", "https://hub.example", True),
        ("hub.example", "HTTPS://HUB.EXAMPLE", True),
        ("127.0.0.1:8642", "https://hub.example", True),  # a proxy that asks under a name of its own
        ("127.0.0.1:8642", "http://127.0.0.1:8642", True),  # on the hub's own machine
        ("hub.example", "http://hub.example", False),
        ("hub.example:8443", "https://hub.example:8443", False),
        ("hub.example", "https://evil.example", False),
        ("hub.example", "null", False),
        ("hub.example", "", False),
    ],
)
def test_a_page_of_the_public_origin_is_the_hubs_own(host: str, origin: str, own: bool) -> None:
    gate = OriginPolicy(public="https://hub.example")
    headers = {"Host": host, **({"Origin": origin} if origin else {})}
    assert gate.is_own(headers) is own
    assert (gate.refusal(headers) is None) is (own or not origin)
