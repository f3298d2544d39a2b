"""Transcripts as one HTML page that runs nothing and loads nothing. Its content security policy says so."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterator
from html import escape
from pathlib import Path
from typing import Any

from antiphon.engine.items import Compaction, Plan, UnknownUpdate
from antiphon.engine.subagents import SessionNote, SubagentInfo
from antiphon.engine.tools import Terminal, ToolCall
from antiphon.engine.transcript import Message, MessageType
from antiphon.html_page import page_head
from antiphon.schema import v2
from antiphon.text_safety import is_safe, printed_text, safe_line, safe_text
from antiphon.transcripts import words
from antiphon.transcripts.accounts import Account, Asked, Ended, Entry
from antiphon.transcripts.foreign_markdown import preformatted, prose
from antiphon.transcripts.patches import patch_rows

IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""Types that can hold nothing but a picture."""
OPEN_LINES = 60
"""Diffs up to this many lines are shown unfolded."""
STYLE = Path(__file__).with_name("page.css").read_text(encoding="utf-8")


def to_html(account: Account) -> Iterator[str]:
    """Write the page, piece by piece. All of it is safe to show, also characters from Markdown entities."""
    return map(safe_text, _page(account))


def _page(account: Account) -> Iterator[str]:
    title = escape(words.title(account))
    yield page_head(title, STYLE, images=True)
    yield f'<header class="top">\n<h1 dir="auto">{title}</h1>\n<dl>\n'
    for name, value in words.facts(account):
        yield f'<div><dt>{name}</dt><dd dir="auto">{escape(value)}</dd></div>\n'
    yield "</dl>\n</header>\n<main>\n"
    yield from _entries(account)
    yield "</main>\n<footer>Written by Antiphon from the journal of the session.</footer>\n</body>\n</html>\n"


def _entries(account: Account) -> Iterator[str]:
    """Write the entries, with the agent's name before its first entry after a prompt."""
    named = False
    for entry in account.entries:
        what = entry.what
        if isinstance(what, Message) and what.type is MessageType.USER:
            named = False
        elif isinstance(what, Message | ToolCall | Plan) and not named:
            named = True
            yield f'<p class="who"><bdi>{escape(words.agent(account))}</bdi>{_time(entry.at)}</p>\n'
        yield from WRITERS[type(what)](entry, account)


def _message(entry: Entry, account: Account) -> Iterator[str]:
    message: Message = entry.what
    if message.type is MessageType.THOUGHT and not message.deleted:
        glimpse = safe_line(message.text, limit=160)
        yield f'<details class="thought"><summary>Thought <span>{escape(glimpse)}</span></summary>\n'
        yield from _content(message)
        yield "</details>\n"
    elif message.type is MessageType.USER:
        who = escape(words.sender(message))
        yield f'<article class="user">\n<p class="who"><bdi>{who}</bdi>{_time(entry.at)}</p>\n'
        yield from _content(message)
        yield "</article>\n"
    else:
        yield from _content(message)


def _content(message: Message) -> Iterator[str]:
    """Write the content of a message, or that it was deleted, and its reactions and notes."""
    if message.deleted:
        yield f'<p class="note">{words.DELETED}</p>\n'
    yield from map(_block, message.content)
    for line in words.annotation_lines(message):
        yield f'<p class="note" dir="auto">{escape(line)}</p>\n'


def _time(at: int | None) -> str:
    return "" if at is None else f' <time datetime="{words.iso(at)}">{words.clock(at)}</time>'


def _block(block: Any) -> str:
    if isinstance(block, v2.TextContent):
        return prose(block.text)
    if isinstance(block, v2.ImageContent) and (data := _picture(block)) is not None:
        kind = escape(block.mime_type)
        return f'<p><img src="data:{kind};base64,{data}" alt="{escape(words.block_label(block))}"></p>\n'
    if isinstance(block, v2.ResourceLink):
        return f'<p class="file" dir="auto">{_link(block.uri, block.title or block.name)}</p>\n'
    if isinstance(block, v2.EmbeddedResource) and isinstance(block.resource, v2.TextResourceContents):
        name = escape(safe_line(block.resource.uri))
        return (
            f'<details class="file"><summary>{name}</summary>\n'
            f"{preformatted(printed_text(block.resource.text))}</details>\n"
        )
    return f'<p class="file" dir="auto">{escape(words.block_label(block))}</p>\n'


def _picture(block: v2.ImageContent) -> str | None:
    """Return the data of an image, encoded again, or `None` if it is something else."""
    try:
        data = base64.b64decode(block.data, validate=True)
    except (binascii.Error, ValueError):
        return None
    return base64.b64encode(data).decode() if block.mime_type in IMAGES else None


def _link(url: str, name: str) -> str:
    shown = escape(safe_line(name))
    if words.is_safe_link(url) and is_safe(url):
        return f'<a href="{escape(url)}" rel="noopener noreferrer nofollow">{shown}</a>'
    return f"{shown} <code>{escape(safe_line(url))}</code>"


def _call(entry: Entry, account: Account) -> Iterator[str]:
    call: ToolCall = entry.what
    mark = words.CALL_MARKS.get(str(call.status), "●")
    state = {"✓": "good", "✗": "bad", "⊘": "off"}.get(mark, "busy")
    head = f'<span class="mark" title="{escape(words.status_text(call))}">{mark}</span>'
    if kind := words.kind_text(call.kind):
        head += f'<span class="kind">{escape(kind)}</span>'
    command = " command" if call.kind == "execute" else ""
    head += f'<span class="what{command}" dir="auto">{escape(words.call_title(call))}</span>'
    if call.locations and not _patched(call):
        head += f'<span class="where" dir="auto">{escape(", ".join(words.places(call, account.cwd)))}</span>'
    body = "".join(_call_body(call, account))
    if not body:
        yield f'<div class="call {state}">{head}</div>\n'
        return
    opened = " open" if state == "bad" or 0 < _patched(call) <= OPEN_LINES else ""
    yield f'<details class="call {state}"{opened}><summary>{head}</summary>\n'
    yield f'<div class="body">\n{body}</div></details>\n'


def _call_body(call: ToolCall, account: Account) -> Iterator[str]:
    for asked in account.answers.get(call.id, ()):
        yield f'<p class="asked" dir="auto">Answer: {escape(words.answer_text(asked))}</p>\n'
    for part in words.call_parts(call, account.fold):
        if isinstance(part, v2.Diff):
            yield _diff(part, account.cwd)
        elif isinstance(part, Terminal):
            yield _terminal(part)
        elif not isinstance(part, v2.TextContent):
            yield _block(part)
        elif shown := printed_text(part.text).strip("\n"):
            yield preformatted(shown, kind="output")  # the output of a tool is not Markdown


def _patched(call: ToolCall) -> int:
    """Count the lines of the patches of a tool call."""
    diffs = [content.patch for content in call.content if isinstance(content, v2.Diff)]
    return sum(patch.text.count("\n") for patch in diffs if patch is not None)


_LINES = {"+": "add", "-": "del", "@": "hunk"}


def _diff(diff: v2.Diff, cwd: str) -> str:
    changes = "\n".join(words.change_text(change, cwd) for change in diff.changes)
    head = f'<p class="where" dir="auto">{escape(changes)}</p>\n' if changes else ""
    if diff.patch is None:
        return head
    shown = []
    for row in patch_rows(safe_text(diff.patch.text).rstrip("\n").split("\n")):
        kind = f' class="{_LINES[row.kind]}"' if row.kind in _LINES else ""
        if row.kind != "file":
            shown.append(f"<span{kind}>{escape(row.text) or ' '}</span>")
    return f'{head}<pre class="diff">{"".join(shown)}</pre>\n'


def _terminal(terminal: Terminal) -> str:
    command = f"$ {safe_line(terminal.command)}\n" if terminal.command else ""
    shown = printed_text(terminal.text).expandtabs(8).strip("\n")
    ended = words.exit_text(terminal)
    status = f'<span class="exit">{escape(ended)}</span>' if ended else ""
    return f'<pre class="terminal"><b>{escape(command)}</b>{escape(shown)}{status}</pre>\n'


def _plan(entry: Entry, account: Account) -> Iterator[str]:
    plan = entry.what.latest.plan
    if isinstance(plan, v2.PlanItems):
        done = sum(item.status == "completed" for item in plan.entries)
        yield f'<section class="plan"><h2>Plan <span>{done} of {len(plan.entries)}</span></h2>\n<ul>\n'
        for item in plan.entries:
            status = str(item.status)
            known = status if status in words.BOXES else "pending"
            shown = f'<span dir="auto">{escape(safe_line(item.content))}</span>'
            yield f'<li class="{known}"><span class="box">{words.BOXES[known]}</span>{shown}</li>\n'
        yield "</ul></section>\n"
    elif isinstance(plan, v2.PlanMarkdown):
        yield f'<section class="plan"><h2>Plan</h2>\n{prose(plan.content)}</section>\n'
    elif isinstance(plan, v2.PlanFile):
        yield f'<section class="plan"><h2>Plan</h2>\n<p>{_link(plan.uri, plan.uri)}</p></section>\n'


def _folded(title: str, blocks: list[Any]) -> Iterator[str]:
    yield f'<details class="thought"><summary>{title}</summary>\n'
    yield from map(_block, blocks)
    yield "</details>\n"


def _note(text: str, more: str, tag: str = "b") -> Iterator[str]:
    yield f'<p class="note" dir="auto">{escape(text)}: <{tag} dir="auto">{escape(more)}</{tag}></p>\n'


def _notice(entry: Entry, account: Account) -> Iterator[str]:
    notice: v2.Notice = entry.what
    about = "" if notice.description is None else f" {escape(safe_line(notice.description, limit=2000))}"
    yield f'<p class="note" dir="auto"><b>{escape(safe_line(notice.title))}</b>{about}</p>\n'


def _asked(entry: Entry, account: Account) -> Iterator[str]:
    asked: Asked = entry.what
    title, outcome = escape(safe_line(asked.title)), escape(words.answer_text(asked))
    yield f'<p class="note" dir="auto">{title} <b>{outcome}</b></p>\n'


def _ended(entry: Entry, account: Account) -> Iterator[str]:
    text = words.ended_text(entry.what)
    if text:
        yield f'<p class="ended" dir="auto"><span>{escape(text)}</span></p>\n'


WRITERS: dict[type, Callable[[Entry, Account], Iterator[str]]] = {
    Message: _message,
    ToolCall: _call,
    Plan: _plan,
    Terminal: lambda entry, account: iter([_terminal(entry.what)]),
    Compaction: lambda entry, account: _folded(words.COMPACTED, entry.what.summary),
    SubagentInfo: lambda entry, account: _note(words.SUBAGENT, safe_line(entry.what.title or entry.what.id)),
    SessionNote: lambda entry, account: _folded(words.SESSION_NOTE, entry.what.content),
    UnknownUpdate: lambda entry, account: _note(words.UNKNOWN, words.unknown_tag(entry.what), "code"),
    v2.Notice: _notice,
    Asked: _asked,
    Ended: _ended,
}
"""How each kind of entry is written. `markdown` has the same kinds."""
