"""The parts of Web Push: encryption, tokens, addresses and subscriptions."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from pathlib import Path

import pytest
from aiohttp import web
from cryptography.hazmat.primitives.asymmetric import ec
from msgspec.structs import replace

from antiphon.errors import LocalError, RequestError
from antiphon.hub.access.tokens import Tokens
from antiphon.hub.alerts.channel import DeliveryFailed
from antiphon.hub.alerts.push.addresses import ForbiddenAddress, PushAddresses
from antiphon.hub.alerts.push.encryption import LARGEST, decode_base64, encode_base64, encrypt
from antiphon.hub.alerts.push.message import PushMessage
from antiphon.hub.alerts.push.rights import AnswerRight, new_rights
from antiphon.hub.alerts.push.sender import PushSender
from antiphon.hub.alerts.push.subscriptions import ALL, EACH, Subscription, Subscriptions
from antiphon.hub.alerts.push.vapid import Vapid, load_key
from antiphon.schema.antiphon.clients import Who
from tests.hub.push_service import DEADLINE, Subscriber, hung, receiving, verified
from tests.transports.certificates import certificates

MESSAGE = PushMessage(content=b"hello", urgency="high", ttl=60, topic="t")


def private(text: str) -> ec.EllipticCurvePrivateKey:
    return ec.derive_private_key(int.from_bytes(decode_base64(text), "big"), ec.SECP256R1())


def test_the_example_of_the_standard_is_encrypted_as_it_says() -> None:
    """RFC 8291, appendix A."""
    body = encrypt(
        b"When I grow up, I want to be a watermelon",
        decode_base64(
            "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"
        ),
        decode_base64("BTBZMqHH6r4Tts7J_aSIgg"),
        sender=private("yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw"),
        salt=decode_base64("DGv6ra1nlYgDCS1FRnbzlw"),
        padded=1,
    )
    assert encode_base64(body) == (
        "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8w"
        "EqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"
    )


def test_the_size_of_a_message_tells_little_and_is_bounded() -> None:
    browser = Subscriber("https://push.example/1")
    sizes = set()
    for size in (0, 1, 200, 512):
        body = encrypt(b"x" * size, browser.point, browser.auth)
        sizes.add(len(body))
        assert browser.decrypt(body) == b"x" * size
    assert len(sizes) == 2
    assert len(encrypt(b"x" * LARGEST, browser.point, browser.auth)) <= 4096
    with pytest.raises(ValueError, match="at most"):
        encrypt(b"x" * (LARGEST + 1), browser.point, browser.auth)


def test_a_token_is_signed_for_one_service_and_made_anew_before_it_ends(tmp_path: Path) -> None:
    key = load_key(tmp_path / "key.pem")
    assert (tmp_path / "key.pem").stat().st_mode & 0o077 == 0
    assert load_key(tmp_path / "key.pem").private_numbers() == key.private_numbers()
    now = [1000.0]
    vapid = Vapid(key, clock=lambda: now[0])
    first = vapid.authorization("https://a.example")
    now[0] += 3600
    assert vapid.authorization("https://a.example") == first
    assert vapid.authorization("https://b.example") != first
    now[0] += 11 * 3600
    assert vapid.authorization("https://a.example") != first
    told = Vapid(key, contact="https://hub.example")
    claims = verified(told.authorization("https://a.example"), audience="https://a.example", key=told.public)
    assert claims["sub"] == "https://hub.example"


def resolving(*addresses: str) -> PushAddresses:
    async def resolve(host: str, port: int) -> list[str]:
        return list(addresses)

    return PushAddresses(resolve=resolve)


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0",
        "224.0.0.1", "::1", "::", "fe80::1%eth0", "fd00::1", "::ffff:10.0.0.1", "64:ff9b::7f00:1",
        "2002:7f00:1::", "::127.0.0.1", "fec0::1", "64:ff9b:1::a00:1", "192.0.0.8", "4000::1", "ff0e::1",
    ],
)  # fmt: skip
async def test_a_name_with_a_private_address_gets_nothing(address: str) -> None:
    with pytest.raises(ForbiddenAddress):
        await resolving("93.184.216.34", address).find("https://push.example/1")


async def test_a_request_goes_to_the_address_that_was_checked() -> None:
    found = await resolving("93.184.216.34").find("https://push.example/send/1?x=2#y")
    assert found == (
        "93.184.216.34",
        443,
        True,
        "/send/1?x=2",
        "push.example",
        "push.example",
        "https://push.example",
    )
    found = await resolving("2606:2800:220:1::1").find("https://push.example:8443/1")
    assert (found.address, found.port, found.host) == ("2606:2800:220:1::1", 8443, "push.example:8443")


@pytest.mark.parametrize(
    "endpoint",
    [
        "https://a..b/1", f"https://{'a' * 64}.example/1", "https://.example/1", "https://push.example:0/1",
        "https://push.example/a b", "https://push.example/1 HTTP/1.1", "https://me@push.example/1",
        "https://push.example\\@127.0.0.1/1", "https://push.example/\r\nX: y", "https://[::1/", "https:///1",
    ],
)  # fmt: skip
def test_an_address_that_cannot_be_one_is_refused_when_a_client_subscribes(endpoint: str) -> None:
    with pytest.raises(ForbiddenAddress):
        PushAddresses().check(endpoint)


@pytest.mark.parametrize("given", ["http://push.example", "https://push.example/path", "nonsense", "ftp://x"])
def test_an_allowed_service_is_an_origin(given: str) -> None:
    with pytest.raises(LocalError):
        PushAddresses([given])


async def test_the_certificate_is_checked_for_the_name_and_not_for_the_address(tmp_path: Path) -> None:
    trusting, serving = certificates(tmp_path)
    taken = []

    async def take(request: web.Request) -> web.Response:
        taken.append(request.headers["Host"])
        return web.Response(status=201)

    async with asyncio.timeout(DEADLINE), receiving(take, tls=serving) as origin:
        browser = Subscriber(f"{origin.replace('127.0.0.1', 'localhost')}/1")
        wrong = Subscriber(f"{origin.replace('127.0.0.1', 'push.example')}/1")

        async def resolve(host: str, port: int) -> list[str]:
            return ["127.0.0.1"]

        allowed = [each.endpoint.removesuffix("/1") for each in (browser, wrong)]
        addresses = PushAddresses(allowed, resolve=resolve)
        vapid = Vapid(load_key(tmp_path / "push.pem"))
        sender = PushSender(vapid, addresses, tls=trusting, seconds=DEADLINE, pauses=())
        keys = encode_base64(browser.point), encode_base64(browser.auth)
        assert await sender.send(browser.endpoint, *keys, MESSAGE)
        with pytest.raises(DeliveryFailed, match="certificate"):
            await sender.send(wrong.endpoint, *keys, MESSAGE)
    assert len(taken) == 1
    assert taken[0].startswith("localhost:")


@pytest.mark.parametrize(("statuses", "left"), [([500, 201], 0), ([500, 503, 500], 0), ([301, 201], 1)])
async def test_a_push_is_tried_again_where_that_may_help(
    statuses: list[int], left: int, tmp_path: Path
) -> None:
    delivered = statuses[-1] == 201 and left == 0

    async def take(request: web.Request) -> web.Response:
        return web.Response(status=statuses.pop(0), headers={"Location": "/elsewhere"})

    async with asyncio.timeout(DEADLINE), receiving(take) as origin:
        sender = plain_sender(tmp_path, origin)
        browser = Subscriber(f"{origin}/1")
        sending = sender.send(
            browser.endpoint, encode_base64(browser.point), encode_base64(browser.auth), MESSAGE
        )
        if delivered:
            assert await sending
        else:
            with pytest.raises(DeliveryFailed):
                await sending
    assert len(statuses) == left


async def test_a_push_service_that_hangs_is_given_up(tmp_path: Path) -> None:
    async with asyncio.timeout(DEADLINE), hung() as (origin, _):
        browser = Subscriber(f"{origin}/1")
        sender = plain_sender(tmp_path, origin, seconds=0.5)
        with pytest.raises(DeliveryFailed, match="no answer"):
            await sender.send(
                browser.endpoint, encode_base64(browser.point), encode_base64(browser.auth), MESSAGE
            )


def plain_sender(folder: Path, origin: str, *, seconds: float = DEADLINE) -> PushSender:
    vapid = Vapid(load_key(folder / "push.pem"))
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    return PushSender(vapid, PushAddresses([origin]), tls=tls, seconds=seconds, pauses=(0.0, 0.0))


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"HTTP/1.1 100 Continue\r\n\r\n", "not HTTP"),
        (b"HTTP/1.1 200", "not HTTP"),
        (b"x" * 4096, "not HTTP"),
        (b"\r\n", "not HTTP"),
    ],
)
async def test_a_push_service_that_never_stops_answering_is_left(
    answer: bytes, said: str, tmp_path: Path
) -> None:
    """Interim answers without end would keep the event loop busy until the time is over."""
    left = asyncio.Event()

    async def flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while True:
                writer.write(answer)
                await writer.drain()
                await asyncio.sleep(0)
        left.set()

    async with asyncio.timeout(DEADLINE), await asyncio.start_server(flood, "127.0.0.1", 0) as server:
        origin = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        sender = plain_sender(tmp_path, origin)
        browser = Subscriber(f"{origin}/1")
        keys = encode_base64(browser.point), encode_base64(browser.auth)
        with pytest.raises(DeliveryFailed, match=said):
            await sender.send(browser.endpoint, *keys, MESSAGE)
        await left.wait()


def kept(number: int, token: str) -> Subscription:
    return Subscription(
        id=f"push_{number}",
        endpoint=f"https://push.example/{number}",
        point="",
        auth="",
        token=token,
        who=Who(client_id="c", name="Ann"),
        turns=True,
    )


class Holders(Tokens):
    """Tokens that are all valid."""

    def holder(self, identity: str) -> object:  # type: ignore[override]
        return identity


async def test_a_token_has_a_few_subscriptions_and_the_hub_not_too_many(tmp_path: Path) -> None:
    path = tmp_path / "push.json"
    subscriptions = Subscriptions(path, Holders("own"))
    for number in range(EACH + 2):
        await subscriptions.add(kept(number, "one"))
    assert [each.id for each, _ in subscriptions.valid()] == [f"push_{n}" for n in range(2, EACH + 2)]
    for number in range(100, 100 + ALL - EACH):
        await subscriptions.add(kept(number, f"token {number}"))
    with pytest.raises(RequestError):
        await subscriptions.add(kept(99, "another"))
    await subscriptions.add(kept(5, "another"))  # the browser of one that is there
    await subscriptions.add(replace(kept(5, "another"), id="push_again"))  # it visits the page again
    assert (len(subscriptions), subscriptions.get("push_again")) == (ALL, None)
    await subscriptions.remove("https://push.example/5", "one")  # another token has it now
    assert len(Subscriptions(path, Holders("own"))) == ALL
    path.write_text("broken")
    assert len(Subscriptions(path, Holders("own"))) == 0


def test_a_right_to_answer_is_used_once_and_ends() -> None:
    rights = new_rights()
    right = AnswerRight(session_id="s", question_id="q", option_id="o", subscription="p")
    code = rights.issue(right)
    assert rights.redeem("other") is None
    assert rights.redeem(code) == right
    assert rights.redeem(code) is None
    assert rights.seconds == 3600
