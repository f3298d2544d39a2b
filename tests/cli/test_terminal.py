"""`antiphon prompt` on a real terminal: what is seen there, questions, and Ctrl-C."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from antiphon.cli.exit_codes import Exit
from tests.cli.command import (
    ANTIPHON,
    COMPLETE,
    HERE,
    SHOWCASE,
    Terminal,
    ended,
    environment,
    raw_agent,
    unstyled,
)
from tests.peers.agents import Launch
from tests.requirements.marks import requirement

COLUMNS, ROWS = 80, 70
TMUX = shutil.which("tmux")
OVER = "THE-END"


def meaningful(screen: str) -> str:
    """Without what differs from run to run: times, and the note about an agent that starts slowly."""
    screen = re.sub(r" · \d+\.\d s\b", "", screen)
    screen = re.sub(r"^– waiting for .+ to start\n+", "", screen, flags=re.M)
    return "\n".join(line.rstrip() for line in screen.strip().splitlines()) + "\n"


@pytest.fixture
def tmux(tmp_path: Path) -> Iterator[list[str]]:
    """A tmux server of this test's own, as the beginning of a command."""
    assert TMUX is not None
    server = [TMUX, "-u", "-f", "/dev/null", "-S", str(tmp_path / "tmux")]
    yield server
    subprocess.run([*server, "kill-server"], check=False, capture_output=True)


SCENES: dict[str, tuple[list[str], list[tuple[str, str]]]] = {
    "help": (["hello"], []),
    "plan": (["plan"], []),
    "run": (["run seq 30"], [(r"2 n Reject\s+›", "1")]),
    "rejected": (["run ls"], [(r"2 n Reject\s+›", "n")]),
    "showcase": (
        ["fix it", "--", *SHOWCASE],
        [(r"2 n Reject\s+›", "y"), (r"3 n Do not run it\s+›", "9"), (r"3 n Do not run it\s+›", "2")],
    ),
    "blocks": (["/draw", "--", *COMPLETE], []),
    "delegate": (["/delegate find it", "--", *COMPLETE], []),
    "status": (["/status A song", "--", *COMPLETE], []),
    "compact": (["/compact", "--", *COMPLETE], []),
    "option": (["/code", "--", *COMPLETE], []),
    "form": (
        ["/ask", "--", *COMPLETE],
        [
            (r"2 or more characters\s+›", "U"),
            (r"fewer than 2 characters\s+Where to\?\s+›", "Ulm"),
            (r"Enter for 1\s+›", "12"),
            (r"more than 9\s+people\s+›", "2"),
            (r"2 bus\s+›", "2"),
            (r"Enter for n\s+›", ""),
            (r"starts again\s+›", "r"),
            (r"2 or more characters\s+›", "Rom"),
            (r"Enter for 1\s+›", ""),
            (r"2 bus\s+›", "train"),
            (r"Enter for n\s+›", "y"),
            (r"starts again\s+›", ""),
        ],
    ),
    "visit": (["/visit", "--", *COMPLETE], [(r"y or n\s+›", "y")]),
}


@pytest.mark.parametrize("scene", SCENES)
def test_a_turn_is_seen_as_expected(scene: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    arguments, answers = SCENES[scene]
    at = arguments.index("--") if "--" in arguments else len(arguments)
    command = [*ANTIPHON, "prompt", *arguments[:at], "--cwd", str(tmp_path), *arguments[at:]]
    expected = (HERE / "expected" / f"{scene}.txt").read_text()
    if TMUX is not None:
        server = request.getfixturevalue("tmux")
        assert meaningful(_seen_in_tmux(server, command, answers, tmp_path)) == expected
    else:
        _seen_in_order(command, answers, expected, tmp_path)


def _seen_in_tmux(
    server: list[str],
    command: Sequence[str],
    answers: list[tuple[str, str]],
    folder: Path,
    *,
    columns: int = COLUMNS,
) -> str:
    """The screen at the end; a terminal of ours is attached to it, and types the answers."""
    script = f"{shlex.join(command)}; echo {OVER}; exec cat"
    subprocess.run(
        [*server, "new-session", "-d", "-x", str(columns), "-y", str(ROWS), script],
        check=True,
        env=environment(HOME=str(folder)),
    )
    subprocess.run([*server, "set", "status", "off"], check=True)
    with Terminal([*server, "attach"], columns=columns, rows=ROWS) as terminal:
        for question, answer in answers:
            terminal.wait_for(question)
            terminal.type(f"{answer}\r")
        terminal.wait_for(OVER)
        capture = [*server, "capture-pane", "-p"]
        seen = subprocess.run(capture, check=True, capture_output=True, text=True).stdout
        return seen.partition(OVER)[0]


def _seen_in_order(
    command: Sequence[str], answers: list[tuple[str, str]], expected: str, folder: Path
) -> None:
    """Without tmux: every expected line was shown, in this order."""
    with Terminal(command, columns=COLUMNS, rows=ROWS, HOME=str(folder)) as terminal:
        for question, answer in answers:
            terminal.wait_for(question)
            terminal.type(f"{answer}\r")
        assert terminal.wait() == Exit.DONE
        shown = iter(meaningful(unstyled(terminal.raw)).splitlines())
    for line in filter(None, expected.splitlines()):
        assert any(line.strip() in other for other in shown), line


def test_a_real_agent_is_seen_as_expected(
    tmp_path: Path, request: pytest.FixtureRequest, real_agent: Callable[[str], Launch]
) -> None:
    """Must show 5: Claude's, offline, with a model that always says the same."""
    launch = real_agent("claude-agent-acp")
    command = [*ANTIPHON, "prompt", "TOOL", "--cwd", str(launch.cwd), "--", *launch.command]
    answers = [(r"3 n No\s+›", "y")]
    expected = (HERE / "expected" / "claude.txt").read_text()
    if TMUX is not None:
        server = request.getfixturevalue("tmux")
        # Wide enough for the title of the call beside however many seconds it took.
        seen = _seen_in_tmux(server, command, answers, launch.folder, columns=100)
        assert meaningful(seen) == expected
    else:
        _seen_in_order(command, answers, expected, launch.folder)


@requirement("CONT-06")
@pytest.mark.parametrize("version", ["1", "2"])
def test_text_is_rendered_as_markdown(version: str) -> None:
    with Terminal(
        [*ANTIPHON, "prompt", "fix it", "--allow", "all", "--version", version, "--", *SHOWCASE]
    ) as t:
        assert t.wait() == Exit.DONE
    assert re.search(r"\x1b\[1;4mThe tests are green", t.raw), "a heading, without its mark"
    assert re.search(r"\x1b\[1mone line\x1b", t.raw), "strong"
    assert re.search(r"\x1b\[3mtwice\x1b", t.raw), "emphasis"
    assert re.search(r"\x1b\[36msong\.py\x1b", t.raw), "code"
    shown = unstyled(t.raw)
    assert re.search(r" 1 once without the change\n\s+2 once with it", shown), "a list"
    assert re.search(r"\n  def sing\(voices: int\) -> str:", shown), "a block of code"
    assert "▌ One session, many voices." in shown, "a quotation"


@requirement("PROMPT-V1-08")
@pytest.mark.parametrize("version", ["1", "2"])
def test_a_refusal_says_that_the_prompt_is_forgotten(version: str) -> None:
    command = [*ANTIPHON, "prompt", "refusal", "--version", version, "--", *SHOWCASE]
    with Terminal(command, columns=100) as terminal:
        terminal.wait_for("✗ the agent refused")
        terminal.wait_for("drops this prompt and its answer")
        assert terminal.wait() == Exit.REFUSAL


@pytest.mark.parametrize("version", ["1", "2"])
@pytest.mark.parametrize(("typed", "said"), [("n", "decline"), ("\x04", "cancel"), ("what?", "accept")])
def test_an_address_is_shown_whole_and_visited_by_nobody_but_the_user(
    version: str, typed: str, said: str
) -> None:
    with Terminal([*ANTIPHON, "prompt", "/visit", "--version", version, "--", *COMPLETE]) as terminal:
        terminal.wait_for(r"https://example\.org/pay\?order=1\s+on the host example\.org")
        terminal.wait_for(r"y or n\s+›")
        terminal.type(typed if typed == "\x04" else f"{typed}\r")
        if typed == "what?":
            terminal.wait_for(r"y or n\?\s+›")
            terminal.type("yes\r")
        terminal.wait_for(f"The visit: {said}")
        assert terminal.wait() == Exit.DONE


def test_a_form_is_asked_for_also_where_nothing_is_painted() -> None:
    with Terminal([*ANTIPHON, "prompt", "/ask", "--", *COMPLETE], NO_COLOR="1") as terminal:
        for question, answer in (
            (r"Where to\?", "Ulm"),
            ("people", ""),
            ("bus", ""),
            ("meals", ""),
            ("Send", ""),
        ):
            terminal.wait_for(rf"{question}[^>]*> ")
            terminal.type(f"{answer}\r")
        terminal.wait_for("1 to Ulm by train")
        assert terminal.wait() == Exit.DONE


@pytest.mark.parametrize("version", ["1", "2"])
def test_ctrl_c_at_a_form_cancels_the_turn(version: str) -> None:
    with Terminal([*ANTIPHON, "prompt", "/ask", "--version", version, "--", *COMPLETE]) as terminal:
        terminal.wait_for(r"2 or more characters\s+›")
        terminal.type("\x03")
        terminal.wait_for("⊘ cancelled")
        assert terminal.wait() == Exit.CANCELLED
        assert "Traceback" not in terminal.raw


def test_the_end_of_input_at_a_form_and_a_no_behind_it_send_nothing() -> None:
    for typed, asked in (("\x04", r"2 or more characters\s+›"), ("n\r", r"starts again\s+›")):
        with Terminal([*ANTIPHON, "prompt", "/ask", "--", *COMPLETE]) as terminal:
            if typed == "n\r":
                for answer in ("Ulm", "", "", ""):
                    terminal.wait_for("› ")
                    terminal.type(f"{answer}\r")
            terminal.wait_for(asked)
            terminal.type(typed)
            terminal.wait_for("✓ done")
            assert terminal.wait() == Exit.DONE
            assert "to Ulm by" not in unstyled(terminal.raw)


@pytest.mark.parametrize("changes", [{"NO_COLOR": "1"}, {"TERM": "dumb"}, {"columns": 30}])
def test_without_colours_or_room_it_is_plain_text(changes: dict[str, object]) -> None:
    with Terminal([*ANTIPHON, "prompt", "plan"], **changes) as terminal:  # type: ignore[arg-type]
        assert terminal.wait() == Exit.DONE
        assert "\x1b" not in terminal.raw
        assert terminal.raw.endswith("☑ Listen\r\nAll three steps are done.\r\n")


@pytest.mark.parametrize("changes", [{}, {"NO_COLOR": "1"}])
def test_what_an_agent_says_cannot_control_the_terminal(changes: dict[str, str]) -> None:
    with Terminal([*ANTIPHON, "prompt", "escape", "--", *SHOWCASE], **changes) as terminal:
        assert terminal.wait() == Exit.DONE
        assert "owned" not in terminal.raw
        assert "plain red text" in unstyled(terminal.raw)


@pytest.mark.parametrize(("agent", "version"), [([], "2"), (["--", *SHOWCASE], "1")])
def test_ctrl_c_cancels_and_waits_for_the_confirmation(agent: list[str], version: str) -> None:
    text = "hang" if agent else "run sleep 600"
    command = [*ANTIPHON, "prompt", text, "--allow", "all", "--version", version, *agent]
    with Terminal(command) as terminal:
        terminal.wait_for(r"I wait\." if agent else r"◆ sleep 600")
        terminal.type("\x03")
        terminal.wait_for("cancelling; Ctrl-C again kills the agent")
        terminal.wait_for("⊘ cancelled")
        assert terminal.wait() == Exit.CANCELLED
        assert "Traceback" not in terminal.raw


def test_ctrl_c_at_a_question_cancels_the_turn() -> None:
    with Terminal([*ANTIPHON, "prompt", "run touch never"], NO_COLOR="1") as terminal:
        terminal.wait_for(r"Reject\s+[›>]")
        terminal.type("\x03")
        assert terminal.wait() == Exit.CANCELLED
        assert "Traceback" not in terminal.raw


def test_a_second_ctrl_c_kills_the_agent_and_what_it_started() -> None:
    with Terminal([*ANTIPHON, "prompt", "x", "--", *raw_agent("stubborn")]) as terminal:
        found = terminal.wait_for(r"I am (\d+) and (\d+)\.")
        terminal.type("\x03")
        terminal.wait_for("Ctrl-C again kills")
        terminal.type("\x03")
        terminal.wait_for("killed raw before it confirmed that it stopped")
        assert terminal.wait() == Exit.KILLED
        assert terminal.raw.rfind("\x1b[?25h") > terminal.raw.rfind("\x1b[?25l")  # the cursor is back
    assert ended(int(found[1]))
    assert ended(int(found[2]))


def test_nothing_is_left_behind_when_it_is_terminated() -> None:
    with Terminal([*ANTIPHON, "prompt", "x", "--", *raw_agent("stubborn")]) as terminal:
        found = terminal.wait_for(r"I am (\d+) and (\d+)\.")
        terminal.process.terminate()
        assert terminal.wait() == Exit.TERMINATED
    assert ended(int(found[1]))
    assert ended(int(found[2]))


def test_ctrl_c_before_the_agent_answers_ends_it() -> None:
    with Terminal([*ANTIPHON, "prompt", "x", "--", *raw_agent("silent")]) as terminal:
        terminal.wait_for("starting python")
        terminal.type("\x03")
        terminal.wait_for("antiphon: cancelled while starting")
        assert terminal.wait() == Exit.CANCELLED


@pytest.mark.parametrize("version", ["1", "2"])
@pytest.mark.parametrize("changes", [{}, {"NO_COLOR": "1"}])
def test_what_is_asked_about_is_seen_before_the_answer_and_only_once(
    version: str, changes: dict[str, str]
) -> None:
    with Terminal([*ANTIPHON, "prompt", "ask", "--version", version, "--", *SHOWCASE], **changes) as terminal:
        terminal.wait_for(r"\? Write song\.py[^?]+\n  [|│] \+line 38\n  [|│] ⋮ 62 more lines\n  1 y +Allow\n")
        terminal.wait_for(r"2 n +Reject\s+[›>]")
        terminal.type("what?\r")
        terminal.wait_for(r"\? Write song\.py[^|│]+2 n +Reject\s+[›>]")
        terminal.type("1\r")
        terminal.wait_for(r"\? Tidy up[^?]*\n  \$ rm -r 'old songs'\n  1 y +Allow[^›>]+[›>]")
        terminal.type("1\r")
        terminal.wait_for(r"\? mail\n  [|│] to: ann@example\.org\n  [|│] text: one\n  [|│]   two\n")
        terminal.wait_for(r"  in /site/mails, line 3\n  1[^›>]+[›>]")
        terminal.type("n\r")
        assert terminal.wait() == Exit.DONE
        shown = unstyled(terminal.raw)
    assert shown.count("+line 38\n") == 1
    assert re.search(r"[|│] tidy\n", shown), "what is new is shown behind the answer"


def test_a_question_is_asked_at_the_terminal_although_stdin_is_a_pipe(tmp_path: Path) -> None:
    script = f"echo run touch made | {shlex.join(ANTIPHON)} prompt --cwd {tmp_path}"
    with Terminal(["sh", "-c", script]) as terminal:
        terminal.wait_for(r"2 n Reject\s+›")
        terminal.type("allow\r")
        assert terminal.wait() == Exit.DONE
    assert (tmp_path / "made").exists()


def test_what_was_typed_before_a_question_does_not_answer_it() -> None:
    with Terminal([*ANTIPHON, "prompt", "fix it", "--", *SHOWCASE]) as terminal:
        terminal.type("1\r1\r1\r")
        terminal.wait_for(r"2 n Reject\s+›")
        terminal.type("n\r")
        terminal.wait_for(r"3 n Do not run it\s+›")
        terminal.type("\x04")  # the end of input is no yes
        assert terminal.wait() == Exit.DONE
        shown = unstyled(terminal.raw)
        assert "✗ Edit song.py" in shown
        assert "✗ pytest -q" in shown
