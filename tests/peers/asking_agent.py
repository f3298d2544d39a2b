"""An agent of ours that asks for a form of every kind of field, and for a visit."""

import enum
from datetime import date
from typing import Annotated, Literal

from msgspec import Meta, Struct, field, to_builtins

from antiphon import Agent, AgentTurn
from antiphon.agent import Email


class Size(enum.Enum):
    SMALL = "s"
    EXTRA_LARGE = "xl"


class Order(Struct, rename="camel"):
    full_name: Annotated[str, Meta(title="Name", min_length=2, pattern="^[A-Z]")]
    mail: Email
    due: date
    count: Annotated[int, Meta(ge=1, le=9)] = 1
    share: Annotated[float, Meta(ge=0, le=1)] = 0.5
    gift: bool = False
    colour: Literal["red", "blue"] = "red"
    size: Size = Size.SMALL
    extras: Annotated[set[Literal["a", "b"]], Meta(max_length=2)] = field(default_factory=set)
    sizes: list[Size] = field(default_factory=list)


agent = Agent("asking", version="1.0")


@agent.on_prompt
async def work(turn: AgentTurn) -> None:
    async with turn.tool_call("Order") as call:
        answer = await call.ask("What shall it be?", Order)
    again = await turn.ask("And now?", Order)
    consent = await turn.ask_url("Please pay", "https://example.com/pay?order=1")
    if consent.accepted:
        await consent.complete()
    order = to_builtins(answer.value, str_keys=True)
    async with turn.message() as message:
        await message.write(f"{order and sorted(order.items())} {again.action} {consent.action}")


agent.run()
