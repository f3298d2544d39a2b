"""Which requirement a misshapen object breaks: one table per version, by type or by field of a type."""

from __future__ import annotations

from functools import cache

from antiphon.conformance.recording import Role
from antiphon.conformance.requirements import requirements
from antiphon.conformance.revisions import has
from antiphon.conformance.shapes import Fault, Problem

BOTH = {
    "RPC-21": "Error",
    "RPC-43": "ToolCallLocation",
    "SESS-03": "NewSessionResponse",
    "SESS-31": "ListSessionsResponse",
    "SESS-32": "SessionInfo",
    "SESS-38": "CloseSessionResponse",
    "SESS-47": "DeleteSessionResponse",
    "CONF-01": "SetSessionConfigOptionResponse ConfigOptionUpdate",
    "CONF-02": "SessionConfigSelect.currentValue SessionConfigBoolean.currentValue",
    "USAGE-03": "Cost",
    "NOTE-03": "Notice",
    "COMP-02": "CompactionUpdate CompactionSummaryChunk",
    "PERM-02": "PermissionOption",
    "ELIC-04": "ElicitationFormMode ElicitationUrlMode",
    "ELIC-05": "ElicitationFormMode.requestedSchema ElicitationSchema StringPropertySchema "
    "NumberPropertySchema IntegerPropertySchema BooleanPropertySchema MultiSelectPropertySchema",
    "ELIC-06": "ElicitationUrlMode.elicitationId ElicitationUrlMode.url",
    "ELIC-07": "ElicitationAcceptAction ElicitationDeclineAction ElicitationCancelAction",
    "CONT-03": "TextContent ImageContent AudioContent ResourceLink EmbeddedResource TextResourceContents "
    "BlobResourceContents",
}
VERSIONS = {
    1: {
        "INIT-10": "InitializeRequest",
        "INIT-11": "InitializeResponse",
        "INIT-17": "AgentCapabilities PromptCapabilities McpCapabilities SessionCapabilities "
        "AgentAuthCapabilities",
        "INIT-18": "ClientCapabilities FileSystemCapabilities ClientSessionCapabilities "
        "SessionConfigOptionsCapabilities AuthCapabilities ElicitationCapabilities",
        "AUTH-02": "AuthMethodAgent AuthMethodTerminal",
        "AUTH-06": "AuthenticateRequest",
        "SESS-01": "NewSessionRequest",
        "SESS-12": "LoadSessionRequest",
        "MCPCFG-02": "McpServerHttp McpServerSse",
        "PROMPT-V1-01": "PromptRequest",
        "PROMPT-V1-02": "PromptResponse",
        "TOOL-V1-01": "ToolCall",
        "TOOL-V1-02": "SessionToolCallUpdate",
        "TOOL-V1-05": "Content Diff Terminal",
        "PERM-V1-01": "RequestPermissionRequest ToolCallUpdate",
        "PERM-V1-02": "RequestPermissionResponse SelectedPermissionOutcome CancelledPermissionOutcome",
        "PLAN-V1-01": "Plan PlanEntry",
        "CONF-V1-02": "SetSessionModeRequest",
        "CONF-V1-03": "CurrentModeUpdate",
        "CONF-V1-07": "SetSessionConfigOptionId SetSessionConfigOptionBoolean",
        "CMD-V1-01": "AvailableCommandsUpdate AvailableCommand UnstructuredCommandInput",
        "FS-02": "ReadTextFileResponse",
        "FS-03": "WriteTextFileResponse",
        "TERMV1-02": "CreateTerminalResponse",
        "TERMV1-04": "TerminalOutputResponse",
        "TERMV1-05": "WaitForTerminalExitResponse",
    },
    2: {
        "INIT-13": "InitializeRequest InitializeResponse Implementation",
        "INIT-16": "AgentCapabilities AgentAuthCapabilities ClientCapabilities ClientAuthCapabilities "
        "ElicitationCapabilities",
        "INIT-21": "SessionCapabilities PromptCapabilities McpCapabilities",
        "AUTH-03": "AuthMethodAgent AuthMethodTerminal",
        "AUTH-07": "LoginAuthRequest",
        "SESS-02": "NewSessionRequest",
        "MCPCFG-04": "McpServerHttp McpServerStdio",
        "PROMPT-V2-01": "PromptRequest",
        "PROMPT-V2-03": "PromptResponse",
        "MSG-02": "UserMessage.messageId UserMessageChunk.messageId AgentMessage.messageId "
        "AgentMessageChunk.messageId AgentThought.messageId AgentThoughtChunk.messageId",
        "TOOL-V2-10": "ToolCallCapabilities SessionToolCallUpdate.capabilities",
        "TERMV2-01": "Terminal",
        "TERMV2-07": "TerminalSize TerminalUpdate.cwd",
        "DIFF-01": "Diff DiffPatch",
        "DIFF-02": "DiffAdd DiffDelete DiffModify DiffMove DiffCopy",
        "PERM-V2-01": "RequestPermissionRequest",
        "PERM-V2-04": "CommandPermissionSubject",
        "PLAN-V2-01": "PlanUpdate PlanItems PlanEntry",
        "CONF-V2-01": "SessionConfigSelect.configId SessionConfigBoolean.configId "
        "SessionConfigSelectGroup.groupId SetSessionConfigOptionId SetSessionConfigOptionBoolean "
        "SetSessionConfigOptionRequest.type",
        "CONF-V2-04": "SessionConfigSelect.options SessionConfigSelectGroup.options "
        "SessionConfigSelectOption SessionConfigSelectGroup",
        "CMD-V2-01": "Command TextCommandInput",
        "CONT-04": "Annotations.priority ResourceLink.size",
        "ELIC-21": "StringMultiSelectItems TitledMultiSelectItems StringPropertySchema.enum "
        "StringPropertySchema.oneOf MultiSelectPropertySchema.items",
    },
}
VALUES = {
    1: {
        "TOOL-V1-03": "ToolCall.status SessionToolCallUpdate.status ToolCallUpdate.status",
        "TOOL-V1-05": "ToolCall.type SessionToolCallUpdate.type",
        "TOOL-V1-07": "ToolCall.kind SessionToolCallUpdate.kind ToolCallUpdate.kind",
        "PROMPT-V1-05": "PromptResponse.stopReason",
        "PLAN-V1-01": "PlanEntry",
        "PERM-02": "PermissionOption.kind",
        "CONT-03": "UserMessageChunk.type AgentMessageChunk.type AgentThoughtChunk.type Content.type "
        "PromptRequest.type",
        "NOTE-03": "Notice.severity",
        "COMP-02": "CompactionUpdate.status",
        "PERM-V1-02": "RequestPermissionResponse.outcome",
    },
    2: {
        "PROMPT-V2-15": "SessionStateUpdate.stopReason",
        "PROMPT-V2-49": "SessionStateUpdate.state",
        "PLAN-V2-04": "PlanEntry PlanUpdate.type",
        "AUTH-04": "InitializeResponse.type",
        "NOTE-03": "Notice.severity",
        "COMP-02": "CompactionUpdate.status",
    },
}
"""The same for values and tags that the schema does not have."""
PATHS = {
    "SESS-04": "NewSessionRequest.cwd LoadSessionRequest.cwd ResumeSessionRequest.cwd ForkSessionRequest.cwd",
    "SESS-09": "NewSessionRequest.additionalDirectories LoadSessionRequest.additionalDirectories "
    "ResumeSessionRequest.additionalDirectories ForkSessionRequest.additionalDirectories",
    "SESS-32": "SessionInfo",
    "MCPCFG-08": "McpServerStdio.command",
    "TERMV2-07": "TerminalUpdate.cwd",
    "PERM-V2-04": "CommandPermissionSubject.cwd",
}
KEYS = {
    "INIT-22": "ClientCapabilities.* ClientAuthCapabilities.* ElicitationCapabilities.*",
    "INFO-02": "SessionInfoUpdate.sessionId SessionInfoUpdate.cwd SessionInfoUpdate.additionalDirectories",
    "MSG-10": "PromptRequest.messageId",
    "AUTH-12": "AgentAuthCapabilities.logout",
    "AUTH-16": "AuthMethodTerminal.command AuthMethodAgent.command",
    "PROMPT-V2-03": "PromptResponse.stopReason",
    "CONF-V2-01": "SessionConfigSelect.id SessionConfigBoolean.id SessionConfigSelectGroup.group",
    "CONF-V2-06": "NewSessionResponse.modes ResumeSessionResponse.modes",
}
"""Keys that an object must not have for a reason of its own."""
OLD_UPDATES = {"tool_call": "TOOL-V2-01", "plan": "PLAN-V2-05", "current_mode_update": "CONF-V2-06"}
"""Updates of v1 that do not exist in v2."""
SINCE = {
    "ElicitationSchema.type": "elicitation-schema",
    "ElicitationSchema.properties": "elicitation-schema",
}
"""Differences of `revisions.tsv` that made a field required."""
GENERAL = {
    Fault.META: "EXT-04",
    Fault.SNAKE_CASE: "RPC-44",
    Fault.UNKNOWN_KEY: "EXT-03",
    Fault.RELATIVE_PATH: "RPC-43",
    Fault.BASE64: "CONT-04",
}


class ShapeTable:
    """The requirements about shapes of one version and one party."""

    def __init__(self, version: int, party: Role) -> None:
        self._version = version
        self._party = party
        self._malformed = _inverted(BOTH, self.judges) | _inverted(VERSIONS[version], self.judges)
        self._values = _inverted(VALUES[version], self.judges)
        self._paths = _inverted(PATHS, self.judges)
        self._keys = _inverted(KEYS, self.judges)
        self._kept: dict[frozenset[str], frozenset[str]] = {}
        """What `kept_by` returned: the objects of a stream are mostly alike."""

    def judges(self, id: str) -> bool:
        """Whether a requirement is one of this version and party, and more than a permission."""
        row = requirements()[id]
        return (
            row.level != "MAY"
            and row.party in (str(self._party), "both")
            and self._version in row.protocol_versions
        )

    @property
    def ids(self) -> set[str]:
        """Every requirement that a shape may break."""
        tables = (self._malformed, self._values, self._paths, self._keys)
        named = {id for table in tables for id in table.values()}
        rest = {*GENERAL.values(), *OLD_UPDATES.values(), "RPC-40", "EXT-06", "EXT-08", "EXT-10", "INIT-23"}
        return named | {id for id in rest if self.judges(id)}

    def kept_by(self, seen: frozenset[str]) -> frozenset[str]:
        """Return the requirements that an object without problems keeps, by the types and fields in it."""
        if seen not in self._kept:
            self._kept[seen] = self._find_kept(seen)
        return self._kept[seen]

    def _find_kept(self, seen: frozenset[str]) -> frozenset[str]:
        tables = (self._malformed, self._values, self._paths)
        kept = {table[name] for table in tables for name in seen if name in table}
        kept |= {"EXT-03", "RPC-44"}
        if any(name.endswith("._meta") for name in seen):
            kept.add("EXT-04")
        return frozenset(id for id in kept if self.judges(id))

    def broken_by(self, problem: Problem, *, tagged: set[str], revision: str) -> str | None:
        """Return the requirement that a problem breaks; `None` if none of this party does."""
        owner = problem.owners[0] if problem.owners else ""
        since = SINCE.get(f"{owner}.{problem.key}")
        if since is not None and self._version == 2 and not has(revision, since):
            return None
        match problem.fault:
            case Fault.MALFORMED:
                general = "EXT-08" if self._version == 2 and tagged & set(problem.owners) else "RPC-40"
                found = _innermost(self._malformed, problem)
                if found == "INIT-21" and isinstance(problem.value, bool):
                    found = "INIT-16"
            case Fault.UNKNOWN_VALUE | Fault.UNKNOWN_VARIANT:
                general = "EXT-06" if self._version == 2 else "EXT-10"
                found = _innermost(self._values, problem, fields_only=owner != "PlanEntry")
                if problem.key == "sessionUpdate" and self._version == 2:
                    found = OLD_UPDATES.get(str(problem.value))
            case Fault.UNKNOWN_KEY:
                general = "INIT-23" if owner.endswith("Capabilities") else GENERAL[problem.fault]
                found = self._keys.get(f"{owner}.{problem.key}") or self._keys.get(f"{owner}.*")
            case Fault.RELATIVE_PATH:
                general = GENERAL[problem.fault]
                found = self._paths.get(f"{owner}.{problem.key}") or self._paths.get(owner)
            case _:
                general, found = GENERAL[problem.fault], None
        id = found or general
        return id if self.judges(id) else None


def _inverted(table: dict[str, str], judges: object) -> dict[str, str]:
    assert callable(judges)
    return {name: id for id, names in table.items() if judges(id) for name in names.split()}


def _innermost(table: dict[str, str], problem: Problem, *, fields_only: bool = False) -> str | None:
    """Return the entry of the field, else of the innermost type that has one."""
    owners = problem.owners
    if owners and (found := table.get(f"{owners[0]}.{problem.key}")):
        return found
    if fields_only:
        return None
    return next((table[name] for name in owners if name in table), None)


@cache
def shape_table(version: int, party: Role) -> ShapeTable:
    """Return the table of a version and a party."""
    return ShapeTable(version, party)
