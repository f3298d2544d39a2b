"""Transcripts as Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from antiphon.engine.items import Compaction, Plan, UnknownUpdate
from antiphon.engine.subagents import SessionNote, SubagentInfo
from antiphon.engine.tools import Terminal, ToolCall
from antiphon.engine.transcript import Message, MessageType
from antiphon.schema import v2
from antiphon.text_safety import printed_text, safe_line, safe_text
from antiphon.transcripts import words
from antiphon.transcripts.accounts import Account, Asked, Ended
from antiphon.transcripts.foreign_markdown import code, harmless, inline
from antiphon.transcripts.words import fenced


def to_markdown(account: Account) -> Iterator[str]:
    """Write the document, piece by piece. All of it is safe to show."""
    return map(safe_text, _document(account))


def _document(account: Account) -> Iterator[str]:
    yield f"# {inline(words.title(account))}\n\n"
    for name, value in words.facts(account):
        yield f"- {name}: {code(value) if name in ('Folder', 'Session') else inline(value)}\n"
    named = False
    for entry in account.entries:
        what = entry.what
        if isinstance(what, Message) and what.type is MessageType.USER:
            named = False
            yield f"\n## {inline(words.sender(what))}{_time(entry.at)}\n"
        elif isinstance(what, Message | ToolCall | Plan) and not named:
            named = True
            yield f"\n## {inline(words.agent(account))}{_time(entry.at)}\n"
        for block in WRITERS[type(what)](what, account):
            yield f"\n{block}\n"


def _time(at: int | None) -> str:
    return "" if at is None else f" ({words.clock(at)})"


def _message(message: Message, account: Account) -> Iterator[str]:
    if message.deleted:
        yield f"*{words.DELETED}*"
    elif message.type is MessageType.THOUGHT:
        yield from _quoted("Thought", message.content)
    else:
        yield from map(_block, message.content)
    for line in words.annotation_lines(message):
        yield f"> {inline(line)}"


def _quoted(title: str, blocks: list[Any]) -> Iterator[str]:
    body = "\n\n".join(map(_block, blocks))
    yield "\n".join(f"> {line}".rstrip() for line in f"**{title}**\n\n{body}".split("\n"))


def _block(block: Any) -> str:
    if isinstance(block, v2.TextContent):
        return harmless(block.text)
    if isinstance(block, v2.ResourceLink):
        return _link(block.uri, block.title or block.name)
    if isinstance(block, v2.EmbeddedResource) and isinstance(block.resource, v2.TextResourceContents):
        return f"{code(safe_line(block.resource.uri))}\n\n{fenced(printed_text(block.resource.text))}"
    return f"\\[{inline(words.block_label(block))}\\]"


def _link(url: str, name: str) -> str:
    shown, target = inline(safe_line(name)), safe_line(url, limit=4000)
    if words.is_safe_link(url) and target == url and not set(url) & set(" ()<>\\"):
        return f"[{shown}]({url})"
    return f"{shown} {code(target)}"


def _call(call: ToolCall, account: Account) -> Iterator[str]:
    mark = words.CALL_MARKS.get(str(call.status), "●")
    kind, status = words.kind_text(call.kind), words.status_text(call)
    yield f"{mark} **{inline(kind or 'tool')}** {code(words.call_title(call))} ({inline(status)})"
    for asked in account.answers.get(call.id, ()):
        yield f"Answer: {inline(words.answer_text(asked))}"
    if call.locations and not any(isinstance(content, v2.Diff) for content in call.content):
        yield ", ".join(map(code, words.places(call, account.cwd)))
    for part in words.call_parts(call, account.fold):
        if isinstance(part, v2.Diff):
            yield from _diff(part, account.cwd)
        elif isinstance(part, Terminal):
            yield _terminal(part)
        elif not isinstance(part, v2.TextContent):
            yield _block(part)
        elif shown := printed_text(part.text).strip("\n"):
            yield fenced(shown)


def _diff(diff: v2.Diff, cwd: str) -> Iterator[str]:
    changes = [words.change_text(change, cwd) for change in diff.changes]
    if changes:
        yield ", ".join(map(code, changes))
    if diff.patch is not None:
        yield fenced(safe_text(diff.patch.text).strip("\n"), "diff")


def _terminal(terminal: Terminal) -> str:
    command = f"$ {safe_line(terminal.command)}\n" if terminal.command else ""
    ended = words.exit_text(terminal)
    shown = printed_text(terminal.text).expandtabs(8).strip("\n")
    return fenced("\n".join(filter(None, [f"{command}{shown}".rstrip("\n"), f"[{ended}]" if ended else ""])))


def _plan(item: Plan, account: Account) -> Iterator[str]:
    plan = item.latest.plan
    if isinstance(plan, v2.PlanItems):
        lines = [
            f"- [{'x' if item.status == 'completed' else ' '}] {inline(safe_line(item.content))}"
            + (f" ({inline(safe_line(str(item.status)))})" if item.status not in _PLAIN else "")
            for item in plan.entries
        ]
        yield "\n".join(["**Plan**", "", *lines])
    elif isinstance(plan, v2.PlanMarkdown):
        yield f"**Plan**\n\n{harmless(plan.content)}"
    elif isinstance(plan, v2.PlanFile):
        yield f"**Plan** {_link(plan.uri, plan.uri)}"


_PLAIN = ("completed", "pending")


def _notice(notice: v2.Notice, account: Account) -> Iterator[str]:
    about = "" if notice.description is None else f": {inline(safe_line(notice.description, limit=2000))}"
    yield f"*{inline(safe_line(notice.title))}*{about}"


def _ended(ended: Ended, account: Account) -> Iterator[str]:
    text = words.ended_text(ended)
    if text:
        yield f"*{inline(text)}*"


WRITERS: dict[type, Callable[[Any, Account], Iterator[str]]] = {
    Message: _message,
    ToolCall: _call,
    Plan: _plan,
    Terminal: lambda item, account: iter([_terminal(item)]),
    Compaction: lambda item, account: _quoted(words.COMPACTED, item.summary),
    SubagentInfo: lambda item, account: iter([f"{words.SUBAGENT}: {code(safe_line(item.title or item.id))}"]),
    SessionNote: lambda item, account: _quoted(words.SESSION_NOTE, item.content),
    UnknownUpdate: lambda item, account: iter([f"{words.UNKNOWN}: {code(words.unknown_tag(item))}"]),
    v2.Notice: _notice,
    Asked: lambda asked, account: iter(
        [f"{inline(safe_line(asked.title))} {inline(words.answer_text(asked))}"]
    ),
    Ended: _ended,
}
"""How each kind of entry is written. `page` has the same kinds."""
