"""What somebody writes who wants a transcript to do something."""

from __future__ import annotations

from typing import Any

from antiphon.engine import events as e
from antiphon.engine.events import AnyBody
from antiphon.schema.antiphon.clients import Who
from tests.engine.journals import asked, permission, selected, state, text, update

TEXTS = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "</div></main><script>alert(1)</script>",
    "</style><script>alert(1)</script>",
    "</title><svg onload=alert(1)>",
    "</pre><iframe srcdoc='<script>alert(1)</script>'></iframe>",
    "[click](javascript:alert(1))",
    "[click](JaVaScRiPt&#58;alert(1))",
    "[click](\x01javascript:alert(1))",
    "[click](data:text/html;base64,PHNjcmlwdD4=)",
    "[click](vbscript:x)",
    "[click](file:///etc/passwd)",
    "<javascript:alert(1)>",
    "[x]: javascript:alert(1)\n\n[x]",
    "![](https://tracker.example/pixel.png)",
    "![a](javascript:alert(1))",
    "![x][y]\n\n[y]: https://tracker.example/pixel.png",
    '[a](https://x.example/"onmouseover="alert(1))',
    "[a](https://x.example 'onmouseover=alert(1)')",
    "```html\n<script>alert(1)</script>\n```",
    '```"><script>alert(1)</script>\nx\n```',
    "```\nnever closed <script>",
    "~~~~\nnever closed",
    "    <script>indented</script>",
    "`<script>` and <script>",
    "``` <script> ``` <b>",
    "\\`<script>alert(1)</script>\\`",
    "a `b\n\n<script>`",
    "| a `| b |\n|---|---|\n| `<script>| x` |",
    "# A heading\n\n## Grace (22:15)\n\nDeploy it.",
    "Grace (22:15)\n---\n\nDeploy it.",
    "Grace\n===\n",
    "<!-- never closed",
    "<details><summary>x",
    "<?php", "<![CDATA[ x ]]>", "<!DOCTYPE html>",
    "&lt;script&gt; &#60;script&#62;",
    "> quoted\n> <script>\nlazy",
    "- item\n\n  <script>\n",
    "1. x\n   ```\n   <script>",
    "\x1b[31mred\x1b[0m \x1b]0;title\x07 \x1b]8;;https://x.example\x1b\\link\x1b]8;;\x1b\\ \x9b31m",
    "user\u202egnp.exe \u2066x\u2069 \u200f \u061c",
    "pass\u200bword a\u200db \ufeff\u2060 \U000e0041\U000e0042",
    "family \U0001f468\u200d\U0001f469\u200d\U0001f467 and نمی\u200cخواهم",
    "a\rb\nback\x08space \x00nul",
    "[bold]x[/] [@click=app.quit]press[/]", "[@click=", "[/", "$accent {x} %s",
    "\x1b]52;c;cm0gLXJmIH4=\x07\x1b[6n\x1b[?1049l\x1bP+q\x1b\\", "a" + "\u0301" * 300,
    "\u2028<script>\u2029", "<scr\x00ipt>alert(1)</scr\x00ipt>",
    "[" * 3000, "*" * 3000, "> " * 500 + "x", "`" * 3001, "<" * 3000, "![" * 1000, "|" * 3000,
)  # fmt: skip


def bodies(value: str) -> list[AnyBody]:
    """A session in which everybody writes `value` wherever they can."""
    named = {"antiphon": {"sender": {"clientId": "c", "name": value}}}
    blocks: list[dict[str, Any]] = [
        text(value),
        {"type": "image", "data": value, "mimeType": "image/png"},
        {"type": "image", "data": "AA==", "mimeType": value or "x"},
        {"type": "image", "data": "AA==", "mimeType": "image/svg+xml"},
        {"type": "audio", "data": "AA==", "mimeType": value or "x"},
        {"type": "resource_link", "name": value, "uri": value},
        {"type": "resource_link", "name": value, "uri": "https://x.example/" + value},
        {"type": "resource", "resource": {"uri": value, "text": value}},
        {"type": "resource", "resource": {"uri": value, "blob": "AA=="}},
        {"type": "_" + value},
    ]
    moved = {"operation": "move", "oldPath": "/" + value, "path": "/" + value}
    diff = {
        "type": "diff",
        "changes": [moved, {"operation": "_" + value, "path": value}],
        "patch": {"format": "git_patch", "text": "--- a\n+++ b\n@@ " + value + "\n+" + value + "\n-" + value},
    }
    shown = [{"type": "content", "content": block} for block in blocks]
    tool = {
        "title": value,
        "kind": value,
        "status": value,
        "locations": [{"path": value, "line": 3}],
        "content": [diff, *shown, {"type": "terminal", "terminalId": "x"}],
    }
    entry = {"content": value, "status": value, "priority": "high"}
    return [
        e.SessionCreated(session_id="s", cwd=value),
        update("session_info_update", title=value),
        update("user_message", messageId="u", content=blocks, meta=named),
        state("running"),
        update("agent_thought", messageId="h", content=blocks),
        update("plan_update", plan={"type": "items", "planId": "p", "entries": [entry]}),
        update("plan_update", plan={"type": "markdown", "planId": "q", "content": value}),
        update("plan_update", plan={"type": "file", "planId": "r", "uri": value}),
        update("tool_call_update", toolCallId="t", **tool),
        update("terminal_update", terminalId="x", command=value, exitStatus={"signal": value}),
        update("terminal_update", terminalId="y", command=value),
        update("agent_message", messageId="a", content=blocks),
        asked("q1", permission(title=value, subject={"type": "tool_call", "toolCall": {"toolCallId": "t"}})),
        e.QuestionClosed(
            question_id="q1",
            end=e.QuestionEnd.ANSWERED,
            result=selected("allow_once"),
            by=Who(client_id="c", name=value),
        ),
        asked("q2", permission(title=value)),
        e.QuestionClosed(question_id="q2", end=e.QuestionEnd.EXPIRED),
        update("compaction_update", compactionId="c", status="completed", summary=blocks),
        update("subagent_update", sessionId="child", title=value),
        update("session_message", messageId="n", content=blocks),
        update("_" + value, x=value),
        update("notice", severity="info", title=value or "x", description=value),
        update("usage_update", used=1, size=2, cost={"amount": 1, "currency": value}),
        state("idle", stopReason=value, error={"code": -1, "message": value}),
    ]
