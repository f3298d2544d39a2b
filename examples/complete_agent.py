"""An agent that can do everything that an agent can, each thing on a command of its own:

    antiphon prompt "/plan" -- python examples/complete_agent.py

    /say  /draw  /who  /model  /plan  /edit  /run  /count  /build  /delegate  /ask  /visit  /files  /mcp
    /status  /compact  /code  /stop  /private

What is written here once is right towards v1 and v2 clients.
"""

import asyncio
from base64 import b64decode
from typing import Annotated, Literal

from msgspec import Meta, Struct

from antiphon import Agent, AgentOptions, AgentSession, AgentTurn, AuthRequired, InvalidParams
from antiphon.agent import Login, ToolCallWriter
from antiphon.content import annotations, embedded, image, link
from antiphon.schema import v2

agent = Agent(
    "complete",
    version="1.0",
    accepts=["image", "audio", "embedded_context"],
    options=AgentOptions(
        system_prompt="override",
        mcp_over_acp=True,
        login_required=False,  # only `/private` is for those who have logged in
    ),
)

# --- options: what the user chooses ------------------------------------------------------------------

agent.config("mode", name="Mode", category="mode", options={"ask": "Ask first", "code": "Just do it"})
agent.config("loud", name="Loud", default=False)


@agent.config("model", category="model", options={"Small": {"fast": "Fast"}, "Large": {"deep": "Deep"}})
async def change_model(session: AgentSession, value: str) -> None:
    if value == "deep" and session.config["mode"] == "ask":
        raise InvalidParams("The deep model does not ask first")  # refused, and nothing changes


models = agent.provider("main", supports=["anthropic", "openai"], base_url="https://api.example.org")


# --- words -------------------------------------------------------------------------------------------


@agent.on_prompt
async def answer(turn: AgentTurn) -> None:
    """Whatever is no command comes here, and is said back."""
    async with turn.thought() as thought:
        await thought.write("What is this?")
    async with turn.message() as message:
        await message.write("You said: ")
        for block in turn.prompt.content:
            match block:
                case v2.TextContent():
                    await message.write(block.text.upper() if turn.session.config["loud"] else block.text)
                case v2.ImageContent() | v2.AudioContent():
                    await message.write(f"[{block.mime_type}]")
                case v2.ResourceLink():
                    await message.write(f"[a link to {block.name}]")
                case v2.EmbeddedResource():
                    await message.write(f"[all of {block.resource.uri}]")


@agent.command("say", description="Say something, and take it back")
async def say(turn: AgentTurn, rest: str) -> None:
    first = await turn.say("It is a bug.")  # a whole message
    await turn.say("Wait.")
    await turn.session.replace_message(first, "It is a feature.")


@agent.command("draw", description="Answer with a picture, a link and a file")
async def draw(turn: AgentTurn, rest: str) -> None:
    dot = b64decode("R0lGODdhAQABAIAAAP///wAAACwAAAAAAQABAAACAkQBADs=")
    async with turn.message() as message:
        await message.write("A dot: ")
        await message.write(image(dot, "image/gif", annotations=annotations(audience=["user"], priority=0.9)))
        await message.write(link("https://example.org/dots", "dots", title="More dots"))
        await message.write(embedded("file:///dots.txt", ". . .", mime_type="text/plain"))


@agent.command("who", description="Tell what it was told")
async def who(turn: AgentTurn, rest: str) -> None:
    prompt = turn.session.system_prompt
    if prompt is not None:
        await turn.say(f"I was told {'nothing but' if prompt.override else 'also'}: {prompt.text}")
    await turn.say(f"I work in {turn.session.cwd} with {dict(turn.session.config)}.")


@agent.command("model", description="Tell where its models are, which clients may set")
async def model(turn: AgentTurn, rest: str) -> None:
    reached = models.current  # with the headers, which nobody is told; None: the client has disabled it
    await turn.say("Nowhere." if reached is None else f"{reached.api_type} at {reached.base_url}")


# --- work --------------------------------------------------------------------------------------------


@agent.command("plan", description="Make a plan, and follow it")
async def plan(turn: AgentTurn, rest: str) -> None:
    steps = ["Look", "Think", "Act"]
    await turn.plan(steps)
    for now in range(1, len(steps) + 1):
        states = ["completed"] * now + ["in_progress"] + ["pending"] * len(steps)
        await turn.plan(
            v2.PlanEntry(content=step, priority=v2.PlanEntryPriority.HIGH, status=v2.PlanEntryStatus(state))
            for step, state in zip(steps, states, strict=False)
        )


@agent.command("edit", description="Change a file, with your permission")
async def edit(turn: AgentTurn, rest: str) -> None:
    async with turn.tool_call("Edit song.py", kind="edit", raw_input={"path": "song.py"}) as call:
        await call.locate("song.py", line=1)
        await call.diff(f"{turn.session.cwd}/song.py", old="la la\n", new="la la la\n")
        if turn.session.config["mode"] == "ask" and not await call.request_permission():
            await call.fail()


@agent.command("run", description="Run a command in a terminal", hint="what to run")
async def run(turn: AgentTurn, rest: str) -> None:
    trace = {"TRACEPARENT": turn.trace.get("traceparent", "")}  # what the client put into `_meta`, handed on
    async with turn.tool_call("Run it", kind="execute") as call:
        if await call.request_permission():
            await call.run(["sh", "-c", rest or "ls"], env=trace, size=(80, 24), cancellable=True)
        else:
            await call.fail()


@agent.command("count", description="Count: steer it, cancel it, or cancel its tool call alone (v2)")
async def count(turn: AgentTurn, rest: str) -> None:
    number = 0
    try:
        async with turn.tool_call("Count", cancellable=True) as call:
            for number in range(1, 41):
                await call.write(f"{number} ")
                for prompt in turn.steered():  # a break point: what was sent meanwhile joins the turn
                    await call.write(f"({prompt.text}) ")
                await asyncio.sleep(0.05)
    finally:
        await turn.say(f"I stopped at {number}.")  # however it ended, and still before the end of the turn


@agent.command("build", description="Build in the background, and tell when it is done")
async def build(turn: AgentTurn, rest: str) -> None:
    session = turn.session

    async def work(call: ToolCallWriter) -> None:
        for step in range(1, 4):
            await call.write(f"step {step} of 3\n")
            await asyncio.sleep(0.05)
        await session.idle()
        async with session.turn() as news:  # one that nobody prompted for
            await news.say("The build is done.")

    await session.background("Build", work, kind="execute", cancellable=True)
    await turn.say("I am building; ask me anything meanwhile.")


@agent.command("delegate", description="Let a subagent do it", hint="what to do")
async def delegate(turn: AgentTurn, rest: str) -> None:
    async with turn.subagent("Researcher", cancellable=True) as child:  # in a session of its own
        await child.instruct(rest or "Find the bug")
        async with child.tool_call("grep", kind="search") as call:
            await call.write("song.py:7")
            await call.set_raw_output({"found": [{"file": "song.py", "line": 7}]})
        await child.report("It is in line 7.")
    await turn.say("Found it.")


# --- questions ---------------------------------------------------------------------------------------


class Trip(Struct):
    to: Annotated[str, Meta(title="Where to?", min_length=2)]
    people: Annotated[int, Meta(ge=1, le=9)] = 1
    by: Literal["train", "bus"] = "train"
    meals: bool = False


@agent.command("ask", description="Ask you to fill in a form")
async def ask(turn: AgentTurn, rest: str) -> None:
    if not turn.can_ask():
        await turn.say("Nobody here takes forms.")
        return
    async with turn.tool_call("Book a trip") as call:
        await call.pause()
        asked = await call.ask("Which trip shall it be?", Trip)
        await call.resume()
        if (trip := asked.value) is not None:  # a Trip, where it was accepted
            await call.write(f"{trip.people} to {trip.to} by {trip.by}")


@agent.command("visit", description="Ask you to visit an address")
async def visit(turn: AgentTurn, rest: str) -> None:
    if not turn.can_ask("url"):
        await turn.say("Nobody here visits addresses.")
        return
    consent = await turn.ask_url("Please pay for the trip", "https://example.org/pay?order=1")
    if consent.accepted:
        await consent.complete()  # once it was paid; that is asked there, not here
    await turn.say(f"The visit: {consent.action}.")


# --- what the client has -----------------------------------------------------------------------------


@agent.command("files", description="Use files and terminals of the client (v1)")
async def files(turn: AgentTurn, rest: str) -> None:
    client, song = turn.client, f"{turn.session.cwd}/song.txt"
    if not (client.can_read and client.can_write and client.can_run):
        await turn.say("This client keeps its files and terminals to itself.")
        return
    async with turn.tool_call("Write song.txt", kind="edit") as call:
        if await call.request_permission():
            await client.write(song, "la la\nla la la\n")
            async with client.terminal(["wc", "-w", "song.txt"], call=call) as terminal:
                await terminal.wait()
            await turn.say(f"The second line: {await client.read(song, line=2, limit=1)}")


@agent.command("mcp", description="List the tools of the client's MCP servers")
async def mcp(turn: AgentTurn, rest: str) -> None:
    for server in turn.session.mcp_servers:
        if isinstance(server, v2.McpServerAcp):  # reached over the connection that is there anyway
            async with turn.session.mcp(server.name) as its:
                tools = (await its.call("tools/list"))["tools"]
            await turn.say(f"{server.name} has {', '.join(tool['name'] for tool in tools)}.")
        elif isinstance(server, v2.McpServerStdio):
            await turn.say(f"{server.name} is to be started with {server.command}.")


# --- the session -------------------------------------------------------------------------------------


@agent.command("status", description="Give the session a title, and tell what it uses", hint="a title")
async def status(turn: AgentTurn, rest: str) -> None:
    turn.count_request(limit=10)  # the eleventh would end the turn as max_turn_requests
    turn.count_tokens(input=1000, output=200, thought=50)  # of this turn
    await turn.session.report_usage(used=1250, size=200_000, cost=0.04)  # of the session so far
    await turn.session.set_title(rest or "A song for two voices")
    await turn.session.notice("The cache is cold", description="It warms up.", severity="warning")


@agent.command("compact", description="Shorten what it keeps in mind")
async def compact(turn: AgentTurn, rest: str) -> None:
    async with turn.session.compaction() as compaction:
        await compaction.write("We sang.")


@agent.command("code", description="Just do it, from now on")
async def code(turn: AgentTurn, rest: str) -> None:
    await turn.session.set_config("mode", "code")  # everyone who follows is told
    await turn.session.set_commands(["edit", "run"])  # this session offers no others any more


@agent.command("stop", description="End the turn for a reason", hint="refusal, max_tokens, _mine, …")
async def stop(turn: AgentTurn, rest: str) -> str:
    if rest == "max_tokens":
        turn.stop(rest)  # from however deep it is called
    return rest or "refusal"


# --- logging in --------------------------------------------------------------------------------------

users: set[str] = set()


class Account(Struct):
    user: str


@agent.on_login("name", name="By name", description="No secret is asked for")
async def log_in(login: Login) -> None:
    asked = await login.ask("Who are you?", Account)
    if asked.value is None:
        raise AuthRequired("A name is needed")
    users.add(asked.value.user)
    login.accounts = [v2.AuthAccount(label=asked.value.user)]


@agent.terminal_login("console", name="In a terminal", args=["--login"])
async def log_in_there() -> None:
    print(f"Welcome, {await asyncio.to_thread(input, 'Who are you? ')}.")  # and keep it, for the next start


@agent.on_logout
async def log_out(login: Login | None) -> None:
    users.clear()


@agent.command("private", description="Greet those who have logged in")
async def private(turn: AgentTurn, rest: str) -> None:
    if not users:
        raise AuthRequired("Log in first")  # the turn ends with that error
    await turn.say(f"Good evening, {', '.join(users)}.")


if __name__ == "__main__":
    agent.run()
