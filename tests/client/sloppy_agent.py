"""An agent with bad manners, standard library only.

    python sloppy_agent.py [--v2] [--early] [--turn-complete]

What it does wrong is decided by the text of the prompt: the names of the functions below. `--early` lets it
speak of a session before it has named it; `--turn-complete` lets it promise a signal it sends as it likes.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from typing import Any, NoReturn

V2 = "--v2" in sys.argv
EARLY = "--early" in sys.argv
COMPLETES = "--turn-complete" in sys.argv
LATE = 0.2


def write(line: str) -> None:
    sys.stdout.write(line)
    sys.stdout.flush()


def send(**frame: Any) -> None:
    write(json.dumps({"jsonrpc": "2.0", **frame}) + "\n")


def receive() -> Any:
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    return json.loads(line)


def update(kind: str, **fields: Any) -> None:
    send(method="session/update", params={"sessionId": "s", "update": {"sessionUpdate": kind, **fields}})


def say(words: str, kind: str = "agent_message_chunk", **fields: Any) -> None:
    if V2:
        fields.setdefault("messageId", "m1")
    update(kind, content={"type": "text", "text": words}, **fields)


def begin(id: Any) -> None:
    if V2:
        send(id=id, result={"messageId": "u1"})
        update("user_message", messageId="u1", content=[{"type": "text", "text": "…"}])
        update("state_update", state="running")


def end(id: Any) -> None:
    if V2:
        update("state_update", state="idle", stopReason="end_turn")
    else:
        send(id=id, result={"stopReason": "end_turn"})


def complete(id: Any) -> None:
    update("turn_complete", promptRequestId=str(id), stopReason="end_turn")


# --- what it can do wrong ------------------------------------------------------------------------------


def late(id: Any) -> None:
    say("in time")
    end(id)
    time.sleep(LATE)
    say("too late", messageId="m2") if V2 else say("too late")


def no_ids(id: Any) -> None:
    say("hm", kind="agent_thought_chunk")
    say("one ")
    say("message")
    update("tool_call", toolCallId="t", title="a tool", status="completed")
    say("another")
    end(id)


def unknown_kinds(id: Any) -> None:
    update("weather", sky="blue", nested={"kept": [1, None]})
    update("_vendor_thing", x=1)
    send(method="session/nonsense", params={"sessionId": "s"})
    send(method="_vendor/note", params={"any": "thing"})
    say("well", futureField={"y": 2})
    end(id)


def logs(id: Any) -> None:
    write("INFO starting up\n")
    say("a")
    write("Warning: {not json}\n\n   \n")
    say("b")
    write("done in 3 ms\n")
    end(id)


def big(id: Any) -> None:
    say("x" * 5_000_000)
    end(id)


def kill(id: Any) -> NoReturn:
    say("last words")
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


def crash(id: Any) -> NoReturn:
    say("last words")
    print("Traceback: something broke", "out of memory", sep="\n", file=sys.stderr, flush=True)
    sys.exit(1)


def half_a_line(id: Any) -> NoReturn:
    say("last words")
    write('{"jsonrpc":"2.0","method":"session/update","params":{"sess')
    sys.exit(3)


def silence(id: Any) -> None:
    say("first and last words")


def garbage(id: Any) -> None:
    sys.stdout.buffer.write(b"\xff\xfe\x00\x01 binary\n")
    write('[1, 2, 3]\n"a string"\n{"jsonrpc": "2.0"}\n{"half": \n')
    write('{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":7}}\n')
    say("still here")
    end(id)


def stray_answers(id: Any) -> None:
    send(id=4711, result={"stopReason": "refusal"})
    send(id="never-asked", error={"code": -1, "message": "no"})
    send(id=None, result={})
    say("fine")
    end(id)
    if not V2:
        send(id=id, result={"stopReason": "refusal"})


def strange_permission(id: Any) -> None:
    options = [{"optionId": "y", "name": "Yes", "kind": "allow_once"}]
    call = {"toolCallId": "never-heard-of", "title": "Launch", "kind": "execute"}
    asked = (
        {"title": "Launch?", "subject": {"type": "tool_call", "toolCall": call}} if V2 else {"toolCall": call}
    )
    send(id="p", method="session/request_permission", params={"sessionId": "s", "options": options, **asked})
    answer = receive()
    say(json.dumps(answer["result"]["outcome"]))
    end(id)


def no_completion(id: Any) -> None:
    say("over")
    end(id)


def completion_last(id: Any) -> None:
    say("one ")
    end(id)
    say("two ")
    time.sleep(LATE)
    say("three")
    complete(id)


def completion_of_another(id: Any) -> None:
    say("one ")
    complete(4711)
    say("two")
    complete(id)
    end(id)


def completion_and_failure(id: Any) -> None:
    say("oh")
    send(id=id, error={"code": -32603, "message": "it broke"})


OPEN: list[Any] = []


def interleaved(id: Any) -> None:
    """Two turns at once, the first of which ends in the midst of the second."""
    OPEN.append(id)
    say(f"{len(OPEN)}a ")
    if len(OPEN) == 2:
        say("1b ")
        end(OPEN[0])
        say("2b ")
        end(OPEN[1])


def echo(id: Any) -> None:
    say("heard")
    end(id)


WAYS = {
    work.__name__: work
    for work in (
        late, no_ids, unknown_kinds, logs, big, kill, crash, half_a_line, silence, garbage, stray_answers,
        strange_permission, no_completion, completion_last, completion_of_another, completion_and_failure,
        interleaved, echo,
    )
}  # fmt: skip


def initialize() -> dict[str, Any]:
    if V2:
        info = {"name": "sloppy", "version": "1"}
        return {"protocolVersion": 2, "info": info, "capabilities": {"session": {}}}
    promised = {"sessionCapabilities": {"turnComplete": {}}} if COMPLETES else {}
    return {"protocolVersion": 1, "agentCapabilities": promised}


def main() -> None:
    while True:
        frame = receive()
        match frame.get("method"):
            case "initialize":
                send(id=frame["id"], result=initialize())
            case "session/new":
                if EARLY:
                    command = {"name": "early", "description": "…"}
                    update("available_commands_update", availableCommands=[command])
                    say("before you knew me")
                send(id=frame["id"], result={"sessionId": "s"})
            case "session/prompt":
                begin(frame["id"])
                WAYS[frame["params"]["prompt"][0]["text"]](frame["id"])
            case "session/cancel" | "$/cancel_request" | None:
                pass  # it does not listen
            case _:
                send(id=frame.get("id"), error={"code": -32601, "message": "Method not found"})


if __name__ == "__main__":
    main()
