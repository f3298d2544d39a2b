"""An agent of ours with options, modes, a command, and everything else that is told beside a turn."""

from antiphon import Agent, AgentTurn

agent = Agent("options", version="1.0")
agent.config(
    "model",
    name="Model",
    category="model",
    options={"Small": {"fast": "Fast"}, "Large": {"deep": "Deep"}},
)
agent.config("mode", name="Mode", category="mode", options={"ask": "Ask", "code": "Code"})
agent.config("loud", name="Loud", default=False)


@agent.command("tell", description="Tell", hint="what")
async def tell(turn: AgentTurn, rest: str) -> None:
    session = turn.session
    await session.set_title("Told")
    await session.report_usage(used=1, size=2, cost=0.5)
    await session.notice("Look", severity="warning")
    async with session.compaction() as compaction:
        await compaction.write("short")
    turn.count_tokens(input=1, output=2)
    await session.set_config("mode", "ask")
    async with turn.message() as message:
        await message.write(f"{rest}: {dict(session.config)}")


agent.run()
