"""Antiphon's methods. Types are named by module, and loaded on use."""

from antiphon.schema.methods import OWN, Kind, Row, Sender


def _request(name: str, params: str, result: str, *, session_scoped: bool = True) -> Row:
    return Row(OWN + name, Kind.REQUEST, Sender.CLIENT, True, session_scoped, params, result)


ROWS = (
    _request("annotate", "messages.AnnotateRequest", "messages.AnnotateResponse"),
    _request("answer", "messages.AnswerRequest", "prompts.Done"),
    _request("attach", "sessions.AttachRequest", "sessions.AttachResponse"),
    _request("detach", "sessions.DetachRequest", "sessions.DetachResponse"),
    _request("hubs", "hub.HubsRequest", "hub.HubsResponse", session_scoped=False),
    _request("inject", "prompts.InjectRequest", "prompts.InjectResponse"),
    _request("journal", "hub.JournalRequest", "hub.JournalResponse"),
    _request("link", "hub.LinkRequest", "hub.LinkResponse", session_scoped=False),
    _request("list_inject", "prompts.ListInjectRequest", "prompts.ListInjectResponse"),
    _request("move_inject", "prompts.MoveInjectRequest", "prompts.InjectResponse"),
    _request("remove_annotation", "messages.RemoveAnnotationRequest", "prompts.Done"),
    _request("replace_inject", "prompts.ReplaceInjectRequest", "prompts.InjectResponse"),
    _request("resume_queue", "prompts.ResumeQueueRequest", "prompts.Done"),
    _request("revoke_inject", "prompts.RevokeInjectRequest", "prompts.Done"),
    _request("timeline", "hub.TimelineRequest", "hub.TimelineResponse"),
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
