"""`examples/complete_agent.py` in both versions: what a client sees of it.

Most tests have the agent in their own process: to start one takes longer than all they do with it."""

from __future__ import annotations

import asyncio
import json
import runpy
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from antiphon import CallFailed
from antiphon.client import (
    AcpServer,
    ClientSession,
    ClientTurn,
    Elicitation,
    McpRequest,
    Permission,
    Permissions,
    ProcessOptions,
    TurnEnd,
    Workspace,
    connect,
)
from antiphon.content import embedded, image, link
from antiphon.schema import v2
from tests.options import connect_options

EXAMPLE = Path(__file__).parents[2] / "examples" / "complete_agent.py"
COMMAND = [sys.executable, str(EXAMPLE)]
DEADLINE = 60.0

pytestmark = pytest.mark.parametrize("version", [1, 2])


class Answers(Permissions):
    """Allows what is asked for, and fills in what it is told to."""

    elicits = ("form", "url")

    def __init__(self, *, yes: bool = True, **values: Any) -> None:
        super().__init__(allow="all" if yes else ())
        self.values = values
        self.asked: list[Permission] = []
        self.elicited: list[Elicitation] = []

    async def decide(self, permission: Permission) -> Any:
        self.asked.append(permission)
        return await super().decide(permission)

    async def elicit(self, elicitation: Elicitation) -> Any:
        self.elicited.append(elicitation)
        return elicitation.accept(**self.values)


@asynccontextmanager
async def opened(
    version: int, *, process: bool = False, cwd: Path | str = "/", answers: Any = None, **options: Any
) -> AsyncIterator[ClientSession]:
    """A session of a new copy of the agent: in this process, or in one of its own, which writes no errors."""
    written: list[str] = []
    target = COMMAND if process else runpy.run_path(str(EXAMPLE))["agent"]
    at_start = {"on_stderr": written.append} if process else {}
    if "workspace" in options:
        at_start["workspace"] = options.pop("workspace")
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(asyncio.timeout(DEADLINE))
        client = await stack.enter_async_context(
            connect(target, version=version, answers=answers, **connect_options(**at_start))
        )
        yield await client.new_session(cwd, **options)
    assert written == []


async def prompted(session: ClientSession, *content: Any, **options: Any) -> tuple[ClientTurn, TurnEnd]:
    turn = await session.prompt(*content, **options)
    return turn, await turn.drained()


async def until(turn: ClientTurn, condition: Callable[[], object]) -> None:
    """Wait for an update by which it holds."""
    if condition():
        return
    async for _ in turn.updates():
        if condition():
            return
    raise AssertionError("the turn ended before that")


async def met(session: ClientSession, condition: Callable[[], object]) -> None:
    """Wait for something that belongs to no turn, or to another session's."""
    events = session.events()
    while not condition():
        await anext(events)


def shown(session: ClientSession) -> str:
    """What the first tool call shows: its terminal, or in v1 the text of it."""
    if session.terminals:
        return session.terminals[0].text
    blocks = [getattr(part, "content", None) for call in session.tool_calls for part in call.content]
    return "".join(getattr(block, "text", "") for block in blocks)


def value(session: ClientSession, id: str) -> Any:
    return getattr(session.config[id], "current_value", None)


# --- words -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("process", [True, False], ids=["process", "memory"])
async def test_a_prompt_is_thought_about_and_answered_in_a_stream(version: int, process: bool) -> None:
    async with opened(version, process=process) as session:
        turn, end = await prompted(session, "hello")
        assert turn.text == "You said: hello"
        assert end.stop_reason == "end_turn"
        [thought] = [message for message in session.messages if message.type == "thought"]
        assert thought.text == "What is this?"


async def test_every_kind_of_content_is_taken(version: int) -> None:
    async with opened(version) as session:
        turn, _ = await prompted(
            session,
            "this",
            image(b"GIF", "image/gif"),
            v2.AudioContent(data="AAAA", mime_type="audio/wav"),
            link("file:///song.py"),
            embedded("file:///all.txt", "all of it"),
        )
        assert turn.text == (
            "You said: this[image/gif][audio/wav][a link to song.py][all of file:///all.txt]"
        )


async def test_a_message_is_replaced(version: int) -> None:
    async with opened(version) as session:
        turn, _ = await prompted(session, "/say")
        assert turn.text == "It is a feature.\n\nWait."


async def test_a_message_holds_an_image_a_link_and_a_resource_with_annotations(version: int) -> None:
    async with opened(version) as session:
        await prompted(session, "/draw")
        text, picture, more, file = session.messages[-1].content
        assert isinstance(text, v2.TextContent)
        assert isinstance(picture, v2.ImageContent)
        assert picture.mime_type == "image/gif"
        assert picture.annotations is not None
        assert (picture.annotations.audience, picture.annotations.priority) == (["user"], 0.9)
        assert isinstance(more, v2.ResourceLink)
        assert (more.uri, more.name, more.title) == ("https://example.org/dots", "dots", "More dots")
        assert isinstance(file, v2.EmbeddedResource)
        assert file.resource == v2.TextResourceContents(
            uri="file:///dots.txt", text=". . .", mime_type="text/plain"
        )


async def test_a_system_prompt_is_handed_on(version: int) -> None:
    async with opened(version, system_prompt="Answer in verse") as session:
        turn, _ = await prompted(session, "/who")
        assert turn.text.startswith("I was told also: Answer in verse\n\nI work in / with")


async def test_a_client_sets_where_the_models_are(version: int) -> None:
    async with opened(version) as session:
        turn, _ = await prompted(session, "/model")
        assert turn.text == "anthropic at https://api.example.org"
        await session.client.providers.set("main", api_type="openai", base_url="http://127.0.0.1:1")
        turn, _ = await prompted(session, "/model")
        assert turn.text == "openai at http://127.0.0.1:1"
        await session.client.providers.disable("main")
        turn, _ = await prompted(session, "/model")
        assert turn.text == "Nowhere."


# --- work --------------------------------------------------------------------------------------------


async def test_a_plan_is_followed(version: int) -> None:
    async with opened(version) as session:
        turn, _ = await prompted(session, "/plan")
        plans = [update.plan async for update in turn.updates() if isinstance(update, v2.PlanUpdate)]
        states = [[str(entry.status) for entry in plan.entries] for plan in plans]  # type: ignore[union-attr]
        assert states[0] == ["pending"] * 3
        assert states[1] == ["completed", "in_progress", "pending"]
        assert states[-1] == ["completed"] * 3
        assert session.plans[0].latest.plan == plans[-1]


@pytest.mark.parametrize("yes", [True, False])
async def test_an_edit_shows_its_diff_and_asks_first(version: int, yes: bool) -> None:
    answers = Answers(yes=yes)
    async with opened(version, answers=answers) as session:
        await prompted(session, "/edit")
        [call], [asked] = session.tool_calls, answers.asked
        assert (call.title, call.kind, call.status) == (
            "Edit song.py",
            "edit",
            "completed" if yes else "failed",
        )
        assert call.raw_input == {"path": "song.py"}
        assert asked.tool_call is call
        [shown] = call.content
        assert isinstance(shown, v2.Diff)
        assert "song.py" in json.dumps(_plain(shown))


async def test_a_command_runs_in_a_terminal_of_its_size_and_knows_its_trace(version: int) -> None:
    trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    answers = Answers()
    async with opened(version, process=True, answers=answers) as session:
        command = "/run stty size <&1; echo $TRACEPARENT; exit 3"
        await prompted(session, command, meta={"traceparent": trace})
        [call], [asked] = session.tool_calls, answers.asked
        assert call.status == "failed"  # as its exit code is not 0
        assert asked.request.meta is not None
        assert asked.request.meta["traceparent"] == trace
        assert f"24 80 {trace}" in " ".join(shown(session).split())
        if version == 2:
            [terminal] = session.terminals
            assert terminal.size == v2.TerminalSize(cols=80, rows=24)
            assert terminal.exit_status == v2.TerminalExitStatus(exit_code=3)


async def test_a_terminal_is_cancelled_alone(version: int) -> None:
    async with opened(version, answers=Answers()) as session:
        turn = await session.prompt("/run echo up; exec sleep 60")
        await until(turn, lambda: "up" in shown(session))
        if version == 1:  # only the turn as a whole
            await turn.cancel()
            assert (await turn.drained()).cancelled
            return
        await session.cancel_terminal(session.terminals[0].id)
        assert (await turn.drained()).stop_reason == "end_turn"
        assert session.tool_calls[0].status == "completed"


async def test_it_is_steered_and_then_cancelled(version: int) -> None:
    async with opened(version, process=True) as session:
        turn = await session.prompt("/count")
        await until(turn, lambda: session.tool_calls and session.tool_calls[0].content)
        await session.prompt("faster!", delivery="steer")
        await until(turn, lambda: "(faster!)" in json.dumps(_plain(session.tool_calls[0].content)))
        if version == 2:
            await session.cancel_tool_call(session.tool_calls[0].id)
        else:
            await turn.cancel()
        end = await turn.drained()
        assert end.stop_reason == ("end_turn" if version == 2 else "cancelled")
        assert session.tool_calls[0].status == ("cancelled" if version == 2 else "failed")
        assert session.messages[-1].text.startswith("I stopped at ")


async def test_work_goes_on_in_the_background_and_opens_a_turn(version: int) -> None:
    async with opened(version) as session:
        turn, _ = await prompted(session, "/build")
        assert turn.text == "I am building; ask me anything meanwhile."
        await met(session, lambda: session.tool_calls[0].final)
        assert session.messages[-1].text == "The build is done."
        assert session.tool_calls[0].status == "completed"
        assert "step 3 of 3" in json.dumps(_plain(session.tool_calls[0].content))


async def test_a_subagent_works_in_a_session_of_its_own(version: int) -> None:
    async with opened(version) as session:
        turn, _ = await prompted(session, "/delegate Look around")
        assert turn.text == "Found it."
        [child] = session.subagents
        assert (child.title, child.state) == ("Researcher", "idle")
        await met(child.session, lambda: any(call.final for call in child.session.tool_calls))
        assert [call.title for call in child.session.tool_calls] == ["grep"]
        assert [note.text for note in session.session_messages] == ["Look around", "It is in line 7."]


# --- questions ---------------------------------------------------------------------------------------


async def test_a_form_is_asked_for_while_its_tool_call_pauses(version: int) -> None:
    answers = Answers(to="Ulm", people=2)
    async with opened(version, answers=answers) as session:
        turn, _ = await prompted(session, "/ask")
        [asked], [call] = answers.elicited, session.tool_calls
        assert [field.name for field in asked.fields] == ["to", "people", "by", "meals"]
        assert asked.tool_call is call
        assert "2 to Ulm by train" in json.dumps(_plain(call.content))
        states = [getattr(update, "status", None) async for update in turn.updates()]
        assert ("paused" in states) is (version == 2)


async def test_a_form_that_is_declined_changes_nothing(version: int) -> None:
    class Declines(Answers):
        async def elicit(self, elicitation: Elicitation) -> Any:
            return elicitation.decline()

    async with opened(version, answers=Declines()) as session:
        await prompted(session, "/ask")
        assert session.tool_calls[0].status == "completed"
        assert session.tool_calls[0].content == []


async def test_an_address_is_visited(version: int) -> None:
    answers = Answers()
    async with opened(version, answers=answers) as session:
        turn, _ = await prompted(session, "/visit")
        assert turn.text == "The visit: accept."
        [asked] = answers.elicited
        assert (asked.host, asked.url) == ("example.org", "https://example.org/pay?order=1")
        assert await asked.completed()


# --- what the client has -----------------------------------------------------------------------------


async def test_files_and_terminals_of_the_client_are_used(version: int, tmp_path: Path) -> None:
    async with opened(version, cwd=tmp_path, answers=Answers(), workspace=Workspace()) as session:
        turn, _ = await prompted(session, "/files")
        if version == 2:  # has none of it
            assert turn.text == "This client keeps its files and terminals to itself."
            return
        assert turn.text.strip() == "The second line: la la la"
        assert (tmp_path / "song.txt").read_text() == "la la\nla la la\n"
        assert session.terminals[0].text.split() == ["5", "song.txt"]


async def test_mcp_servers_are_used(version: int) -> None:
    async def clock(request: McpRequest) -> Any:
        assert request.method == "tools/list"
        return {"resultType": "complete", "tools": [{"name": "now"}, {"name": "later"}]}

    servers = [
        AcpServer("clock", clock),
        v2.McpServerStdio(name="files", command="/bin/files", args=[], env=[]),
    ]
    async with opened(version, mcp_servers=servers) as session:
        turn, _ = await prompted(session, "/mcp")
        assert turn.text == "clock has now, later.\n\nfiles is to be started with /bin/files."


# --- the session -------------------------------------------------------------------------------------


async def test_options_are_chosen_and_refused(version: int) -> None:
    async with opened(version, answers=Answers()) as session:
        assert list(session.config) == ["mode", "loud", "model"]
        with pytest.raises(CallFailed, match="does not ask first"):
            await session.set_config("model", "deep")
        await session.set_config("mode", "code")
        await session.set_config("model", "deep")
        await session.set_config("loud", True)
        assert (value(session, "model"), value(session, "loud")) == ("deep", True)
        turn, _ = await prompted(session, "hello")
        assert turn.text == "You said: HELLO"


async def test_the_agent_changes_an_option_and_its_commands(version: int) -> None:
    answers = Answers()
    async with opened(version, answers=answers) as session:
        await met(session, lambda: session.commands)  # v1 has them in an update
        assert len(session.commands) == 19
        await (await session.command("code")).drained()
        assert value(session, "mode") == "code"
        assert _names(session.commands) == ["edit", "run"]
        await (await session.command("edit")).drained()
        assert session.tool_calls[0].status == "completed"
        assert answers.asked == []
        turn, _ = await prompted(session, "/plan")  # a prompt like any other now
        assert turn.text == "You said: /plan"


async def test_title_usage_and_a_notice_are_told(version: int) -> None:
    async with opened(version) as session:
        turn, end = await prompted(session, "/status Numbers")
        assert session.title == "Numbers"
        assert session.usage is not None
        assert (session.usage.used, session.usage.size) == (1250, 200_000)
        assert session.usage.cost == v2.Cost(amount=0.04, currency="USD")
        assert end.usage is not None
        assert (end.usage.input_tokens, end.usage.output_tokens, end.usage.total_tokens) == (1000, 200, 1250)
        notices = [update async for update in turn.updates() if isinstance(update, v2.Notice)]
        assert [(one.severity, one.title) for one in notices] == [("warning", "The cache is cold")]


async def test_a_compaction_has_a_summary(version: int) -> None:
    async with opened(version) as session:
        await prompted(session, "/compact")
        [compaction] = session.compactions
        assert compaction.status == "completed"
        assert compaction.summary == [v2.TextContent(text="We sang.")]


@pytest.mark.parametrize("reason", ["refusal", "max_tokens", "_mine"])
async def test_a_turn_ends_for_a_reason(version: int, reason: str) -> None:
    async with opened(version) as session:
        _, end = await prompted(session, f"/stop {reason}")
        if version == 1 and reason == "_mine":
            reason = "end_turn"  # v1 knows no others
        assert end.stop_reason == reason


async def test_what_is_private_needs_a_login(version: int) -> None:
    answers = Answers(user="Ann")
    async with opened(version, answers=answers) as session:
        client = session.client
        assert _names(client.auth_methods) == ["By name"]  # a terminal was not offered
        _, end = await prompted(session, "/private")
        assert end.error is not None
        assert end.error.code == -32000
        await client.login("name")
        assert [field.name for field in answers.elicited[0].fields] == ["user"]
        assert [account.label for account in (await client.auth_status()).accounts] == ["Ann"]
        turn, _ = await prompted(session, "/private")
        assert turn.text == "Good evening, Ann."
        await client.logout()
        _, end = await prompted(session, "/private")
        assert end.error is not None


async def test_a_login_in_a_terminal_is_a_start_of_its_own(version: int) -> None:
    async with (
        asyncio.timeout(DEADLINE),
        connect(COMMAND, version=version, process=ProcessOptions(terminal_login=True)) as client,
    ):
        assert _names(client.auth_methods) == ["By name", "In a terminal"]
        login = client.auth_methods[1]
        assert isinstance(login, v2.AuthMethodTerminal)
        pipes = {"stdin": asyncio.subprocess.PIPE, "stdout": asyncio.subprocess.PIPE}
        process = await asyncio.create_subprocess_exec(*COMMAND, *login.args, **pipes)
        said, _ = await process.communicate(b"Ann\n")
        assert (process.returncode, said) == (0, b"Who are you? Welcome, Ann.\n")


async def test_a_session_is_forked_and_titled_without_a_line_of_its_own(version: int) -> None:
    async with opened(version) as session:
        await prompted(session, "hello")
        fork = await session.fork()
        assert fork.messages[-1].text == "You said: hello"
        assert await fork.set_title("Mine") == "Mine"
        await prompted(fork, "/status Numbers")
        assert fork.title == "Mine"  # what the user chose stays


def _names(named: Sequence[Any]) -> list[str]:
    return [one.name for one in named]


def _plain(shown: Any) -> Any:
    from msgspec import to_builtins

    return to_builtins(shown)
