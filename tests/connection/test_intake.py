"""What one peer sends is handled in turns; in between others run, and nothing more is read."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from antiphon.connection.intake import MOST, Intake, ReadingPause
from antiphon.jsonrpc.lines import Received


class Peer:
    def __init__(self) -> None:
        self.handled: list[Received] = []
        self.turns: list[int] = []
        self.brakes: list[str] = []
        reading = ReadingPause(lambda: self.brakes.append("pause"), lambda: self.brakes.append("resume"))
        self.most = MOST
        self.intake = Intake(self.handle, reading)

    def handle(self, frames: list[Received], is_over: Callable[[], bool]) -> list[Received]:
        self.handled += frames[: self.most]
        self.turns.append(len(frames[: self.most]))
        return frames[self.most :]


FRAMES: list[Received] = [b"%d" % number for number in range(3 * MOST)]


async def test_many_frames_are_handled_in_order_over_several_turns() -> None:
    peer = Peer()
    peer.intake.receive(FRAMES[:-1])
    peer.intake.receive(FRAMES[-1:])
    assert (peer.turns, peer.brakes) == ([MOST], ["pause"])
    for _ in range(2):
        await asyncio.sleep(0)
    assert (peer.handled, peer.turns, peer.brakes) == (FRAMES, [MOST] * 3, ["pause", "resume"])


async def test_what_is_left_when_the_time_is_over_comes_first_in_the_next_turn() -> None:
    peer = Peer()
    peer.most = 100
    peer.intake.receive(FRAMES[:150])
    peer.intake.receive(FRAMES[150:160])
    await asyncio.sleep(0)
    assert (peer.handled, peer.turns) == (FRAMES[:160], [100, 60])


async def test_few_frames_are_handled_at_once() -> None:
    peer = Peer()
    peer.intake.receive(FRAMES[:5])
    assert (peer.handled, peer.brakes) == (FRAMES[:5], [])


async def test_what_waits_is_handled_before_another_link_and_dropped_at_the_end() -> None:
    for end, count in (("finish", 3), ("drop", 1)):
        peer = Peer()
        peer.intake.receive(FRAMES)
        peer.most = 3 * MOST
        getattr(peer.intake, end)()
        await asyncio.sleep(0)
        assert (peer.handled, peer.brakes) == (FRAMES[: count * MOST], ["pause", "resume"])


async def test_a_brake_is_released_when_nobody_holds_it() -> None:
    told: list[str] = []
    reading = ReadingPause(lambda: told.append("pause"), lambda: told.append("resume"))
    for act, by in ((reading.hold, 1), (reading.hold, 2), (reading.release, 1), (reading.release, 1)):
        act(by)
    assert told == ["pause"]
    reading.release(2)
    assert told == ["pause", "resume"]
