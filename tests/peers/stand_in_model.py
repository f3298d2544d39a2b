#!/usr/bin/env python3
"""A scripted stand-in for model providers, for running real ACP agents offline.

The standard library only; it binds 127.0.0.1.

Speaks (streaming SSE and non-streaming):
  OpenAI  chat-completions  POST */chat/completions
  OpenAI  responses         POST */responses            (what codex uses)
  Anthropic messages        POST */messages  (+ */messages/count_tokens)
  Gemini                    POST */models/<m>:generateContent | :streamGenerateContent | :countTokens
  GET  */models             a model list usable by all of them
  anything else             200 {} (logged, so unexpected calls are visible)

What it answers depends only on the LAST real user text (block) of the request:
  ...TOOLREAD <path>     one tool call: the agent's file-read tool on <path>
  ...TOOLWRITE <path>    one tool call: the agent's file-write tool on <path> (content "written-by-tool\n")
  ...TOOL                one tool call: the shell tool, `echo hello-from-tool > made-by-tool.txt; cat …`
                         (a write, so that agents that auto-approve read-only commands still ask)
  ...TOOLSLOW            one tool call: the shell tool, `sleep 60` (to be cancelled)
  ...TOOL2               two shell tool calls in ONE assistant message (parallel)
  ...PLAN                one tool call on a todo/plan tool if the agent offers one
  ...SLOW                200 small chunks, 0.15 s apart (to be cancelled)
  ...BIG                 one 300 kB text in a few chunks
  ...THINK               a reasoning/thinking block first (where the API has one)
  ...UNICODE             astral, combining, CRLF, U+2028, NUL-free control characters in the text
  ...FAIL                HTTP 400 with an API error body
  otherwise              "Hello from the fake LLM. You said: <text>" in 4 chunks
After a tool result came back, it answers "Tool said: <first 200 chars of result>. DONE".

  python3 stand_in_model.py [--port 8765] [--log FILE]
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import re
import threading
import time
import uuid
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Conversation = list[tuple[str, str]]
Tools = dict[str, Any]
Action = tuple[Any, ...]

LOG: str | None = None
LOCK = threading.Lock()
CHUNK_DELAY = float(os.environ.get("FAKE_CHUNK_DELAY", "0.02"))
SLOW_DELAY = float(os.environ.get("FAKE_SLOW_DELAY", "0.15"))


def log(**kw: Any) -> None:
    kw["t"] = round(time.time(), 3)
    if LOG:
        with LOCK, open(LOG, "a") as f:
            f.write(json.dumps(kw, ensure_ascii=False) + "\n")


# ---------------------------------------------------------------- normalising
def text_of(content: Any) -> str:
    if isinstance(content, str):
        return content
    out = []
    for b in content or []:
        if isinstance(b, str):
            out.append(b)
        elif (
            isinstance(b, dict)
            and b.get("type", "text") in ("text", "input_text", "output_text")
            and "text" in b
        ):
            out.append(b["text"])
    return "\n".join(out)


def user_turns(content: Any) -> Conversation:
    """Each text block is a turn of its own: some agents add to the message of a turn that failed."""
    blocks = content if isinstance(content, list) else [content]
    return [("user", text_of([block])) for block in blocks]


def norm_chat(body: Any) -> tuple[Conversation, Tools]:
    conv: Conversation = []
    for m in body.get("messages", []):
        role = m.get("role")
        if role == "tool":
            conv.append(("tool", text_of(m.get("content"))))
        elif role == "assistant":
            conv.append(("assistant", text_of(m.get("content"))))
        elif role == "user":
            conv += user_turns(m.get("content"))
    tools = {}
    for t in body.get("tools") or []:
        f = t.get("function", t)
        tools[f.get("name", "?")] = f.get("parameters") or {}
    return conv, tools


def norm_responses(body: Any) -> tuple[Conversation, Tools]:
    conv: Conversation = []
    inp = body.get("input")
    if isinstance(inp, str):
        inp = [{"type": "message", "role": "user", "content": inp}]
    for it in inp or []:
        ty = it.get("type", "message")
        if ty == "message":
            conv.append(
                (
                    it.get("role") if it.get("role") in ("user", "assistant") else "system",
                    text_of(it.get("content")),
                )
            )
        elif ty in ("function_call_output", "custom_tool_call_output", "local_shell_call_output"):
            o = it.get("output")
            conv.append(
                ("tool", o if isinstance(o, str) else (text_of(o) if isinstance(o, list) else json.dumps(o)))
            )
    tools = {}
    for t in body.get("tools") or []:
        if t.get("type") == "function":
            tools[t["name"]] = t.get("parameters") or {}
        elif t.get("type") == "custom":
            tools[t["name"]] = {"__custom__": True}
        elif t.get("type") == "namespace":
            for s in t.get("tools", []):
                tools[s.get("name", "?")] = s.get("parameters") or {}
        else:
            tools[t.get("name") or t.get("type", "?")] = {"__native__": t.get("type")}
    return conv, tools


def norm_anthropic(body: Any) -> tuple[Conversation, Tools]:
    conv: Conversation = []
    for m in body.get("messages", []):
        role, c = m.get("role"), m.get("content")
        if role == "user" and isinstance(c, list):
            res = [b for b in c if b.get("type") == "tool_result"]
            if res:
                conv.append(("tool", "\n".join(text_of(b.get("content")) for b in res)))
                c = [b for b in c if b.get("type") == "text"]  # a new prompt may stand beside an old result
        conv += user_turns(c) if role == "user" else [(role, text_of(c))]
    tools = {t.get("name", "?"): t.get("input_schema") or {} for t in body.get("tools") or []}
    return conv, tools


def norm_gemini(body: Any) -> tuple[Conversation, Tools]:
    conv: Conversation = []
    for c in body.get("contents") or []:
        parts = c.get("parts") or []
        fr = [p["functionResponse"] for p in parts if "functionResponse" in p]
        if fr:
            conv.append(("tool", json.dumps([f.get("response") for f in fr])))
            continue
        conv.append(
            ("assistant" if c.get("role") == "model" else "user", "\n".join(p.get("text", "") for p in parts))
        )
    tools = {}
    for t in body.get("tools") or []:
        for f in t.get("functionDeclarations") or []:
            tools[f["name"]] = f.get("parametersJsonSchema") or f.get("parameters") or {}
    return conv, tools


# ---------------------------------------------------------------- the script
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


class Gone(Exception):
    pass


class H(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        pass

    # ---- plumbing
    def _json(self, obj: Any, code: int = 200) -> None:
        b = json.dumps(obj).encode()
        self.send_response(code)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(b)))
        self.end_headers()
        self.wfile.write(b)

    def _sse_open(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("cache-control", "no-cache")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True

    def _sse(self, data: Any, event: str | None = None) -> None:
        s = (
            (f"event: {event}\n" if event else "")
            + "data: "
            + (data if isinstance(data, str) else json.dumps(data))
            + "\n\n"
        )
        try:
            self.wfile.write(s.encode())
            self.wfile.flush()
        except OSError:
            raise Gone from None

    def do_HEAD(self) -> None:
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def do_GET(self) -> None:
        p = self.path.split("?")[0]
        log(method="GET", path=self.path)
        if p.rstrip("/").endswith("/models"):
            ids = ["fake-model", "gpt-5", "claude-sonnet-4-5", "gemini-2.5-pro"]
            return self._json(
                {
                    "object": "list",
                    "has_more": False,
                    "data": [
                        {
                            "id": i,
                            "object": "model",
                            "type": "model",
                            "display_name": i,
                            "created": 1,
                            "created_at": "2025-01-01T00:00:00Z",
                            "owned_by": "fake",
                        }
                        for i in ids
                    ],
                    "models": [],
                }
            )
        return self._json({})

    def do_POST(self) -> None:
        n = int(self.headers.get("content-length") or 0)
        if (self.headers.get("transfer-encoding") or "").lower() == "chunked":
            raw = b""
            while True:
                k = int(self.rfile.readline().split(b";")[0], 16)
                if not k:
                    self.rfile.readline()
                    break
                raw += self.rfile.read(k)
                self.rfile.readline()
        else:
            raw = self.rfile.read(n)
        if (self.headers.get("content-encoding") or "") == "gzip":
            raw = gzip.decompress(raw)
        try:
            body = json.loads(raw or b"{}")
        except ValueError:
            body = {"__raw__": raw[:200].decode("utf8", "replace")}
        p = self.path.split("?")[0]
        try:
            if p.endswith("/chat/completions"):
                self.chat(body)
            elif p.endswith("/responses"):
                self.oa_responses(body)
            elif p.endswith("/messages/count_tokens"):
                log(method="POST", path=p)
                self._json({"input_tokens": 11})
            elif p.endswith("/messages"):
                self.anthropic(body)
            elif ":countTokens" in p:
                log(method="POST", path=p)
                self._json({"totalTokens": 11})
            elif ":generateContent" in p or ":streamGenerateContent" in p:
                self.gemini(body, p)
            else:
                log(method="POST", path=self.path, other=True, body=str(body)[:300])
                self._json({})
        except (Gone, BrokenPipeError, ConnectionResetError):
            log(note="client closed the connection mid-stream", path=p)
            self.close_connection = True

    def _plan(self, api: str, norm: Callable[[Any], tuple[Conversation, Tools]], body: Any) -> list[Action]:
        conv, tools = norm(body)
        last, acts = decide(conv, tools)
        log(
            method="POST",
            api=api,
            path=self.path,
            model=body.get("model"),
            stream=body.get("stream"),
            turns=len(conv),
            last_user=last[-160:],
            tools=sorted(tools)[:60],
            acts=[(a[0], *(a[1:] if a[0] == "tool" else ())) for a in acts][:6],
        )
        if os.environ.get("FAKE_DUMP"):
            with open(os.path.join(os.environ["FAKE_DUMP"], f"{time.time():.3f}-{api}.json"), "w") as f:
                json.dump(body, f, indent=1)
        return acts

    # ---- OpenAI chat completions
    def chat(self, body: Any) -> None:
        acts = self._plan("chat", norm_chat, body)
        if acts[0][0] == "fail":
            return self._json(
                {
                    "error": {
                        "message": "scripted failure",
                        "type": "invalid_request_error",
                        "code": "scripted",
                    }
                },
                400,
            )
        rf = body.get("response_format") or {}
        if rf.get("type") == "json_schema":
            acts = [("text", json.dumps(from_schema((rf.get("json_schema") or {}).get("schema") or {})), 0)]
        cid, model = "chatcmpl-" + uuid.uuid4().hex[:12], body.get("model", "fake-model")
        usage = {
            "prompt_tokens": 11,
            "completion_tokens": 7,
            "total_tokens": 18,
            "prompt_tokens_details": {"cached_tokens": 3},
        }
        calls = [(a[1], a[2]) for a in acts if a[0] == "tool"]
        if not body.get("stream"):
            msg: dict[str, Any] = {
                "role": "assistant",
                "content": "".join(a[1] for a in acts if a[0] == "text") or None,
            }
            if calls:
                msg["tool_calls"] = [
                    {
                        "id": "call_" + uuid.uuid4().hex[:10],
                        "type": "function",
                        "function": {"name": n, "arguments": json.dumps(a)},
                    }
                    for n, a in calls
                ]
            return self._json(
                {
                    "id": cid,
                    "object": "chat.completion",
                    "created": int(time.time()),
                    "model": model,
                    "choices": [
                        {"index": 0, "message": msg, "finish_reason": "tool_calls" if calls else "stop"}
                    ],
                    "usage": usage,
                }
            )
        self._sse_open()
        base = {"id": cid, "object": "chat.completion.chunk", "created": int(time.time()), "model": model}

        def ch(delta: Any, fin: str | None = None, **kw: Any) -> None:
            self._sse({**base, "choices": [{"index": 0, "delta": delta, "finish_reason": fin}], **kw})

        ch({"role": "assistant", "content": ""})
        i = 0
        for a in acts:
            if a[0] == "think":
                ch({"reasoning_content": a[1]})
            elif a[0] == "text":
                ch({"content": a[1]})
                time.sleep(a[2])
            elif a[0] == "tool":
                ch(
                    {
                        "tool_calls": [
                            {
                                "index": i,
                                "id": "call_" + uuid.uuid4().hex[:10],
                                "type": "function",
                                "function": {"name": a[1], "arguments": ""},
                            }
                        ]
                    }
                )
                s = json.dumps(a[2])
                for k in range(0, len(s), 20):
                    ch({"tool_calls": [{"index": i, "function": {"arguments": s[k : k + 20]}}]})
                i += 1
        ch({}, "tool_calls" if i else "stop")
        self._sse({**base, "choices": [], "usage": usage})
        self._sse("[DONE]")
        return None

    # ---- OpenAI responses
    def oa_responses(self, body: Any) -> None:
        acts = self._plan("responses", norm_responses, body)
        if acts[0][0] == "fail":
            return self._json(
                {
                    "error": {
                        "message": "scripted failure",
                        "type": "invalid_request_error",
                        "code": "scripted",
                    }
                },
                400,
            )
        rid = "resp_" + uuid.uuid4().hex[:12]
        fmt = (body.get("text") or {}).get("format") or {}
        if fmt.get("type") == "json_schema":
            acts = [("text", json.dumps(from_schema(fmt.get("schema") or {})), 0)]
        usage = {
            "input_tokens": 11,
            "input_tokens_details": {"cached_tokens": 3},
            "output_tokens": 7,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": 18,
        }
        resp = {
            "id": rid,
            "object": "response",
            "created_at": int(time.time()),
            "status": "in_progress",
            "model": body.get("model", "fake-model"),
            "output": [],
            "usage": None,
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            "metadata": {},
            "error": None,
            "incomplete_details": None,
            "instructions": None,
            "temperature": 1,
            "top_p": 1,
        }
        out, seq = [], [0]
        stream = body.get("stream")
        if stream:
            self._sse_open()

        def ev(type_: str, **kw: Any) -> None:
            if stream:
                seq[0] += 1
                self._sse({"type": type_, "sequence_number": seq[0], **kw}, type_)

        ev("response.created", response=resp)
        texts = [a for a in acts if a[0] == "text"]
        idx = 0
        for a in acts:
            if a[0] == "think":
                it = {
                    "id": "rs_" + uuid.uuid4().hex[:10],
                    "type": "reasoning",
                    "summary": [{"type": "summary_text", "text": a[1]}],
                }
                ev("response.output_item.added", output_index=idx, item={**it, "summary": []})
                ev(
                    "response.reasoning_summary_part.added",
                    item_id=it["id"],
                    output_index=idx,
                    summary_index=0,
                    part={"type": "summary_text", "text": ""},
                )
                ev(
                    "response.reasoning_summary_text.delta",
                    item_id=it["id"],
                    output_index=idx,
                    summary_index=0,
                    delta=a[1],
                )
                ev(
                    "response.reasoning_summary_text.done",
                    item_id=it["id"],
                    output_index=idx,
                    summary_index=0,
                    text=a[1],
                )
                ev("response.output_item.done", output_index=idx, item=it)
                out.append(it)
                idx += 1
        if texts:
            mid = "msg_" + uuid.uuid4().hex[:10]
            it = {"id": mid, "type": "message", "role": "assistant", "status": "in_progress", "content": []}
            ev("response.output_item.added", output_index=idx, item=it)
            ev(
                "response.content_part.added",
                item_id=mid,
                output_index=idx,
                content_index=0,
                part={"type": "output_text", "text": "", "annotations": []},
            )
            for a in texts:
                ev("response.output_text.delta", item_id=mid, output_index=idx, content_index=0, delta=a[1])
                time.sleep(a[2] if stream else 0)
            full = "".join(a[1] for a in texts)
            ev("response.output_text.done", item_id=mid, output_index=idx, content_index=0, text=full)
            it = {
                **it,
                "status": "completed",
                "content": [{"type": "output_text", "text": full, "annotations": []}],
            }
            ev(
                "response.content_part.done",
                item_id=mid,
                output_index=idx,
                content_index=0,
                part=it["content"][0],
            )
            ev("response.output_item.done", output_index=idx, item=it)
            out.append(it)
            idx += 1
        for a in acts:
            if a[0] == "tool":
                it = {
                    "id": "fc_" + uuid.uuid4().hex[:10],
                    "type": "function_call",
                    "status": "completed",
                    "call_id": "call_" + uuid.uuid4().hex[:10],
                    "name": a[1],
                    "arguments": json.dumps(a[2]),
                }
                ev(
                    "response.output_item.added",
                    output_index=idx,
                    item={**it, "arguments": "", "status": "in_progress"},
                )
                ev(
                    "response.function_call_arguments.delta",
                    item_id=it["id"],
                    output_index=idx,
                    delta=it["arguments"],
                )
                ev(
                    "response.function_call_arguments.done",
                    item_id=it["id"],
                    output_index=idx,
                    arguments=it["arguments"],
                )
                ev("response.output_item.done", output_index=idx, item=it)
                out.append(it)
                idx += 1
        final = {**resp, "status": "completed", "output": out, "usage": usage}
        ev("response.completed", response=final)
        if not stream:
            self._json(final)
        return None

    # ---- Anthropic messages
    def anthropic(self, body: Any) -> None:
        acts = self._plan("anthropic", norm_anthropic, body)
        if acts[0][0] == "fail":
            return self._json(
                {"type": "error", "error": {"type": "invalid_request_error", "message": "scripted failure"}},
                400,
            )
        of = (body.get("output_config") or {}).get("format") or body.get("output_format") or {}
        if of.get("type") == "json_schema":
            acts = [("text", json.dumps(from_schema(of.get("schema") or {})), 0)]
        mid = "msg_" + uuid.uuid4().hex[:12]
        calls = [a for a in acts if a[0] == "tool"]
        usage = {
            "input_tokens": 11,
            "output_tokens": 7,
            "cache_read_input_tokens": 3,
            "cache_creation_input_tokens": 0,
        }
        msg = {
            "id": mid,
            "type": "message",
            "role": "assistant",
            "model": body.get("model", "fake"),
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": usage,
        }
        blocks: list[tuple[str, Any]] = []
        th = [a[1] for a in acts if a[0] == "think"]
        if th:
            blocks.append(("thinking", th))
        tx = [a for a in acts if a[0] == "text"]
        if tx:
            blocks.append(("text", tx))
        for a in calls:
            blocks.append(("tool", a))
        stop = "tool_use" if calls else "end_turn"
        if not body.get("stream"):
            content = []
            for k, v in blocks:
                if k == "text":
                    content.append({"type": "text", "text": "".join(x[1] for x in v)})
                elif k == "tool":
                    content.append(
                        {
                            "type": "tool_use",
                            "id": "toolu_" + uuid.uuid4().hex[:12],
                            "name": v[1],
                            "input": v[2],
                        }
                    )
            return self._json({**msg, "content": content, "stop_reason": stop})
        self._sse_open()

        def ev(t: str, **kw: Any) -> None:
            self._sse({"type": t, **kw}, t)

        ev("message_start", message={**msg, "usage": {**usage, "output_tokens": 1}})
        for i, (k, v) in enumerate(blocks):
            if k == "thinking":
                ev(
                    "content_block_start",
                    index=i,
                    content_block={"type": "thinking", "thinking": "", "signature": ""},
                )
                for s in v:
                    ev("content_block_delta", index=i, delta={"type": "thinking_delta", "thinking": s})
                ev("content_block_delta", index=i, delta={"type": "signature_delta", "signature": "c2ln"})
            elif k == "text":
                ev("content_block_start", index=i, content_block={"type": "text", "text": ""})
                for a in v:
                    ev("content_block_delta", index=i, delta={"type": "text_delta", "text": a[1]})
                    time.sleep(a[2])
            else:
                ev(
                    "content_block_start",
                    index=i,
                    content_block={
                        "type": "tool_use",
                        "id": "toolu_" + uuid.uuid4().hex[:12],
                        "name": v[1],
                        "input": {},
                    },
                )
                s = json.dumps(v[2])
                for j in range(0, len(s), 20):
                    ev(
                        "content_block_delta",
                        index=i,
                        delta={"type": "input_json_delta", "partial_json": s[j : j + 20]},
                    )
            ev("content_block_stop", index=i)
        ev("message_delta", delta={"stop_reason": stop, "stop_sequence": None}, usage=usage)
        ev("message_stop")
        return None

    # ---- Gemini
    def gemini(self, body: Any, p: str) -> None:
        acts = self._plan("gemini", norm_gemini, body)
        if acts[0][0] == "fail":
            return self._json(
                {"error": {"code": 400, "message": "scripted failure", "status": "INVALID_ARGUMENT"}}, 400
            )
        gc = body.get("generationConfig") or {}
        schema = gc.get("responseJsonSchema") or gc.get("responseSchema")
        if gc.get("responseMimeType") == "application/json":
            acts = [("text", json.dumps(from_schema(schema or {"type": "object"})), 0)]
        um = {
            "promptTokenCount": 11,
            "candidatesTokenCount": 7,
            "totalTokenCount": 18,
            "cachedContentTokenCount": 3,
        }

        def part(a: Action) -> Any:
            if a[0] == "think":
                return {"text": a[1], "thought": True}
            if a[0] == "text":
                return {"text": a[1]}
            return {"functionCall": {"id": "fc-" + uuid.uuid4().hex[:8], "name": a[1], "args": a[2]}}

        def chunk(parts: Any, fin: str | None = None) -> Any:
            c = {"content": {"role": "model", "parts": parts}, "index": 0}
            if fin:
                c["finishReason"] = fin
            return {
                "candidates": [c],
                "usageMetadata": um,
                "modelVersion": "fake",
                "responseId": "r" + uuid.uuid4().hex[:8],
            }

        if ":streamGenerateContent" not in p:
            return self._json(chunk([part(a) for a in acts], "STOP"))
        self._sse_open()
        for i, a in enumerate(acts):
            self._sse(chunk([part(a)], "STOP" if i == len(acts) - 1 else None))
            if a[0] == "text":
                time.sleep(a[2])
        return None


def listen(port: int, *, log_file: str | None = None) -> ThreadingHTTPServer:
    """A server that is bound already; `serve_forever` is left to the caller."""
    global LOG
    LOG = log_file
    server = ThreadingHTTPServer(("127.0.0.1", port), H)
    server.daemon_threads = True
    return server


def address(server: ThreadingHTTPServer) -> str:
    return f"http://127.0.0.1:{server.server_address[1]}"


def main() -> None:
    ap = argparse.ArgumentParser()
    ap.add_argument("--port", type=int, default=8765)
    ap.add_argument("--log", default=None)
    a = ap.parse_args()
    server = listen(a.port, log_file=a.log)
    print(address(server), flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
