"""The replies of the stand-in for a model, in the form of each API, streamed and whole."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable
from typing import Any, Protocol

from tests.peers.stand_in_requests import (
    Conversation,
    Tools,
    norm_anthropic,
    norm_chat,
    norm_gemini,
    norm_responses,
)
from tests.peers.stand_in_script import Action, from_schema


class Reply(Protocol):
    """The HTTP response to one request."""

    def plan(
        self, api: str, norm: Callable[[Any], tuple[Conversation, Tools]], body: Any
    ) -> list[Action]: ...

    def send_json(self, obj: Any, code: int = 200) -> None: ...

    def open_stream(self) -> None: ...

    def send_event(self, data: Any, event: str | None = None) -> None: ...


def chat(to: Reply, body: Any) -> None:
    acts = to.plan("chat", norm_chat, body)
    if acts[0][0] == "fail":
        return to.send_json(
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
        return to.send_json(
            {
                "id": cid,
                "object": "chat.completion",
                "created": int(time.time()),
                "model": model,
                "choices": [{"index": 0, "message": msg, "finish_reason": "tool_calls" if calls else "stop"}],
                "usage": usage,
            }
        )
    to.open_stream()
    base = {"id": cid, "object": "chat.completion.chunk", "created": int(time.time()), "model": model}

    def ch(delta: Any, fin: str | None = None, **kw: Any) -> None:
        to.send_event({**base, "choices": [{"index": 0, "delta": delta, "finish_reason": fin}], **kw})

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
    to.send_event({**base, "choices": [], "usage": usage})
    to.send_event("[DONE]")
    return None


def responses(to: Reply, body: Any) -> None:
    acts = to.plan("responses", norm_responses, body)
    if acts[0][0] == "fail":
        return to.send_json(
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
        to.open_stream()

    def ev(type_: str, **kw: Any) -> None:
        if stream:
            seq[0] += 1
            to.send_event({"type": type_, "sequence_number": seq[0], **kw}, type_)

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
        to.send_json(final)
    return None


def anthropic(to: Reply, body: Any) -> None:
    acts = to.plan("anthropic", norm_anthropic, body)
    if acts[0][0] == "fail":
        return to.send_json(
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
        return to.send_json({**msg, "content": content, "stop_reason": stop})
    to.open_stream()

    def ev(t: str, **kw: Any) -> None:
        to.send_event({"type": t, **kw}, t)

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


def gemini(to: Reply, body: Any, p: str) -> None:
    acts = to.plan("gemini", norm_gemini, body)
    if acts[0][0] == "fail":
        return to.send_json(
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
        return to.send_json(chunk([part(a) for a in acts], "STOP"))
    to.open_stream()
    for i, a in enumerate(acts):
        to.send_event(chunk([part(a)], "STOP" if i == len(acts) - 1 else None))
        if a[0] == "text":
            time.sleep(a[2])
    return None
