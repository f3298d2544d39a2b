"""The addresses of NATS servers: what is accepted, and that no password is shown."""

from __future__ import annotations

import pytest

from antiphon.errors import StoreError
from antiphon.stores.jetstream.addresses import read_servers, shown_servers


@pytest.mark.parametrize(
    ("given", "servers"),
    [
        ("nats://a", ["nats://a"]),
        ("nats://a:4222, b:4223,nats://c", ["nats://a:4222", "nats://b:4223", "nats://c"]),
        ("tls://a,b", ["tls://a", "tls://b"]),
        ("nats://me:pw@a,b", ["nats://me:pw@a", "nats://b"]),
        ("nats://[::1]:4222", ["nats://[::1]:4222"]),
    ],
)
def test_further_servers_take_the_scheme_of_the_first(given: str, servers: list[str]) -> None:
    assert read_servers(given) == servers


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("127.0.0.1:4222", "got '127.0.0.1:4222'"),
        ("http://a", "got 'http://a'"),
        ("", "got ''"),
        ("nats://a,", "got ''"),
        ("nats://a:port", "got 'nats://a:port'"),
        ("nats://a:70000", "got 'nats://a:70000'"),
        ("nats://a/path", "got 'nats://a/path'"),
        ("nats://a,tls://b", "all NATS addresses must begin with nats://, or all with tls://"),
    ],
)
def test_anything_else_is_refused_in_plain_words(given: str, said: str) -> None:
    with pytest.raises(StoreError) as refused:
        read_servers(given)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    "given", ["me:secret@a", "nats://me:sec,ret@a", "nats://me:secret@a:x", "nats://me:s/ecret@a"]
)
def test_no_error_shows_a_password(given: str) -> None:
    with pytest.raises(StoreError) as refused:
        read_servers(given)
    assert not any(part in str(refused.value) for part in ("sec", "ret@", "ecret"))


def test_addresses_are_shown_without_passwords() -> None:
    assert shown_servers(read_servers("nats://me:secret@a:4222,b")) == "nats://a:4222, nats://b"
