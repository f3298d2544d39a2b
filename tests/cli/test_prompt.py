"""`antiphon prompt` with pipes: what it says where, and the code it ends with."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from antiphon.cli.exit_codes import Exit
from antiphon.hub import catalogue
from tests.cli.command import ANTIPHON, COMPLETE, HERE, SHOWCASE, prompt, raw_agent
from tests.requirements.marks import requirement


def one_line(stderr: str) -> str:
    """What is told of a failure: one line, and nothing that only a programmer reads."""
    assert stderr.startswith("antiphon: ")
    assert stderr.count("\n") == 1
    assert "Traceback" not in stderr
    return stderr


def test_what_the_agent_says_goes_to_stdout_and_nothing_else_does() -> None:
    done = prompt("hello")
    assert done.returncode == Exit.DONE
    assert done.stdout.startswith("I am the rehearsal agent")
    assert done.stdout.endswith("`plan`\n")
    assert done.stderr == ""


def test_what_the_agent_does_goes_to_stderr_with_its_output_shortened() -> None:
    done = prompt("fix it", "--allow", "all", agent=SHOWCASE)
    assert done.returncode == Exit.DONE
    assert done.stdout.startswith("# The tests are green\n")
    assert done.stderr.splitlines() == [
        "~ The build is red, so I look at the tests first.",
        "☐ Look",
        "☐ Change",
        "☐ Test",
        "> Read song.py (read)",
        "  | line 1",
        "  | line 2",
        "  | line 3",
        "  | ⋮ 37 more lines",
        "✓ Read song.py",
        "> Edit song.py (edit)",
        "  | +++ /site/song.py",
        "  | @@ -1,2 +1,2 @@",
        "  |  def sing():",
        "  | -    pass",
        "  | +    return 1",
        "✓ Edit song.py",
        "> pytest -q (execute)",
        "  | ............",
        "  | 12 passed in 0.31s",
        "✓ pytest -q",
        "☑ Look",
        "☑ Change",
        "☑ Test",
    ]


@pytest.mark.parametrize("version", ["1", "2"])
@pytest.mark.parametrize(
    ("allow", "edited", "ran"),
    [("none", "✗", "✗"), ("read", "✗", "✗"), ("edit", "✓", "✗"), ("all", "✓", "✓")],
)
def test_allow_decides_by_the_kind_of_tool(allow: str, edited: str, ran: str, version: str) -> None:
    done = prompt("fix it", "--allow", allow, "--version", version, agent=SHOWCASE)
    assert f"{edited} Edit song.py" in done.stderr
    assert f"{ran} pytest -q" in done.stderr
    assert ("because of --allow " + allow in done.stderr) == (ran == "✗")


def test_where_nobody_can_be_asked_everything_is_rejected_and_that_is_said_once() -> None:
    done = prompt("fix it", agent=SHOWCASE)
    assert done.stderr.count("antiphon: rejected") == 2
    assert done.stderr.count("there is no terminal to ask at") == 1


def test_asking_without_a_terminal_is_refused() -> None:
    done = prompt("hello", "--allow", "ask")
    assert (done.returncode, done.stdout) == (Exit.USAGE, "")
    assert "needs a terminal" in one_line(done.stderr)


@pytest.mark.parametrize(
    ("text", "version", "code"),
    [
        ("refusal", "1", Exit.REFUSAL),
        ("max_tokens", "2", Exit.MAX_TOKENS),
        ("max_turn_requests", "1", Exit.MAX_TURN_REQUESTS),
        ("fail", "1", Exit.ERROR),
    ],
)
def test_the_exit_code_says_how_the_turn_ended(text: str, version: str, code: Exit) -> None:
    done = prompt(text, "--version", version, agent=SHOWCASE)
    assert done.returncode == code
    if text == "fail":  # the error on the wire says nothing, and the agent's stderr is that of the user
        assert done.stderr.startswith("antiphon: showcase failed: Internal error (-32603)\n  Traceback")
        assert done.stderr.endswith("  RuntimeError: secret\n")


# --- the prompt itself ------------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", [["-"], []])
def test_the_text_can_come_from_stdin(arguments: list[str]) -> None:
    assert "Sentence 2 of 2" in prompt(*arguments, text="stream 2\n").stdout


def test_the_text_can_come_from_stdin_also_with_an_agent() -> None:
    assert prompt(text="blocks", agent=SHOWCASE).stdout == "TextContent\n"


def test_a_file_is_attached_as_the_agent_can_take_it(tmp_path: Path) -> None:
    (tmp_path / "song.txt").write_text("la")
    done = prompt("blocks", "--file", str(tmp_path / "song.txt"), agent=SHOWCASE)
    assert done.stdout == "TextContent, ResourceLink\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["one", "claude"], "-- claude"),
        (["-"], "empty"),
        (["hello", "--"], "no AGENT"),
        (["hello", "--cwd", "/nowhere/at/all"], "does not exist"),
        (["hello", "--timeout", "0"], "--timeout"),
    ],
)
def test_a_wrong_command_line_is_explained(arguments: list[str], said: str) -> None:
    done = prompt(*arguments)
    assert (done.returncode, done.stdout) == (Exit.USAGE, "")
    assert said in done.stderr


def test_the_session_works_in_the_folder_that_is_given(tmp_path: Path) -> None:
    (tmp_path / "here.txt").write_text("")
    assert "here.txt" in prompt("list", "--cwd", str(tmp_path)).stderr


@pytest.mark.parametrize("version", ["1", "2"])
def test_what_happens_beside_words_and_tools_is_told(version: str) -> None:
    def told(command: str) -> list[str]:
        done = prompt(command, "--version", version, agent=COMPLETE)
        assert done.returncode == Exit.DONE
        return done.stderr.splitlines()

    assert told("/delegate find it") == [
        "antiphon: subagent Researcher: working",
        "antiphon: to Researcher: find it",
        "antiphon: from Researcher: It is in line 7.",
        "antiphon: subagent Researcher: done",
    ]
    assert told("/status A song") == [
        "antiphon: the session has the title A song",
        "antiphon: The cache is cold: It warms up.",
        "antiphon: context <1 % full, 0.04 USD",
    ]
    assert told("/compact") == [
        "antiphon: compacting the context",
        "antiphon: context compacted: We sang.",
    ]
    assert told("/code") == ["antiphon: Mode: Just do it"]


NOTICES = ["before the session", "behind the session", "before the turn", "in the turn", "behind the turn"]


@pytest.mark.parametrize("version", ["1", "2"])
def test_notices_outside_of_a_turn_are_shown(version: str) -> None:
    agent = [sys.executable, str(HERE / "agents" / "noticing.py"), version]
    done = prompt("go", agent=agent)
    assert (done.returncode, done.stdout) == (Exit.DONE, "Hello.\n")
    assert done.stderr.splitlines() == [f"antiphon: {title}" for title in NOTICES]
    lines = [json.loads(line) for line in prompt("go", "--json", agent=agent).stdout.splitlines()]
    told = [line["update"]["title"] for line in lines if line.get("update", {}).get("title") in NOTICES]
    assert told == NOTICES


@pytest.mark.parametrize("version", ["1", "2"])
@pytest.mark.parametrize("form", [[], ["--json"]])
def test_a_form_that_nobody_can_fill_in_is_told_and_cancelled(version: str, form: list[str]) -> None:
    done = prompt("/ask", "--version", version, *form, agent=COMPLETE)
    assert done.returncode == Exit.DONE
    asked = "antiphon: complete asks: Which trip shall it be?"
    assert f"{asked}; cancelled, because there is no terminal to ask at\n" in done.stderr
    visit = prompt("/visit", "--version", version, agent=COMPLETE)
    assert visit.stdout == "The visit: cancel.\n"


@pytest.mark.parametrize("version", ["1", "2"])
def test_blocks_that_are_no_text_have_lines_of_their_own(version: str) -> None:
    done = prompt("/draw", "--version", version, agent=COMPLETE)
    assert done.stdout.splitlines() == [
        "A dot: ",
        "[image/gif, 36 bytes]",
        "More dots: <https://example.org/dots>",
        "file:///dots.txt:",
        "",
        "```",
        ". . .",
        "```",
    ]


@requirement("PROMPT-V1-08")
@pytest.mark.parametrize("version", ["1", "2"])
def test_a_refusal_says_that_the_prompt_is_forgotten_in_plain_text_and_json(
    version: str,
) -> None:
    said = "antiphon: the agent drops this prompt and its answer; they are not part of the next prompt\n"
    plain = prompt("refusal", "--version", version, agent=SHOWCASE)
    assert (plain.returncode, plain.stderr) == (Exit.REFUSAL, said)
    json_lines = prompt("refusal", "--json", "--version", version, agent=SHOWCASE)
    assert (json_lines.returncode, json_lines.stderr) == (Exit.REFUSAL, said)
    lines = [json.loads(line) for line in json_lines.stdout.splitlines()]
    said_by_user = [
        line["update"]["messageId"]
        for line in lines
        if line["kind"] == "update" and line["update"]["sessionUpdate"] == "user_message"
    ]
    assert lines[-1]["forgotten"] == said_by_user != []


# --- JSON -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [1, 2])
def test_json_has_one_event_a_line_in_order_and_the_end_last(version: int) -> None:
    done = prompt("fix it", "--json", "--allow", "all", "--version", str(version), agent=SHOWCASE)
    assert (done.returncode, done.stderr) == (Exit.DONE, "")
    first, *events, last = [json.loads(line) for line in done.stdout.splitlines()]
    assert (first["kind"], first["protocolVersion"]) == ("session", version)
    numbers = [event["seq"] for event in (first, *events, last)]
    assert numbers == sorted(set(numbers))
    assert {event["kind"] for event in events} == {"update", "question"}
    of_turn = [event for event in events if event["turn"]]
    updates = [event["update"]["sessionUpdate"] for event in of_turn if event["kind"] == "update"]
    assert {"user_message", "state_update", "agent_thought_chunk", "tool_call_update"} <= set(updates)
    questions = [(event["id"], event["state"]) for event in of_turn if event["kind"] == "question"]
    assert [state for _, state in questions] == ["open", "answered", "open", "answered"]
    assert (last["kind"], last["stopReason"], last["error"]) == ("end", "end_turn", None)
    assert last["usage"]["totalTokens"] == 1292


@pytest.mark.parametrize("agent", [["no-such-agent"], raw_agent("dies")])
def test_json_has_an_end_also_where_something_failed(agent: list[str]) -> None:
    done = prompt("hello", "--json", agent=agent)
    *_, last = [json.loads(line) for line in done.stdout.splitlines()]
    assert (last["kind"], last["stopReason"], last["exit"]) == ("end", "error", done.returncode)
    assert [json.loads(line)["kind"] for line in done.stdout.splitlines()].count("end") == 1
    one_line(done.stderr)


# --- what goes wrong --------------------------------------------------------------------------------------


def test_an_unknown_agent_is_named_in_one_line() -> None:
    done = prompt("hello", agent=["no-such-agent", "--acp"])
    assert (done.returncode, done.stdout) == (Exit.NOT_FOUND, "")
    assert "no-such-agent" in one_line(done.stderr)
    assert "did you mean claude?" in prompt("hello", agent=["claud"]).stderr


def test_a_known_agent_that_is_not_installed_says_how_to_install_it(tmp_path: Path) -> None:
    known = catalogue()["codex"]
    done = prompt("hello", agent=["codex"], PATH=str(tmp_path))
    assert done.returncode == Exit.NOT_FOUND
    assert f"To install it, install Node.js, then run `{known.install}`" in one_line(done.stderr)


def test_a_known_agent_that_is_installed_is_started_by_its_name(tmp_path: Path) -> None:
    program = tmp_path / "codex-acp"
    program.write_text(f"#!/bin/sh\nexec {' '.join(raw_agent('fine'))}\n")
    program.chmod(0o755)
    assert prompt("hello", agent=["codex"], PATH=f"{tmp_path}:/usr/bin:/bin").stdout == "Hello.\n"


def test_a_file_that_cannot_be_executed_is_no_agent(tmp_path: Path) -> None:
    (tmp_path / "agent").write_text("")
    done = prompt("hello", agent=[str(tmp_path / "agent")])
    assert done.returncode == Exit.NOT_EXECUTABLE
    one_line(done.stderr)


@pytest.mark.parametrize(
    ("how", "arguments", "code", "said"),
    [
        (
            "dies-at-start",
            [],
            Exit.ERROR,
            "exited with code 3 (last line on stderr: Error: Cannot find module",
        ),
        ("dies", [], Exit.ERROR, "exited with code 3 (last line on stderr: Error: out of stories)"),
        ("old", [], Exit.ERROR, "does not speak ACP 1 or 2: only version 0"),
        ("new", [], Exit.ERROR, "answered protocol version 7"),
        ("fine", ["--version", "2"], Exit.ERROR, "does not speak ACP 2"),
        ("silent", ["--timeout", "0.5"], Exit.TIMEOUT, "was not done after 0.5 s (starting)"),
    ],
)
def test_what_goes_wrong_is_told_in_one_line(how: str, arguments: list[str], code: Exit, said: str) -> None:
    done = prompt("hello", *arguments, agent=raw_agent(how))
    assert done.returncode == code
    assert said in one_line(done.stderr)
    assert done.stdout == ("Once upon a time\n" if how == "dies" else "")


@pytest.mark.parametrize(
    ("how", "said"), [("login", "Authentication required"), ("login-late", "Your login has expired")]
)
def test_a_login_that_is_needed_is_told_with_what_to_do(how: str, said: str) -> None:
    done = prompt("hello", agent=raw_agent(how))
    assert (done.returncode, done.stdout) == (Exit.LOGIN, "")
    assert done.stderr == (
        f"antiphon: raw requires a login: {said}\n  Log in with the agent's own command, then try again.\n"
    )


def test_a_turn_that_takes_too_long_is_cancelled() -> None:
    done = prompt("hang", "--timeout", "5", agent=SHOWCASE)
    assert (done.returncode, done.stdout) == (Exit.TIMEOUT, "I wait.\n")
    assert "was not done after 5 s" in one_line(done.stderr)


def test_an_agent_that_cannot_be_reached_is_told_in_one_line() -> None:
    done = prompt("hello", agent=["ws://127.0.0.1:9/acp"])
    assert done.returncode == Exit.ERROR
    assert "ws://127.0.0.1:9/acp" in one_line(done.stderr)


def test_a_reader_that_has_had_enough_ends_it_without_a_word() -> None:
    command = [*ANTIPHON, "prompt", "stream 100000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.read(8) == b"Sentence"
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(20) == Exit.ERROR


# --- help -------------------------------------------------------------------------------------------------


def test_the_help_lists_every_known_agent_and_every_exit_code() -> None:
    shown = prompt("--help").stdout
    for agent in catalogue().values():
        assert f"{agent.name} " in shown
    for code in Exit:
        assert f"{int(code)} " in shown
        assert code.meaning in " ".join(shown.split())


@pytest.mark.parametrize("arguments", [["--help"], ["prompt", "--help"]])
def test_help_loads_neither_the_client_nor_rich(arguments: list[str]) -> None:
    code = (
        "import sys\nfrom antiphon.cli import main\n"
        f"main({arguments!r}, standalone_mode=False)\nprint(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.splitlines()[-1].split())
    assert not {"rich", "antiphon.client", "antiphon.agent", "antiphon.schema.v2"} & loaded
