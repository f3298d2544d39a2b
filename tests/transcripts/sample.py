"""A session with something of everything, as a journal."""

from __future__ import annotations

import base64
import sys
from collections.abc import Sequence

from antiphon.engine import events as e
from antiphon.engine.events import AnyBody, Event
from antiphon.schema.antiphon.clients import Who
from antiphon.transcripts import Account, AccountBuilder, account, to_html, to_markdown
from tests.engine.journals import AT, asked, permission, selected, state, text, update

PATCH = """\
diff --git a/site/build.py b/site/build.py
index 3c1f..9a2e 100644
--- a/site/build.py
+++ b/site/build.py
@@ -12,7 +12,8 @@ def build(pages: list[Page]) -> None:
     for page in pages:
-        out = page.path.with_suffix(".html")
-        out.write_text(render(page))
+        out = target / page.slug / "index.html"
+        out.parent.mkdir(parents=True, exist_ok=True)
+        out.write_text(render(page), encoding="utf-8")
     report(len(pages))
"""
OUTPUT = """\
\x1b[1m============ test session starts ============\x1b[0m\r
collected 41 items\r
\r
tests/test_build.py \x1b[32m........\x1b[0m\x1b[31mF\x1b[0m\r
\r
\x1b[31mE   UnicodeEncodeError: 'ascii' codec can't encode\x1b[0m\r
1 failed, 40 passed in 2.31s\r
"""
FILE = "/home/ada/site/site/build.py"
ASKED = "Why is the build red since this morning? Please mend it, and keep the `index` page fast."
THOUGHT = (
    "The log says UnicodeEncodeError. That smells of a locale: let me look at how files are written before "
    "touching anything."
)
ANSWER = """\
The build fails because `write_text` uses the locale's encoding, and the CI image has none:

1. `site/build.py` writes without `encoding=`.
2. The new page has a “curly quote” in its title.

I gave it an encoding, and moved the output into folders:

```python
out.write_text(render(page), encoding="utf-8")
```

| Page | Before | After |
|:-----|-------:|------:|
| index | 12 ms | 11 ms |
| about | 9 ms | 9 ms |

> Nothing else in the pipeline depends on the old paths. See [the docs](https://docs.example/encoding).
"""


def call(id: str, **fields: object) -> AnyBody:
    return update("tool_call_update", toolCallId=id, **fields)


def terminal(id: str, output: str, code: int) -> AnyBody:
    data = base64.b64encode(output.encode()).decode()
    return update(
        "terminal_update",
        terminalId=id,
        command="pytest -q",
        output={"data": data},
        exitStatus={"exitCode": code},
    )


def plan(*done: str) -> AnyBody:
    words = (
        "Read the failing job",
        "Fix the encoding",
        "Run the tests again",
        "Rewrite it in another language",
    )
    entries = [{"content": w, "status": s, "priority": "high"} for w, s in zip(words, done, strict=True)]
    return update("plan_update", plan={"type": "items", "planId": "p", "entries": entries})


USAGE = {"totalTokens": 5312, "inputTokens": 4820, "outputTokens": 492}
ALLOWED = permission(
    "allow_once",
    title="Run `pytest -q`?",
    subject={"type": "tool_call", "toolCall": {"toolCallId": "t3", "title": "pytest -q"}},
)
BODIES: Sequence[AnyBody] = (
    e.SessionCreated(session_id="sess_sample", cwd="/home/ada/site"),
    update("session_info_update", title="Why is the build red?"),
    update(
        "user_message",
        messageId="m1",
        content=[text(ASKED)],
        meta={"antiphon": {"sender": {"clientId": "c1", "name": "Ada"}}},
    ),
    state("running"),
    update("agent_thought", messageId="h1", content=[text(THOUGHT)]),
    plan("completed", "in_progress", "pending", "cancelled"),
    call(
        "t1", title="Read build.py", kind="read", status="completed", locations=[{"path": FILE, "line": 12}]
    ),
    call(
        "t2",
        title="Edit build.py",
        kind="edit",
        status="completed",
        content=[
            {
                "type": "diff",
                "changes": [{"operation": "modify", "path": FILE}],
                "patch": {"format": "git_patch", "text": PATCH},
            }
        ],
    ),
    call("t3", title="pytest -q", kind="execute", status="in_progress"),
    asked("q1", ALLOWED),
    e.QuestionClosed(
        question_id="q1",
        end=e.QuestionEnd.ANSWERED,
        result=selected("allow_once"),
        by=Who(client_id="c2", name="Grace"),
    ),
    terminal("x1", OUTPUT, 1),
    call("t3", status="failed", content=[{"type": "terminal", "terminalId": "x1"}]),
    call(
        "t4",
        title="pytest -q",
        kind="execute",
        status="completed",
        content=[{"type": "content", "content": text("41 passed in 2.20s\n")}],
    ),
    plan("completed", "completed", "completed", "cancelled"),
    update("agent_message", messageId="m2", content=[text(ANSWER)]),
    update("usage_update", used=5312, size=200000, cost={"amount": 0.0712, "currency": "USD"}),
    state("idle", stopReason="end_turn", usage=USAGE),
    update(
        "notice",
        severity="warning",
        title="The agent could not bring this session back",
        description="It goes on in a new one, which is told what was said.",
    ),
    update(
        "user_message",
        messageId="m3",
        content=[text("Deploy it.")],
        meta={"antiphon": {"sender": {"clientId": "c2", "name": "Grace"}}},
    ),
    state("running"),
    call("t5", title="deploy --production", kind="execute", status="in_progress"),
    update("agent_message", messageId="m4", content=[text("I will deploy it now.")]),
    call("t5", status="cancelled"),
    state("idle", stopReason="cancelled"),
)


def journal(bodies: Sequence[AnyBody]) -> list[Event]:
    return [Event(seq, AT + 7000 * seq, body) for seq, body in enumerate(bodies, 1)]


def told(bodies: Sequence[AnyBody] = BODIES, *, agent: str | None = "claude") -> Account:
    gathering = AccountBuilder()
    gathering.add(journal(bodies))
    return account(gathering, agent=agent)


if __name__ == "__main__":
    sys.stdout.write("".join((to_html if sys.argv[1:] == ["html"] else to_markdown)(told())))
