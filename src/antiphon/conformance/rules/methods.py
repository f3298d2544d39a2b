"""Rules about methods: only defined ones, in their direction, and only what the other side offers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import UNSET

from antiphon.conformance.recording import Recording, Role
from antiphon.conformance.rules.exchanges import exchanges_of
from antiphon.conformance.rules.rule import Facts, Finding, Rules
from antiphon.conformance.rules.values import at, objects
from antiphon.conformance.shapes import glimpse
from antiphon.schema.methods import Kind, Sender, find

rules = Rules()
BOTH = (Role.AGENT, Role.CLIENT)
GATED_UPDATES = {
    "notice": ("NOTE-01", ("session", "notices")),
    "compaction_update": ("COMP-01", ("session", "compaction")),
    "compaction_summary_chunk": ("COMP-01", ("session", "compaction")),
    "plan_update": ("PLAN-V1-03", ("plan",)),
    "plan_removed": ("PLAN-V1-03", ("plan",)),
    "subagent_update": ("SUB-01", ("subagents",)),
}
"""v1 updates that a client has to ask for, and the path of its capability."""
GATED_REQUESTS = {
    1: {
        "session/load": ("SESS-12", ("loadSession",)),
        "session/resume": ("SESS-14", ("sessionCapabilities", "resume")),
        "session/list": ("SESS-29", ("sessionCapabilities", "list")),
        "session/close": ("SESS-29", ("sessionCapabilities", "close")),
        "session/delete": ("SESS-29", ("sessionCapabilities", "delete")),
        "session/fork": ("SESS-51", ("sessionCapabilities", "fork")),
        "session/archive": ("INIT-14", ("sessionCapabilities", "archive")),
        "session/unarchive": ("INIT-14", ("sessionCapabilities", "archive")),
        "session/status": ("INIT-14", ("sessionCapabilities", "status")),
        "session/set_title": ("INIT-14", ("sessionCapabilities", "title")),
        "logout": ("AUTH-11", ("auth", "logout")),
        "auth/status": ("INIT-14", ("auth", "status")),
    },
    2: {
        "session/new": ("INIT-14", ("session",)),
        "session/resume": ("INIT-14", ("session",)),
        "session/list": ("INIT-14", ("session",)),
        "session/close": ("INIT-14", ("session",)),
        "session/prompt": ("INIT-14", ("session",)),
        "session/delete": ("INIT-14", ("session", "delete")),
        "session/fork": ("SESS-51", ("session", "fork")),
        "session/archive": ("INIT-14", ("session", "archive")),
        "session/unarchive": ("INIT-14", ("session", "archive")),
        "session/status": ("INIT-14", ("session", "status")),
        "session/set_title": ("INIT-14", ("session", "title")),
        "auth/status": ("INIT-14", ("auth", "status")),
    },
}
"""Requests of a client that an agent has to offer, and the path of its capability."""
PROMPT_BLOCKS = {"image": "image", "audio": "audio", "resource": "embeddedContext"}


@rules.add("EXT-12", "FS-05", parties=(Role.AGENT,))
@rules.add("EXT-12", parties=(Role.CLIENT,))
def methods_are_defined(recording: Recording, facts: Facts) -> Iterator[Finding]:
    """Methods without `_` are those of the protocol, sent by the right side, as request or notification."""
    for frame in recording.of(facts.judged):
        name = frame.method
        if name is None or name.startswith("_"):
            continue
        kind = Kind.REQUEST if frame.is_request else Kind.NOTIFICATION
        method = find(kind, name, facts.version)
        ok = method is not None and method.sender in (Sender.EITHER, str(facts.judged))
        text = f"expected a method that v{facts.version} lets the {facts.judged} send as {kind}, got `{name}`"
        old = facts.version == 2 and facts.judged is Role.AGENT and name.startswith(("fs/", "terminal/"))
        yield Finding("FS-05" if old and not ok else "EXT-12", ok, text, (frame,))
        if facts.version == 2 and facts.judged is Role.AGENT:
            yield Finding("FS-05", True, "expected no method of the v1 file system and terminals")


@rules.add("FS-01", "TERMV1-01", versions=(1,))
def client_tools_were_offered(recording: Recording, facts: Facts) -> Iterator[Finding]:
    """An agent reads files and runs terminals of a client only if the client offered it."""
    offered = facts.client_capabilities
    flags = {
        "fs/read_text_file": ("FS-01", at(offered, "fs", "readTextFile") is True),
        "fs/write_text_file": ("FS-01", at(offered, "fs", "writeTextFile") is True),
    }
    for frame in recording.of(Role.AGENT):
        name = frame.method or ""
        if name.startswith("terminal/"):
            ok = offered.get("terminal") is True
            yield Finding("TERMV1-01", ok, f"expected no `{name}`: the client has no `terminal`", (frame,))
        elif name in flags:
            id, ok = flags[name]
            yield Finding(id, ok, f"expected no `{name}`: the client did not offer it", (frame,))
        elif frame.update_kind:
            for id in ("FS-01", "TERMV1-01"):
                yield Finding(id, True, "expected no request that the client did not offer")


@rules.add("ELIC-02")
def elicitation_was_offered(recording: Recording, facts: Facts) -> Iterator[Finding]:
    """An agent elicits only in a mode that the client offered."""
    for frame in recording.of(Role.AGENT):
        if frame.method == "elicitation/create" and frame.is_request:
            mode = frame.get("params", "mode")
            known = mode in ("form", "url")
            ok = not known or at(facts.client_capabilities, "elicitation", str(mode)) is not None
            yield Finding("ELIC-02", ok, f"expected no elicitation of the mode {glimpse(mode)}", (frame,))
        elif frame.update_kind:
            yield Finding("ELIC-02", True, "expected no elicitation that the client did not offer")


@rules.add("NOTE-01", "COMP-01", "PLAN-V1-03", "SUB-01", versions=(1,))
def updates_were_asked_for(recording: Recording, facts: Facts) -> Iterator[Finding]:
    """Some v1 updates are only for clients that have the capability."""
    for frame in recording.of(Role.AGENT):
        kind = frame.update_kind or ""
        if kind in GATED_UPDATES:
            id, path = GATED_UPDATES[kind]
            ok = at(facts.client_capabilities, *path) is not None
            text = f"expected no `{kind}`: the client has no capability `{'.'.join(path)}`"
            yield Finding(id, ok, text, (frame,))
        elif kind:
            for id in ("NOTE-01", "COMP-01", "PLAN-V1-03"):
                yield Finding(id, True, "expected no update that the client did not ask for")


@rules.add("AUTH-05", "AUTH-13")
def login_methods_fit_the_client(recording: Recording, facts: Facts) -> Iterator[Finding]:
    """Login methods have different ids, and terminal ones are for clients that have a terminal."""
    for request, answer in exchanges_of(recording, Role.CLIENT).answered("initialize"):
        listed = objects(answer.get("result", "authMethods"))
        if not listed:
            continue
        ids = [each.get("id" if facts.version == 1 else "methodId") for each in listed]
        text = f"expected different ids of login methods, got {glimpse(ids)}"
        yield Finding("AUTH-05", len({glimpse(id) for id in ids}) == len(ids), text, (request, answer))
        offered = at(facts.client_capabilities, "auth", "terminal")
        terminal = any(each.get("type") == "terminal" for each in listed)
        ok = not terminal or offered is True or isinstance(offered, dict)
        text = "expected no login method of type `terminal`: the client did not offer `auth.terminal`"
        yield Finding("AUTH-13", ok, text, (request, answer))


@rules.add("AUTH-19")
def login_is_possible_where_it_is_required(recording: Recording, facts: Facts) -> Iterator[Finding]:
    """An agent without login methods does not ask for a login."""
    methods: Any = None
    for request, answer in exchanges_of(recording, Role.CLIENT).answered():
        if request.method == "initialize":
            methods = answer.get("result", "authMethods")
        elif not methods:
            text = f"expected no -32000 to `{request.method}`: `authMethods` is empty"
            yield Finding("AUTH-19", answer.error_code != -32000, text, (request, answer))


@rules.add(
    "SESS-12", "SESS-14", "SESS-29", "SESS-51", "AUTH-11", "INIT-14", parties=(Role.CLIENT,)
)  # fmt: skip
def requests_were_offered(recording: Recording, facts: Facts) -> Iterator[Finding]:
    """A client sends only requests that the agent offers."""
    gated = GATED_REQUESTS[facts.version]
    for frame in recording.of(Role.CLIENT):
        if frame.method in gated and frame.is_request:
            id, path = gated[frame.method]
            offered = at(facts.agent_capabilities, *path)
            ok = offered is True or isinstance(offered, dict)
            text = f"expected no `{frame.method}`: the agent has no capability `{'.'.join(path)}`"
            yield Finding(id, ok, text, (frame,))


@rules.add("SESS-09", "SESS-58", "CONT-02", parties=(Role.CLIENT,))
def contents_were_offered(recording: Recording, facts: Facts) -> Iterator[Finding]:
    """A client sends directories and content blocks only if the agent offers to take them."""
    agent = facts.agent_capabilities
    sessions = at(agent, "sessionCapabilities" if facts.version == 1 else "session")
    prompts = at(agent, "promptCapabilities") if facts.version == 1 else at(sessions, "prompt")
    for frame in recording.of(Role.CLIENT):
        if frame.get("params", "additionalDirectories"):
            ok = isinstance(at(sessions, "additionalDirectories"), dict)
            text = "expected no `additionalDirectories`: the agent does not offer them"
            yield Finding("SESS-09", ok, text, (frame,))
        if frame.get("params", "systemPrompt") not in (UNSET, None):
            ok = isinstance(at(sessions, "systemPrompt"), dict)
            text = "expected no `systemPrompt`: the agent does not offer it"
            yield Finding("SESS-58", ok, text, (frame,))
        if frame.method == "session/prompt":
            for kind in (str(block.get("type")) for block in objects(frame.get("params", "prompt"))):
                offered = at(prompts, PROMPT_BLOCKS.get(kind, ""))
                ok = kind not in PROMPT_BLOCKS or offered is True or isinstance(offered, dict)
                text = f"expected no block of type `{kind}`: the agent does not offer to take it"
                yield Finding("CONT-02", ok, text, (frame,))


@rules.add("MCPCFG-02", "MCPCFG-04", "MCPACP-01", parties=(Role.CLIENT,))
def mcp_transports_were_offered(recording: Recording, facts: Facts) -> Iterator[Finding]:
    """A client configures MCP servers only of transports that the agent offers."""
    path = ("mcpCapabilities",) if facts.version == 1 else ("session", "mcp")
    offered = at(facts.agent_capabilities, *path)
    for frame in recording.of(Role.CLIENT):
        for server in objects(frame.get("params", "mcpServers")):
            kind = server.get("type")
            if kind in (("http", "sse", "acp") if facts.version == 1 else ("stdio", "http", "acp")):
                mark = at(offered, str(kind))
                id = "MCPCFG-02" if facts.version == 1 else "MCPCFG-04"
                id = "MCPACP-01" if kind == "acp" else id
                text = f"expected no MCP server of type `{kind}`: the agent does not offer it"
                yield Finding(id, mark is True or isinstance(mark, dict), text, (frame,))


@rules.add("MCPCFG-07", versions=(2,), parties=(Role.CLIENT,))
def environments_name_variables_once(recording: Recording, facts: Facts) -> Iterator[Finding]:
    """The environment of an MCP server should have each variable once."""
    for frame in recording.of(Role.CLIENT):
        for server in objects(frame.get("params", "mcpServers")):
            names = [glimpse(variable.get("name")) for variable in objects(server.get("env"))]
            if names:
                text = f"expected each environment variable once, got {', '.join(names)}"
                yield Finding("MCPCFG-07", len(set(names)) == len(names), text, (frame,))


@rules.add("SESS-27", versions=(2,), parties=(Role.CLIENT,))
def sessions_keep_their_folder(recording: Recording, facts: Facts) -> Iterator[Finding]:
    """A client resumes a session with the folder that it made it with."""
    folders = {
        answer.get("result", "sessionId"): request.get("params", "cwd")
        for request, answer in exchanges_of(recording, Role.CLIENT).answered("session/new")
        if isinstance(answer.get("result", "sessionId"), str)
    }
    for frame in recording.of(Role.CLIENT):
        session = frame.session_id
        if frame.method == "session/resume" and isinstance(session, str) and session in folders:
            text = f"expected the folder {glimpse(folders[session])} of the session"
            yield Finding("SESS-27", frame.get("params", "cwd") == folders[session], text, (frame,))


@rules.add("AUTH-08", "AUTH-10", parties=(Role.CLIENT,))
def logins_were_offered(recording: Recording, facts: Facts) -> Iterator[Finding]:
    """A client logs in with an advertised method that is not of the type `terminal`."""
    known: dict[Any, Any] = {}
    for request, answer in exchanges_of(recording, Role.CLIENT).answered():
        if request.method == "initialize":
            key = "id" if facts.version == 1 else "methodId"
            listed = objects(answer.get("result", "authMethods"))
            known = {glimpse(each.get(key)): each.get("type") for each in listed}
        elif request.method in ("authenticate", "auth/login", "auth/logout"):
            if facts.version == 2:
                text = f"expected no `{request.method}`: the agent has no login methods"
                yield Finding("AUTH-10", bool(known), text, (request,))
            if request.method != "auth/logout" and known:
                id = glimpse(request.get("params", "methodId"))
                ok = id in known and known[id] != "terminal"
                yield Finding("AUTH-08", ok, f"expected an advertised login method, got {id}", (request,))


@rules.add("INIT-01", parties=(Role.CLIENT,))
def initialize_comes_first(recording: Recording, facts: Facts) -> Iterator[Finding]:
    """The first frame of a client is `initialize`."""
    first = next(recording.of(Role.CLIENT))
    yield Finding("INIT-01", first.method == "initialize", "expected `initialize` first", (first,))


@rules.add("INIT-12", versions=(1,), parties=BOTH)
def both_sides_introduce_themselves(recording: Recording, facts: Facts) -> Iterator[Finding]:
    """v1 peers should say their name and version."""
    for request, answer in exchanges_of(recording, Role.CLIENT).answered("initialize"):
        if facts.judged is Role.CLIENT:
            ok = any(isinstance(request.get("params", key), dict) for key in ("clientInfo", "info"))
            yield Finding("INIT-12", ok, "expected `clientInfo` in `initialize`", (request,))
        elif isinstance(answer.result, dict):
            ok = any(isinstance(answer.get("result", key), dict) for key in ("agentInfo", "info"))
            yield Finding("INIT-12", ok, "expected `agentInfo` in the answer to `initialize`", (answer,))


@rules.add("INIT-13", versions=(2,), parties=BOTH)
def names_are_not_empty(recording: Recording, facts: Facts) -> Iterator[Finding]:
    """v2 peers say their name and version, and neither is empty."""
    for request, answer in exchanges_of(recording, Role.CLIENT).answered("initialize"):
        frame, key = (request, "params") if facts.judged is Role.CLIENT else (answer, "result")
        info = frame.get(key, "info")
        for name in ("name", "version"):
            if isinstance(info, dict) and isinstance(info.get(name), str):
                text = f"expected a `{name}` in `info` that is not empty"
                yield Finding("INIT-13", bool(info[name].strip()), text, (frame,))
