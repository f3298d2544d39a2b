"""A transcript as Markdown: to be read as it is, or in whatever shows Markdown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from antiphon.engine.items import Plan
from antiphon.engine.terminals import Terminal
from antiphon.engine.tools import ToolCall
from antiphon.engine.transcript import Message, MessageType
from antiphon.schema import v2
from antiphon.text_safety import printed_text, safe_line, safe_text
from antiphon.transcripts import words
from antiphon.transcripts.accounts import Account, Entry
from antiphon.transcripts.harmless import code, fenced, harmless, inline
from antiphon.transcripts.writers import Writers


def to_markdown(account: Account) -> Iterator[str]:
    """Write the document, piece by piece; all of it is safe to show."""
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
        for block in _WRITERS.write(entry, account):
            yield f"\n{block}\n"


def _time(at: int | None) -> str:
    return "" if at is None else f" ({words.clock(at)})"


def _message(entry: Entry, account: Account) -> Iterator[str]:
    message: Message = entry.what
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
    return f"\\[{inline(words.block_words(block))}\\]"


def _link(url: str, name: str) -> str:
    shown, target = inline(safe_line(name)), safe_line(url, limit=4000)
    if words.is_safe_link(url) and target == url and not set(url) & set(" ()<>\\"):
        return f"[{shown}]({url})"
    return f"{shown} {code(target)}"


def _call(entry: Entry, account: Account) -> Iterator[str]:
    call: ToolCall = entry.what
    mark = words.MARKS.get(str(call.status), "●")
    kind = words.kind_words(call)
    yield f"{mark} **{inline(kind or 'tool')}** {code(words.call_title(call))} ({inline(words.status(call))})"
    for asked in account.answers.get(call.id, ()):
        yield f"Answer: {inline(words.answer(asked))}"
    if call.locations and not any(isinstance(content, v2.Diff) for content in call.content):
        yield ", ".join(map(code, words.places(call, account.cwd)))
    for content in call.content:
        if isinstance(content, v2.Content):
            block = content.content
            shown = printed_text(block.text).strip("\n") if isinstance(block, v2.TextContent) else None
            if shown != "":
                yield _block(block) if shown is None else fenced(shown)
        elif isinstance(content, v2.Diff):
            yield from _diff(content, account.cwd)
        elif isinstance(content, v2.Terminal):
            terminal = account.fold.terminals.get(content.terminal_id)
            if terminal is not None:
                yield _terminal(terminal)


def _diff(diff: v2.Diff, cwd: str) -> Iterator[str]:
    changes = [words.change_words(change, cwd) for change in diff.changes]
    if changes:
        yield ", ".join(map(code, changes))
    if diff.patch is not None:
        yield fenced(safe_text(diff.patch.text).strip("\n"), "diff")


def _terminal(terminal: Terminal) -> str:
    command = f"$ {safe_line(terminal.command)}\n" if terminal.command else ""
    ended = words.exit_text(terminal)
    shown = printed_text(terminal.text).expandtabs(8).strip("\n")
    return fenced("\n".join(filter(None, [f"{command}{shown}".rstrip("\n"), f"[{ended}]" if ended else ""])))


def _lone_terminal(entry: Entry, account: Account) -> Iterator[str]:
    yield _terminal(entry.what)


def _plan(entry: Entry, account: Account) -> Iterator[str]:
    plan = entry.what.latest.plan
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


def _compaction(entry: Entry, account: Account) -> Iterator[str]:
    yield from _quoted("The conversation so far was summed up", entry.what.summary)


def _subagent(entry: Entry, account: Account) -> Iterator[str]:
    yield f"A subagent worked: {code(safe_line(entry.what.title or entry.what.id))}"


def _session_note(entry: Entry, account: Account) -> Iterator[str]:
    yield from _quoted("A message between sessions", entry.what.content)


def _notice(entry: Entry, account: Account) -> Iterator[str]:
    notice: v2.Notice = entry.what
    told = "" if notice.description is None else f": {inline(safe_line(notice.description, limit=2000))}"
    yield f"*{inline(safe_line(notice.title))}*{told}"


def _asked(entry: Entry, account: Account) -> Iterator[str]:
    yield f"{inline(safe_line(entry.what.title))} {inline(words.answer(entry.what))}"


def _ended(entry: Entry, account: Account) -> Iterator[str]:
    told = words.ending(entry.what)
    if told:
        yield f"*{inline(told)}*"


def _unknown(entry: Entry, account: Account) -> Iterator[str]:
    tag = safe_line(str(entry.what.update.get("sessionUpdate")), limit=80)
    yield f"Something of a kind unknown here: {code(tag)}"


_WRITERS = Writers(
    message=_message,
    call=_call,
    plan=_plan,
    lone_terminal=_lone_terminal,
    compaction=_compaction,
    subagent=_subagent,
    session_note=_session_note,
    unknown=_unknown,
    notice=_notice,
    asked=_asked,
    ended=_ended,
)
