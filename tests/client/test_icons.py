"""Icons that an agent names: which may be shown, and how they are fetched, with real servers behind TLS."""

from __future__ import annotations

import asyncio
import base64
import ipaddress
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from antiphon.client import IconImage, fetch_icon, icon_data, usable_icons
from antiphon.client.icons import LARGEST
from antiphon.errors import IconFailed
from antiphon.schema import v2
from tests.requirements.marks import requirement

DEADLINE = 60.0
PNG = b"\x89PNG\r\n\x1a\n"
INLINE = f"data:image/png;base64,{base64.b64encode(PNG).decode()}"


def icon(src: str) -> v2.Icon:
    return v2.Icon(src=src)


@requirement("CONT-05")
def test_only_https_and_images_in_data_addresses_may_be_shown() -> None:
    good = [
        INLINE,
        "https://example.org/a.png",
        "HTTPS://example.org:8443/a.svg",
        "data:image/svg+xml,%3Csvg/%3E",
    ]
    bad = [
        "http://example.org/a.png",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "//example.org/a.png",
        "a.png",
        "",
        "https://",
        "https://user:secret@example.org/a.png",
        "https://user@example.org/a.png",
        "https://example.org:port/a.png",
        "data:text/html,<script>",
        "data:,plain",
        "data:image/png;base64",
        "data:image/png;base64,not base64",
        "data:image/png;base64," + base64.b64encode(bytes(LARGEST + 1)).decode(),
        "data:image/png," + "%00" * (LARGEST + 1),
    ]
    assert usable_icons([icon(src) for src in [*good, *bad]]) == [icon(src) for src in good]
    assert usable_icons(None) == []


@requirement("CONT-05")
def test_an_image_in_a_data_address_is_read() -> None:
    assert icon_data(icon(INLINE)) == IconImage("image/png", PNG)
    assert icon_data(icon("DATA:IMAGE/svg+xml;charset=utf-8,%3Csvg/%3E")) == IconImage(
        "image/svg+xml", b"<svg/>"
    )
    assert icon_data(icon("https://example.org/a.png")) is None


# --- fetched from real servers ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for this machine and its key, in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path_factory.mktemp("tls") / "certificate.pem"
    path.write_bytes(
        made.public_bytes(serialization.Encoding.PEM)
        + key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    return path


def trusting(certificate: Path) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(certificate))


Answer = Callable[[str], bytes]


@asynccontextmanager
async def server(answer: Answer, certificate: Path | None) -> AsyncIterator[tuple[int, list[str]]]:
    """A server over real sockets; its port, and the requests as they came."""
    requests: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = (await reader.readuntil(b"\r\n\r\n")).decode()
        requests.append(request)
        writer.write(answer(request.split()[1]))
        await writer.drain()
        writer.close()

    context = None
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
    listening = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    async with asyncio.timeout(DEADLINE), listening:
        yield listening.sockets[0].getsockname()[1], requests


def answered(status: str, body: bytes = b"", **headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


@requirement("CONT-05")
async def test_an_icon_is_fetched_and_nothing_is_told_of_who_asks(certificate: Path) -> None:
    def answer(path: str) -> bytes:
        if path == "/old?size=1":
            return answered("302 Found", Location="/new", Set_Cookie="id=secret; Path=/")
        return answered("200 OK", PNG, Content_Type="image/png")

    async with server(answer, certificate) as (port, requests):
        fetched = await fetch_icon(
            icon(f"https://localhost:{port}/old?size=1#fragment"), context=trusting(certificate)
        )
    assert fetched == IconImage("image/png", PNG)
    names = [{line.partition(":")[0] for line in one.split("\r\n")[1:] if line} for one in requests]
    assert names == [{"Host", "Accept", "Accept-Encoding", "Connection"}] * 2
    assert [one.split()[1] for one in requests] == ["/old?size=1", "/new"]


@requirement("CONT-05")
async def test_no_redirect_leads_to_another_scheme_or_origin(certificate: Path) -> None:
    async with (
        server(lambda path: answered("200 OK", PNG, Content_Type="image/png"), certificate) as (other, asked),
        server(lambda path: answered("200 OK", PNG, Content_Type="image/png"), None) as (
            plain,
            asked_plainly,
        ),
    ):
        targets = {
            "/port": f"https://localhost:{other}/a.png",
            "/scheme": f"http://localhost:{plain}/a.png",
            "/name": f"https://127.0.0.1:{other}/a.png",
            "/login": "https://user:secret@localhost/a.png",
            "/inline": INLINE,
            "/nowhere": "",
        }
        async with server(
            lambda path: answered("307 Temporary Redirect", Location=targets[path]), certificate
        ) as (port, requests):
            for path in targets:
                with pytest.raises(IconFailed):
                    await fetch_icon(icon(f"https://localhost:{port}{path}"), context=trusting(certificate))
    assert asked == asked_plainly == []
    assert len(requests) == len(targets) - 1 + 6  # an empty one leads to itself, as often as it may


@requirement("CONT-05")
@pytest.mark.parametrize(
    "answer",
    [
        answered("404 Not Found", PNG, Content_Type="image/png"),
        answered("200 OK", b"<html>", Content_Type="text/html"),
        answered("200 OK", bytes(LARGEST + 1), Content_Type="image/png"),
        b"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\nContent-Length: 100\r\n\r\nshort",
        b"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\n\r\n" + bytes(4 * LARGEST),
        b"nonsense\r\n\r\n",
        b"",
    ],
    ids=["missing", "no image", "too large", "cut short", "endless", "nonsense", "nothing"],
)
async def test_what_is_no_icon_is_refused(certificate: Path, answer: bytes) -> None:
    async with server(lambda path: answer, certificate) as (port, _):
        with pytest.raises(IconFailed):
            await fetch_icon(icon(f"https://localhost:{port}/a.png"), context=trusting(certificate))


@requirement("CONT-05")
async def test_a_chunked_answer_is_put_together(certificate: Path) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\nTransfer-Encoding: chunked\r\n\r\n"
    body = b"4\r\n" + PNG[:4] + b"\r\n4\r\n" + PNG[4:] + b"\r\n0\r\n\r\n"
    async with server(lambda path: head + body, certificate) as (port, _):
        fetched = await fetch_icon(icon(f"https://localhost:{port}/a.png"), context=trusting(certificate))
    assert fetched.data == PNG


@requirement("CONT-05")
async def test_who_is_not_trusted_is_not_asked_and_who_is_silent_not_waited_for(
    certificate: Path,
) -> None:
    async with server(lambda path: answered("200 OK", PNG, Content_Type="image/png"), certificate) as (
        port,
        asked,
    ):
        with pytest.raises(IconFailed):
            await fetch_icon(icon(f"https://localhost:{port}/a.png"))
    assert asked == []

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    listening = await asyncio.start_server(silent, "127.0.0.1", 0, ssl=context)
    async with listening:
        port = listening.sockets[0].getsockname()[1]
        with pytest.raises(IconFailed, match="did not arrive"):
            await fetch_icon(
                icon(f"https://localhost:{port}/a.png"), context=trusting(certificate), timeout=0.3
            )


@requirement("CONT-05")
@pytest.mark.parametrize("src", ["http://localhost/a.png", "data:text/html,x", "https://u:p@localhost/", "x"])
async def test_what_may_not_be_shown_is_not_fetched(src: str) -> None:
    with pytest.raises(IconFailed):
        await fetch_icon(icon(src))
