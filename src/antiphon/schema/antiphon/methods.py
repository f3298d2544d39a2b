"""Antiphon's methods. Types are named by module, and loaded on use."""

from antiphon.schema.methods import OWN, Kind, Row, Sender


def _request(name: str, params: str, result: str, *, session_scoped: bool = True) -> Row:
    return Row(OWN + name, Kind.REQUEST, Sender.CLIENT, True, session_scoped, params, result)


ROWS = (
    _request("add_agent", "hub.AddAgentRequest", "hub.AddAgentResponse", session_scoped=False),
    _request("annotate", "messages.AnnotateRequest", "messages.AnnotateResponse"),
    _request("answer", "messages.AnswerRequest", "prompts.Done"),
    _request("attach", "sessions.AttachRequest", "sessions.AttachResponse"),
    _request("detach", "sessions.DetachRequest", "sessions.DetachResponse"),
    _request("hubs", "hub.HubsRequest", "hub.HubsResponse", session_scoped=False),
    _request("inject", "prompts.InjectRequest", "prompts.InjectResponse"),
    _request("journal", "hub.JournalRequest", "hub.JournalResponse"),
    _request("link", "hub.LinkRequest", "hub.LinkResponse", session_scoped=False),
    _request(
        "list_folders", "folders.ListFoldersRequest", "folders.ListFoldersResponse", session_scoped=False
    ),
    _request("list_agents", "hub.ListAgentsRequest", "hub.ListAgentsResponse", session_scoped=False),
    _request("list_inject", "prompts.ListInjectRequest", "prompts.ListInjectResponse"),
    _request("move_inject", "prompts.MoveInjectRequest", "prompts.InjectResponse"),
    _request("push_key", "hub.PushKeyRequest", "hub.PushKeyResponse", session_scoped=False),
    _request("push_subscribe", "hub.PushSubscribeRequest", "prompts.Done", session_scoped=False),
    _request("push_unsubscribe", "hub.PushUnsubscribeRequest", "prompts.Done", session_scoped=False),
    _request("remove_annotation", "messages.RemoveAnnotationRequest", "prompts.Done"),
    _request("replace_inject", "prompts.ReplaceInjectRequest", "prompts.InjectResponse"),
    _request("resume_queue", "prompts.ResumeQueueRequest", "prompts.Done"),
    _request("revoke_inject", "prompts.RevokeInjectRequest", "prompts.Done"),
    _request(
        "search_sessions", "hub.SearchSessionsRequest", "hub.SearchSessionsResponse", session_scoped=False
    ),
    _request("timeline", "hub.TimelineRequest", "hub.TimelineResponse"),
    _request("find_files", "hub.FindFilesRequest", "hub.FindFilesResponse"),
    _request("transcript", "hub.TranscriptRequest", "hub.TranscriptResponse"),
    Row(
        OWN + "sessions",
        Kind.NOTIFICATION,
        Sender.AGENT,
        True,
        False,
        "hub.SessionsNotification",
        None,
    ),
)
