"""What agents ask the stand-in for a model, in the form of each API: the conversation and the tools."""

from __future__ import annotations

import json
from typing import Any

Conversation = list[tuple[str, str]]
Tools = dict[str, Any]


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
