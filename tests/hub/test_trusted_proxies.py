"""Whose request it is, by the socket's address and by what proxies wrote."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.errors import LocalError
from antiphon.hub.access.trusted_proxies import TrustedProxies, UnclearClient, client_address, read_network
from antiphon.transports.http.exchange import Headers

PROXY, OUTER, CLIENT, FORGED = "10.0.0.1", "10.0.0.2", "198.51.100.7", "203.0.113.9"
TRUSTED = [read_network("10.0.0.0/24"), read_network("2001:db8:1::/48")]


def found(peer: str, *headers: tuple[str, str]) -> str:
    return client_address(peer, Headers(headers), TRUSTED)


@pytest.mark.parametrize(
    ("peer", "value", "client"),
    [
        (PROXY, CLIENT, CLIENT),
        (PROXY, f"{FORGED}, {CLIENT}", CLIENT),
        (PROXY, f"{FORGED}, {CLIENT}, {OUTER}", CLIENT),
        (PROXY, f"{FORGED},{CLIENT} ,\t{OUTER}", CLIENT),
        (PROXY, f"{CLIENT}:61234", CLIENT),
        (PROXY, "2001:db8:ffff::7", "2001:db8:ffff::7"),
        (PROXY, "[2001:db8:ffff::7]:443", "2001:db8:ffff::7"),
        (PROXY, f"::ffff:{CLIENT}", CLIENT),
        (f"::ffff:{PROXY}", CLIENT, CLIENT),
        ("2001:db8:1::9", CLIENT, CLIENT),
        ("2001:db8:1::9%eth0", CLIENT, CLIENT),
        # Every hop is trusted: the farthest of them.
        (PROXY, OUTER, OUTER),
        (PROXY, f"10.0.0.9, {OUTER}", "10.0.0.9"),
        # What is no address ends the walk: nobody vouches for what is left of it.
        (PROXY, "", PROXY),
        (PROXY, "unknown", PROXY),
        (PROXY, f"{FORGED}, unknown", PROXY),
        (PROXY, f"{FORGED}, ", PROXY),
        (PROXY, f"{FORGED}, , {OUTER}", OUTER),
        (PROXY, f"{FORGED}, _hidden, {OUTER}", OUTER),
        (PROXY, f"{FORGED}, fe80::1%x", PROXY),
        (PROXY, f"{FORGED}, 198.51.100.07", PROXY),
        (PROXY, f"{FORGED}, 198.51.100.7.evil.example", PROXY),
        (PROXY, f"{FORGED}, [198.51.100.7", PROXY),
        (PROXY, f"{FORGED}, ١٩٨.51.100.7", PROXY),
        # Nobody else is believed.
        (CLIENT, FORGED, CLIENT),
        ("127.0.0.1", FORGED, "127.0.0.1"),
        ("10.0.1.1", FORGED, "10.0.1.1"),
        ("", FORGED, ""),
    ],
)
def test_x_forwarded_for(peer: str, value: str, client: str) -> None:
    assert found(peer, ("X-Forwarded-For", value)) == client


@pytest.mark.parametrize(
    ("value", "client"),
    [
        (f"for={CLIENT}", CLIENT),
        (f"For={CLIENT};proto=https;by={PROXY}", CLIENT),
        (f"for={FORGED}, for={CLIENT}", CLIENT),
        (f"for={FORGED} , for={CLIENT} , for={OUTER}", CLIENT),
        (f'for="{CLIENT}:1234"', CLIENT),
        ('for="[2001:db8:ffff::7]:4711"', "2001:db8:ffff::7"),
        ('for="[2001:db8:ffff::7]"', "2001:db8:ffff::7"),
        (f'host="a, for={FORGED}";for={CLIENT}', CLIENT),
        (f'for={FORGED}, host="\\", for={FORGED}";for={CLIENT}', CLIENT),
        (f"for={FORGED}, for=unknown", PROXY),
        (f"for={FORGED}, for=_hidden", PROXY),
        (f"for={FORGED}, proto=https", PROXY),
        (f"for={FORGED},", PROXY),
        ("", PROXY),
        (";;", PROXY),
    ],
)
def test_forwarded(value: str, client: str) -> None:
    assert found(PROXY, ("Forwarded", value)) == client
    assert found(CLIENT, ("Forwarded", value)) == CLIENT


@pytest.mark.parametrize(
    "headers",
    [
        [("Forwarded", f'for="{FORGED}'), ("Forwarded", f"for={CLIENT}")],  # it swallows what follows
        [("Forwarded", f'for="{FORGED}\\"'), ("Forwarded", f"for={CLIENT}")],
        [("Forwarded", f"for={FORGED};for={CLIENT}")],
        [("Forwarded", f"for={CLIENT} {FORGED}")],
        [("Forwarded", "for")],
        [("Forwarded", f"for={FORGED}"), ("X-Forwarded-For", CLIENT)],
        [("X-Forwarded-For", f"{FORGED}, {CLIENT}"), ("Forwarded", f"for={CLIENT}, for={FORGED}")],
    ],
)
def test_headers_that_leave_the_client_open_are_refused(headers: list[tuple[str, str]]) -> None:
    with pytest.raises(UnclearClient):
        found(PROXY, *headers)
    assert found(CLIENT, *headers) == CLIENT


def test_lines_of_one_header_are_one_list_and_both_headers_may_agree() -> None:
    twice = ("X-Forwarded-For", FORGED), ("x-forwarded-for", CLIENT)
    assert found(PROXY, *twice) == CLIENT
    assert found(PROXY, *twice, ("Forwarded", f"for={FORGED}"), ("Forwarded", f"for={CLIENT}")) == CLIENT


def test_without_headers_and_without_trust_it_is_the_socket() -> None:
    assert found(PROXY) == PROXY
    assert TrustedProxies().client_of("127.0.0.1", {"X-Forwarded-For": FORGED}) == "127.0.0.1"


HOP = st.sampled_from([PROXY, OUTER, CLIENT, FORGED, "unknown", "", '"', "for=1", "2001:db8:1::2", "[::1]:2"])


@given(
    st.sampled_from([PROXY, OUTER, CLIENT, "::1", ""]),
    st.dictionaries(
        st.sampled_from(["X-Forwarded-For", "Forwarded"]),
        st.lists(HOP | st.text(max_size=8) | HOP.map("for={}".format), max_size=4).map(", ".join),
    ),
)
def test_the_client_is_found_or_refused_and_finding_it_twice_changes_nothing(
    peer: str, headers: Mapping[str, str]
) -> None:
    try:
        client = client_address(peer, headers, TRUSTED)
    except UnclearClient:
        return
    assert client_address(client, headers, TRUSTED) == client


@pytest.mark.parametrize("text", ["", "proxy.example", "10.0.0.1/8", "0.0.0.0/0", "::/0", "10.0.0.0/33"])
def test_what_is_no_proxys_address_is_refused(text: str) -> None:
    with pytest.raises(LocalError):
        TrustedProxies([text])
