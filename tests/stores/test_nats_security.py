"""TLS and credentials between the store and NATS servers, and clear errors when they do not fit."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest
from tests.stores.conftest import MakeOptions
from tests.stores.nats_security import Authority, Operator, user_key
from tests.stores.nats_servers import SERVER, NatsServer, free_ports, one_server

from antiphon.errors import StoreError
from antiphon.stores import JetStreamOptions, JetStreamStore
from antiphon.testing.store_samples import events, session

pytestmark = pytest.mark.skipif(SERVER is None, reason="nats-server is not installed")
USERS = "authorization { user: antiphon, password: secret }"


async def works(address: str, options: JetStreamOptions) -> bool:
    """Whether a store can write and read, and one store can reach the other."""
    async with JetStreamStore(address, options) as one, JetStreamStore(address, options) as other:
        await one.create(session("a"), batch=events(1, 3))

        async def handle(data: bytes) -> bytes:
            return data + b"!"

        await other.serve(handle)
        answer = await one.request(other.store_id, b"hello", timeout=10)
        return (await other.read("a", 0)).last == 3 and answer == b"hello!"


async def refusal(address: str, options: JetStreamOptions) -> str:
    with pytest.raises(StoreError) as error:
        await JetStreamStore(address, options).open()
    return str(error.value)


def over_tls(address: str, user: str = "") -> str:
    return address.replace("nats://", f"tls://{user}")


# --- TLS ----------------------------------------------------------------------------------------------


async def test_a_store_works_over_tls(tmp_path: Path, apart: MakeOptions) -> None:
    authority = Authority(tmp_path, "ours")
    with one_server(tmp_path, f"{authority.server_settings()}\n{USERS}") as address:
        assert await works(over_tls(address, "antiphon:secret@"), apart(ca=str(authority.ca)))


async def test_a_ca_file_alone_asks_for_tls(tmp_path: Path, apart: MakeOptions) -> None:
    authority = Authority(tmp_path, "ours")
    with one_server(tmp_path, authority.server_settings()) as address:
        assert await works(address, apart(ca=str(authority.ca)))


async def test_a_certificate_of_another_authority_is_refused(tmp_path: Path, apart: MakeOptions) -> None:
    other = Authority(tmp_path, "other")
    with one_server(tmp_path, Authority(tmp_path, "ours").server_settings()) as address:
        said = await refusal(over_tls(address), apart(ca=str(other.ca)))
        assert f"at {over_tls(address)}: the certificate of the server was refused" in said
        assert f"check the CA file {other.ca}" in said
        assert "give the CA file of the servers" in await refusal(over_tls(address), apart())


async def test_a_certificate_for_another_address_is_refused(tmp_path: Path, apart: MakeOptions) -> None:
    authority = Authority(tmp_path, "ours")
    with one_server(tmp_path, authority.server_settings("192.0.2.1")) as address:
        said = await refusal(over_tls(address), apart(ca=str(authority.ca)))
        assert "IP address mismatch" in said


@pytest.mark.parametrize("asked_by", ["address", "ca"])
async def test_no_password_is_sent_to_a_server_without_tls(
    tmp_path: Path, apart: MakeOptions, asked_by: str
) -> None:
    received = bytearray()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(
            b'INFO {"server_id":"x","version":"2.12.0","proto":1,"headers":true,"max_payload":1048576,'
            b'"auth_required":true}\r\n'
        )
        while data := await reader.readline():
            received.extend(data)
            writer.write(b"PONG\r\n")
        writer.close()

    authority = Authority(tmp_path, "ours")
    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        scheme = "tls" if asked_by == "address" else "nats"
        address = f"{scheme}://antiphon:secret@127.0.0.1:{server.sockets[0].getsockname()[1]}"
        said = await refusal(address, apart(ca=str(authority.ca) if asked_by == "ca" else None))
    assert "the server does not use TLS" in said
    assert received == b""


# --- credentials --------------------------------------------------------------------------------------


async def test_a_wrong_password_is_refused_and_not_repeated(tmp_path: Path, apart: MakeOptions) -> None:
    with one_server(tmp_path, USERS) as address:
        said = await refusal(address.replace("nats://", "nats://antiphon:wr0ng@"), apart())
    assert f"cannot connect to NATS at {address}: the server refused user and password" in said
    assert "wr0ng" not in said


async def test_a_password_holds_for_all_servers_of_the_address(tmp_path: Path, apart: MakeOptions) -> None:
    with one_server(tmp_path, "authorization { user: antiphon, password: 'p@ss:w/rd' }") as address:
        ports = address.removeprefix("nats://127.0.0.1:"), free_ports(1)[0]
        user = "nats://antiphon:p%40ss%3Aw%2Frd@127.0.0.1"
        assert await works(f"{user}:{ports[1]},127.0.0.1:{ports[0]}", apart())


async def test_a_token_lets_a_store_in(tmp_path: Path, apart: MakeOptions) -> None:
    with one_server(tmp_path, "authorization { token: t0ken }") as address:
        assert await works(address.replace("nats://", "nats://t0ken@"), apart())


async def test_an_nkey_lets_a_store_in(tmp_path: Path, apart: MakeOptions) -> None:
    user, seed = user_key(), tmp_path / "user.nk"
    seed.write_text(f"{user.seed}\n")
    with one_server(tmp_path, f"authorization {{ users: [{{ nkey: {user.public} }}] }}") as address:
        assert await works(address, apart(credentials=str(seed)))
        seed.write_text(f"{user_key().seed}\n")
        said = await refusal(address, apart(credentials=str(seed)))
        assert f"the server refused the credentials file {seed}" in said


async def test_a_credentials_file_lets_a_store_in(tmp_path: Path, apart: MakeOptions) -> None:
    operator, file = Operator(), tmp_path / "user.creds"
    file.write_text(operator.credentials())
    with one_server(tmp_path, operator.server_settings()) as address:
        assert await works(address, apart(credentials=str(file)))
        file.write_text(Operator().credentials())
        said = await refusal(address, apart(credentials=str(file)))
        assert f"the server refused the credentials file {file}" in said
        assert "the server refused user and password" in await refusal(address, apart())


async def test_a_store_stays_connected_with_its_credentials(tmp_path: Path, apart: MakeOptions) -> None:
    authority = Authority(tmp_path, "ours")
    server = NatsServer(tmp_path, "alone", free_ports(1)[0], f"{authority.server_settings()}\n{USERS}")
    server.start()
    try:
        server.wait()
        address = f"tls://antiphon:secret@127.0.0.1:{server.port}"
        async with JetStreamStore(address, apart(ca=str(authority.ca))) as store:
            await store.create(session("a"))
            server.kill()
            server.start()
            await store.append("a", events(1, 3))
            assert (await store.read("a", 0)).last == 3
    finally:
        server.kill()


# --- files and addresses ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("option", "content", "said"),
    [
        ("ca", None, "cannot read the CA file {}: No such file or directory"),
        ("ca", "no certificate", "the CA file {} has no certificate in PEM format"),
        ("credentials", None, "cannot read the credentials file {}: No such file or directory"),
        ("credentials", "user: secret", "{} is not a NATS credentials file: expected a user JWT"),
        ("credentials", "SUABC", "{} is not a NATS credentials file: expected a user JWT"),
    ],
)
async def test_an_unusable_file_is_named(
    tmp_path: Path, nats: str, apart: MakeOptions, option: str, content: str | None, said: str
) -> None:
    file = tmp_path / "file"
    if content is not None:
        file.write_text(content)
    assert said.format(file) in await refusal(nats, apart(**{option: str(file)}))


@pytest.mark.parametrize("address", ["", "http://127.0.0.1", "nats://", "nats://a:b", "nats://a,http://b"])
async def test_an_address_that_is_none_of_nats_is_refused(apart: MakeOptions, address: str) -> None:
    assert re.match("NATS addresses must be like", await refusal(address, apart()))


async def test_servers_without_jetstream_are_named(tmp_path: Path, apart: MakeOptions) -> None:
    with one_server(tmp_path, jetstream="enabled: false") as address:
        assert "JetStream is not enabled" in await refusal(address, apart(patience=1.0))
