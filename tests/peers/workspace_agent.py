"""An agent of ours that uses what its client offers; in v2, where nothing is, it runs commands of its own."""

from antiphon import Agent, AgentTurn, CallFailed

agent = Agent("workspace", version="1.0")


@agent.on_prompt
async def work(turn: AgentTurn) -> None:
    if turn.client.can_read:
        await use_client(turn)
        return
    async with turn.tool_call("Sleep", cancellable=True) as call:
        await call.run(["sleep", "1000"])
    async with turn.tool_call("Run") as call:
        await call.run(["sleep", "1000"], cancellable=True, size=(80, 24))


async def use_client(turn: AgentTurn) -> None:
    await turn.client.write("/f", "one\ntwo\n")
    text = await turn.client.read("/f", line=2, limit=1)
    try:
        await turn.client.read("/missing")
    except CallFailed as error:
        text += str(error.error.code)
    async with (
        turn.tool_call("Look", kind="execute") as call,
        turn.client.terminal(["cat", "f"], call=call) as terminal,
    ):
        await terminal.kill()
        status = await terminal.wait()
        text += f" {status.exit_code} {(await terminal.output()).text}"
    await turn.say(text)


agent.run()
