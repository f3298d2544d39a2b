"""What the schemas cannot say: pages, names, patches, merges. Data only, each with its reason."""

from __future__ import annotations

PAGES: dict[str, tuple[str, str]] = {
    "identifiers": (
        "ids and other named strings and numbers that several pages use",
        "SessionId MessageId ToolCallId TerminalId RequestId ProtocolVersion AbsolutePath MediaType",
    ),
    "errors": (
        "the error object and what is known of its data",
        "Error ErrorCode ErrorData UnsupportedProtocolVersionErrorData SessionNotFoundErrorData",
    ),
    "content": (
        "content blocks",
        "Role Annotations Icon IconTheme TextContent ImageContent AudioContent ResourceLink EmbeddedResource "
        "EmbeddedResourceResource TextResourceContents BlobResourceContents ContentBlock",
    ),
    "mcp": (
        "MCP servers and MCP over ACP",
        "EnvVariable HttpHeader McpServer McpServerHttp McpServerSse McpServerAcp McpServerStdio "
        "McpServerAcpId McpRequestId McpError MessageMcpRequest MessageMcpResponse MessageMcpNotification",
    ),
    "terminals": (
        "terminals: the client's in v1, the agent's own in v2",
        "TerminalExitStatus CreateTerminalRequest CreateTerminalResponse TerminalOutputRequest "
        "TerminalOutputResponse ReleaseTerminalRequest ReleaseTerminalResponse WaitForTerminalExitRequest "
        "WaitForTerminalExitResponse KillTerminalRequest KillTerminalResponse TerminalOutput TerminalSize "
        "TerminalCapabilities TerminalCancelCapabilities TerminalUpdate TerminalOutputChunk "
        "CancelTerminalRequest CancelTerminalResponse",
    ),
    "file_system": (
        "the client's file system",
        "ReadTextFileRequest ReadTextFileResponse WriteTextFileRequest WriteTextFileResponse",
    ),
    "tool_calls": (
        "tool calls and what they show",
        "ToolKind ToolCallStatus ToolCallLocation ToolCallContent Content Diff DiffChange DiffFileType "
        "DiffPathChange DiffPathPairChange DiffPatch DiffPatchFormat Terminal ToolCall ToolCallUpdate "
        "ToolCallContentChunk ToolCallCapabilities ToolCallCancelCapabilities CancelToolCallRequest "
        "CancelToolCallResponse",
    ),
    "permissions": (
        "permission questions",
        "RequestPermissionRequest RequestPermissionResponse RequestPermissionOutcome "
        "CancelledPermissionOutcome SelectedPermissionOutcome RequestPermissionSubject "
        "ToolCallPermissionSubject CommandPermissionSubject PermissionOption PermissionOptionId "
        "PermissionOptionKind",
    ),
    "elicitation": (
        "questions with a form or a URL",
        "CreateElicitationRequest CreateElicitationResponse ElicitationFormMode ElicitationUrlMode "
        "ElicitationId ElicitationSchema ElicitationSchemaType ElicitationPropertySchema StringFormat "
        "EnumOption StringPropertySchema NumberPropertySchema IntegerPropertySchema BooleanPropertySchema "
        "MultiSelectPropertySchema MultiSelectItems StringMultiSelectItems TitledMultiSelectItems "
        "ElicitationAcceptAction ElicitationContentValue CompleteElicitationNotification",
    ),
    "plans": (
        "plans",
        "Plan PlanId PlanEntry PlanEntryPriority PlanEntryStatus PlanItems PlanFile PlanMarkdown "
        "PlanUpdateContent PlanUpdate PlanRemoved",
    ),
    "modes": (
        "session modes",
        "SessionMode SessionModeId SessionModeState CurrentModeUpdate SetSessionModeRequest "
        "SetSessionModeResponse",
    ),
    "config_options": (
        "session config options",
        "SessionConfigOption SessionConfigId SessionConfigOptionCategory SessionConfigValueId "
        "SessionConfigSelectOptions SessionConfigSelectOption SessionConfigSelectGroup SessionConfigGroupId "
        "SessionConfigSelect SessionConfigBoolean SetSessionConfigOptionRequest "
        "SetSessionConfigOptionResponse ConfigOptionUpdate",
    ),
    "commands": (
        "slash commands",
        "AvailableCommand Command AvailableCommandInput TextCommandInput UnstructuredCommandInput "
        "AvailableCommandsUpdate",
    ),
    "usage": ("token usage and cost", "Usage Cost UsageUpdate"),
    "prompt": (
        "prompts, turns and the state of a session",
        "PromptRequest PromptResponse StopReason CancelNotification CancelSessionNotification StateUpdate "
        "BackgroundWork BackgroundTerminal BackgroundToolCall BackgroundSubagent",
    ),
    "messages": ("messages and their chunks", "ContentChunk UserMessage AgentMessage AgentThought"),
    "notices": ("notices", "Notice NoticeSeverity"),
    "compaction": (
        "compaction of a session's context",
        "CompactionId CompactionStatus CompactionUpdate CompactionSummaryChunk",
    ),
    "session_list": (
        "sessions seen from outside: listing, titles, archiving, status",
        "SessionInfo SessionInfoUpdate SessionListCursor ListSessionsRequest ListSessionsResponse "
        "SessionArchiveFilter DeleteSessionRequest DeleteSessionResponse ArchiveSessionRequest "
        "ArchiveSessionResponse UnarchiveSessionRequest UnarchiveSessionResponse SessionStatus "
        "SessionStatusRequest SessionStatusResponse SetSessionTitleRequest SetSessionTitleResponse",
    ),
    "session_setup": (
        "opening, resuming, forking and closing a session",
        "SystemPrompt SystemPromptMode NewSessionRequest NewSessionResponse LoadSessionRequest "
        "LoadSessionResponse ResumeSessionRequest ResumeSessionResponse ReplayFrom ReplayFromStart "
        "ForkSessionRequest ForkSessionResponse CloseSessionRequest CloseSessionResponse",
    ),
    "subagents": (
        "subagents and messages between sessions",
        "SubagentUpdate SubagentSessionCapabilities SessionCancelCapabilities SessionMessage "
        "SessionMessageChunk",
    ),
    "authentication": (
        "authentication",
        "AuthMethod AuthMethodId AuthMethodAgent AuthMethodTerminal AuthenticateRequest AuthenticateResponse "
        "LoginAuthRequest LoginAuthResponse LogoutRequest LogoutResponse LogoutAuthRequest "
        "LogoutAuthResponse AuthState AuthAccount AuthStatusRequest AuthStatusResponse "
        "AuthStatusUpdateNotification",
    ),
    "providers": (
        "model providers",
        "ProviderId ProviderInfo ProviderCurrentConfig LlmProtocol ListProvidersRequest "
        "ListProvidersResponse SetProviderRequest SetProviderResponse DisableProviderRequest "
        "DisableProviderResponse",
    ),
    "initialization": (
        "the handshake and every capability",
        "InitializeRequest InitializeResponse Implementation AgentCapabilities ClientCapabilities "
        "SessionCapabilities PromptCapabilities PromptImageCapabilities PromptAudioCapabilities "
        "PromptEmbeddedContextCapabilities McpCapabilities McpStdioCapabilities McpHttpCapabilities "
        "McpAcpCapabilities SessionListCapabilities SessionDeleteCapabilities "
        "SessionAdditionalDirectoriesCapabilities SessionSystemPromptCapabilities "
        "SessionSystemPromptModeCapabilities SessionSystemPromptOverrideCapabilities SessionForkCapabilities "
        "SessionArchiveCapabilities SessionStatusCapabilities SessionTitleCapabilities "
        "SessionResumeCapabilities SessionCloseCapabilities AgentAuthCapabilities AuthStatusCapabilities "
        "LogoutCapabilities ProvidersCapabilities FileSystemCapabilities ClientSessionCapabilities "
        "CompactionCapabilities SessionConfigOptionsCapabilities BooleanConfigOptionCapabilities "
        "NoticeCapabilities SubagentCapabilities PlanCapabilities AuthCapabilities ClientAuthCapabilities "
        "TerminalAuthCapabilities ElicitationCapabilities ElicitationFormCapabilities "
        "ElicitationUrlCapabilities",
    ),
    "cancellation": ("cancelling one request", "CancelRequestNotification"),
    "proxy": (
        "proxy chains",
        "InitializeProxyRequest InitializeProxyResponse ProxySuccessorRequest ProxySuccessorResponse "
        "ProxySuccessorNotification",
    ),
    "updates": (
        "the union of all session updates",
        "SessionUpdate SessionNotification UpdateSessionNotification",
    ),
}
"""Every definition has one page; a page imports only from pages above it."""

ENVELOPES = {
    "AgentRequest", "AgentResponse", "AgentNotification", "ClientRequest", "ClientResponse",
    "ClientNotification", "ProxyRequest", "ProxyResponse", "ProxyNotification",
    "ExtRequest", "ExtResponse", "ExtNotification",
}  # fmt: skip
"""JSON-RPC frames (`jsonrpc.frames`) and payloads of methods outside the table (EXT-01): no types here."""

MERGED = {
    "RunningStateUpdate": "StateUpdate",
    "IdleStateUpdate": "StateUpdate",
    "RequiresActionStateUpdate": "StateUpdate",
    "UnknownStateUpdate": "StateUpdate",
    "ErrorStopReason": "StateUpdate",
    "ElicitationSessionScope": "ElicitationFormMode, ElicitationUrlMode",
    "ElicitationRequestScope": "ElicitationFormMode, ElicitationUrlMode",
}
"""Definitions whose fields live in another struct: msgspec refuses a second tag field in a union, and
alternatives inside one object are fields with a check (ELIC-04)."""

ALL = "*"
PATCHES: dict[int, dict[str, str]] = {
    1: {"SessionInfoUpdate": ALL, "CompactionUpdate": ALL, "SubagentUpdate": ALL, "SessionMessage": ALL},
    2: {
        "UserMessage": ALL,
        "AgentMessage": ALL,
        "AgentThought": ALL,
        "ToolCallUpdate": ALL,
        "TerminalUpdate": ALL,
        "CompactionUpdate": ALL,
        "SessionInfoUpdate": ALL,
        "UsageUpdate": "cost",
        "SubagentUpdate": ALL,
        "SessionMessage": ALL,
    },
}
"""Where absent, `null` and a value are three things (MSG-13, MSG-18, MSG-21); v1 tool calls are no patches
in this sense: there `null` means nothing (TOOL-V1-02)."""

VARIANT_NAMES = {
    ("SessionUpdate", "tool_call_update"): "SessionToolCallUpdate",
    ("SessionUpdate", "state_update"): "SessionStateUpdate",
    ("DiffChange", "add"): "DiffAdd",
    ("DiffChange", "delete"): "DiffDelete",
    ("DiffChange", "modify"): "DiffModify",
    ("DiffChange", "move"): "DiffMove",
    ("DiffChange", "copy"): "DiffCopy",
    ("SetSessionConfigOptionRequest", "id"): "SetSessionConfigOptionId",
    ("SetSessionConfigOptionRequest", "boolean"): "SetSessionConfigOptionBoolean",
    ("CreateElicitationResponse", "decline"): "ElicitationDeclineAction",
    ("CreateElicitationResponse", "cancel"): "ElicitationCancelAction",
    ("RequestPermissionOutcome", "cancelled"): "CancelledPermissionOutcome",
}
"""Names of variants that are not a definition of their own; others are called after their tag."""

UNTAGGED_NAMES = {
    ("SetSessionConfigOptionRequest", "value"): "SetSessionConfigOptionId",
    ("MessageMcpResponse", "result"): "MessageMcpResult",
    ("MessageMcpResponse", "error"): "MessageMcpFailure",
}
"""Names of untagged inline variants, by their first own property."""

ALWAYS_OPEN = {"SessionUpdate"}
"""Unions read as open though v1 closes them: an unknown update must not fail the session (EXT-10)."""

SOLE_VARIANT_WITHOUT_TAG = {"AvailableCommand"}
"""Unions of one known variant whose tag may be missing on receipt (C-07)."""

EXTRA_VARIANTS = {
    (1, "SessionUpdate"): (
        "optins", ("TurnComplete", "MessageUpdate", "UserMessage", "SessionStateUpdate"),
    ),
    (2, "SessionUpdate"): ("proposed", ("StateChange",)),
}  # fmt: skip
"""Hand-written variants, in modules the generator leaves alone, that readers accept as well."""

EXTRA_FIELDS = {
    (1, "SessionCapabilities"): (("turnComplete", "turn_complete", "dict[str, Any] | None"),),
    (1, "StateUpdate"): (("stop_reason", "proposed_reason", "IdleStopReason | None"),),
    (2, "StateUpdate"): (("stop_reason", "proposed_reason", "StopReason | None"),),
    **{
        (1, f"{verb}SessionResponse"): (("models", "models", "SessionModelState | None"),)
        for verb in ("New", "Load", "Fork", "Resume")
    },
}
"""Fields that no pinned schema has, by their key, their name and their type: the capability of the
`turn_complete` update (TC-05), the proposed key of a stop reason, which is read and never written (SD-02),
and the models of a session, which v1 had while they were unstable and agents still send."""

EXTRA_TYPES = {(1, "SessionModelState"): "models"}
"""Hand-written types that extra fields have, and the modules they are in."""

EXTRA_METHODS = {
    1: (("session/set_model", "models.SetSessionModelRequest", "models.SetSessionModelResponse"),),
}
"""Requests of clients that no pinned schema has; each names a session."""

STOP_REASON = {1: "IdleStopReason", 2: "StopReason"}
"""The open enum of the stop reasons on a state update; v1 has a closed `StopReason` of its own."""

ERROR_CODES = {
    -32700: "PARSE_ERROR",
    -32600: "INVALID_REQUEST",
    -32601: "METHOD_NOT_FOUND",
    -32602: "INVALID_PARAMS",
    -32603: "INTERNAL_ERROR",
    -32800: "REQUEST_CANCELLED",
    -32000: "AUTH_REQUIRED",
    -32002: "RESOURCE_NOT_FOUND",
    -32022: "UNSUPPORTED_PROTOCOL_VERSION",
}

PLAIN_STRINGS = {"AbsolutePath", "MediaType"}
"""Named strings that are no ids: plain aliases, so that callers need not wrap them."""

SENDERS = {"agent": "CLIENT", "client": "AGENT", "protocol": "EITHER", "proxy": "EITHER"}
"""The schemas name the side that handles a method; the table names the side that sends it."""

METHOD_SENDERS = {"proxy/initialize": "CLIENT"}
"""Where the handling side alone does not tell: only `proxy/successor` goes both ways (PROXY-01, PROXY-03)."""
