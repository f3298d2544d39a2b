"""The script of the stand-in for a model: what it does depends only on the last text of the user."""

from __future__ import annotations

import os
import re
from typing import Any

from tests.peers.stand_in_requests import Conversation, Tools

Action = tuple[Any, ...]
CHUNK_DELAY = float(os.environ.get("FAKE_CHUNK_DELAY", "0.02"))
SLOW_DELAY = float(os.environ.get("FAKE_SLOW_DELAY", "0.15"))


SHELL = (
    "run_shell_command",
    "exec_command",
    "shell_command",
    "shell",
    "bash",
    "local_shell",
    "container.exec",
    "execute",
    "execute_command",
    "run_command",
    "run_terminal_cmd",
    "terminal",
    "run_in_terminal",
)
READ = ("read_file", "read_text_file", "read", "read_many_files", "view")
WRITE = ("write_file", "write_text_file", "write", "create_file", "create")
PLAN = ("todo_write", "todowrite", "update_plan", "write_todos", "todo")


def pick(tools: Tools, names: tuple[str, ...]) -> str | None:
    low = {k.lower(): k for k in tools}
    for n in names:
        if n in low:
            return low[n]
    for n in names:
        for k in low:
            if k.endswith(n) or k.startswith(n):
                return low[k]
    return None


def fill(schema: Any, wanted: dict[str, Any]) -> dict[str, Any]:
    """Arguments from a JSON schema: `wanted` by property name, every other required one a dull default."""
    props = schema.get("properties") or {}
    args = {}
    for k, v in wanted.items():
        if k in props or not props:
            args[k] = v
    for k in schema.get("required") or []:
        if k in args:
            continue
        p = props.get(k) or {}
        ty = p.get("type")
        ty = ty[0] if isinstance(ty, list) and ty else ty
        ty = str(ty).lower()
        if p.get("enum"):
            args[k] = p["enum"][0]
        else:
            args[k] = {
                "string": "interop test",
                "boolean": False,
                "integer": 1,
                "number": 1,
                "array": [],
                "object": {},
            }.get(ty, "interop test")
    return args


def shell_args(schema: Any, cmd: str) -> dict[str, Any]:
    props = schema.get("properties") or {}
    c = props.get("command") or {}
    ty = str(c.get("type")).lower()
    command = ["bash", "-lc", cmd] if ty == "array" else cmd
    want = {"command": command, "cmd": cmd, "description": "Echo a greeting"}
    if "sandbox_permissions" in props:  # codex: request approval to leave the sandbox
        want.update(sandbox_permissions="require_escalated", justification="interop test")
    return fill(schema, want)


def tool_calls(text: str, tools: Tools) -> list[tuple[str, dict[str, Any]]]:
    m = re.search(r"TOOLREAD\s+(\S+)", text)
    if m:
        n = pick(tools, READ)
        if n:
            p = m.group(1)
            return [(n, fill(tools[n], {"path": p, "file_path": p, "filePath": p, "absolute_path": p}))]
    m = re.search(r"TOOLWRITE\s+(\S+)", text)
    if m:
        n = pick(tools, WRITE)
        p = m.group(1)
        if n:
            return [
                (
                    n,
                    fill(
                        tools[n], {"path": p, "file_path": p, "filePath": p, "content": "written-by-tool\n"}
                    ),
                )
            ]
        n = pick(tools, SHELL)
        if n:
            return [(n, shell_args(tools[n], f"echo written-by-tool > {p}"))]
    if "PLAN" in text:
        n = pick(tools, PLAN)
        if n:
            items = [
                {
                    "content": "first step",
                    "step": "first step",
                    "description": "first step",
                    "activeForm": "Doing first",
                    "id": "1",
                    "status": "in_progress",
                    "priority": "high",
                },
                {
                    "content": "second step",
                    "step": "second step",
                    "description": "second step",
                    "activeForm": "Doing second",
                    "id": "2",
                    "status": "pending",
                    "priority": "low",
                },
            ]
            props = tools[n].get("properties") or {}
            for key in ("todos", "plan", "items"):
                if key in props:
                    ip = (props[key].get("items") or {}).get("properties") or {}
                    if ip:
                        items = [{k: v for k, v in i.items() if k in ip} for i in items]
                    return [(n, fill(tools[n], {key: items}))]
    if "TOOL" in text:
        n = pick(tools, SHELL)
        if n:
            if "TOOLSLOW" in text:
                return [(n, shell_args(tools[n], "sleep 60"))]
            if "TOOL2" in text:
                return [
                    (n, shell_args(tools[n], "echo hello-from-tool-A > made-a.txt; cat made-a.txt")),
                    (n, shell_args(tools[n], "echo hello-from-tool-B > made-b.txt; cat made-b.txt")),
                ]
            return [
                (n, shell_args(tools[n], "echo hello-from-tool > made-by-tool.txt; cat made-by-tool.txt"))
            ]
    return []


def from_schema(s: Any) -> Any:
    """A minimal instance of a JSON schema (for agents that ask for structured side answers)."""
    if not isinstance(s, dict):
        return "x"
    ty = s.get("type")
    ty = (ty[0] if isinstance(ty, list) else str(ty)).lower()
    if s.get("enum"):
        return s["enum"][0]
    if ty == "object":
        return {k: from_schema(v) for k, v in (s.get("properties") or {}).items()}
    if ty == "array":
        return []
    return {"boolean": False, "integer": 1, "number": 1}.get(ty, "interop")


def strip_meta(text: str) -> str:
    """Drop harness-injected blocks so the keyword test sees only what the ACP client typed."""
    text = re.sub(r"<system-reminder>.*?</system-reminder>", "", text, flags=re.S)
    return re.sub(r"<environment_context>.*?</environment_context>", "", text, flags=re.S)


def decide(conv: Conversation, tools: Tools) -> tuple[str, list[Action]]:
    """-> list of actions: ('think',s) ('text',s,delay) ('tool',name,args) ('fail',)"""
    last_user = ""
    after: Conversation = []
    for role, t in conv:
        if role == "user" and strip_meta(t).strip():
            last_user, after = strip_meta(t), []
        else:
            after.append((role, t))
    results = [t for r, t in after if r == "tool"]
    if results:
        return last_user, [
            ("text", "Tool said: ", CHUNK_DELAY),
            ("text", results[-1][:200], CHUNK_DELAY),
            ("text", ". DONE", CHUNK_DELAY),
        ]
    if "FAIL" in last_user:
        return last_user, [("fail",)]
    if "Return exactly one JSON object" in last_user and '"title"' in last_user:
        return last_user, [("text", '{"title": "Interop title"}', 0)]
    acts: list[Action] = []
    if "THINK" in last_user:
        acts.append(("think", "I am thinking about it."))
    calls = tool_calls(last_user, tools)
    if calls:
        acts.append(("text", "I will use a tool. ", CHUNK_DELAY))
        acts += [("tool", n, a) for n, a in calls]
        return last_user, acts
    if "SLOW" in last_user:
        acts += [("text", f"slow-{i} ", SLOW_DELAY) for i in range(200)]
    elif "BIG" in last_user:
        acts += [("text", "B" * 100_000, CHUNK_DELAY) for _ in range(3)]
    elif "UNICODE" in last_user:
        acts += [
            ("text", s, CHUNK_DELAY)
            for s in (
                "emoji \U0001f600 ",
                "combining e\u0301 ",
                "sep\u2028sep ",
                "crlf\r\nline ",
                "tab\tbell\u0007 end",
            )
        ]
    else:
        said = last_user.strip().replace("\n", " ")[-80:]
        acts += [("text", s, CHUNK_DELAY) for s in ("Hello ", "from ", "the fake LLM. ", f"You said: {said}")]
    return last_user, acts
