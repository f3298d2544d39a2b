"""Scenarios about messages: what a client makes of chunks and patches, judged by what it prints."""

from __future__ import annotations

from typing import Any

from antiphon.conformance.client.case import ClientCase
from antiphon.conformance.client.played_agent import say, text
from antiphon.conformance.client.printed import Words
from antiphon.conformance.client.trials import Trial, run_trials
from antiphon.conformance.scenario import Collection

scenarios = Collection("messages")


def _message(id: str, kind: str = "agent_message", **fields: Any) -> dict[str, Any]:
    return {"sessionUpdate": kind, "messageId": id, **fields}


def _without_ids(word: Words) -> list[dict[str, Any]]:
    absent = {"sessionUpdate": "agent_message_chunk", "content": text(f"{word()} ")}
    null = {**absent, "messageId": None, "content": text(f"{word()} ")}
    return [absent, null, say(f"{word()} ", "judge-with-id"), {**absent, "content": text(f"{word()} ")}]


def _opaque(word: Words) -> list[dict[str, Any]]:
    return [say(f"{word()} ", id) for id in ("7", "007", " 7", "7.0", "ID", "id", "")]


def _interleaved(word: Words) -> list[dict[str, Any]]:
    return [say(f"{word()} ", id) for id in ("judge-a", "judge-b", "judge-a", "judge-b", "judge-a")]


def _same_id(word: Words) -> list[dict[str, Any]]:
    id = "judge-shared"
    return [
        _message(id, "agent_thought", content=[text("a thought")]),
        say(f"{word()} ", id),
        _message(id, "agent_thought", content=[text("another thought")]),
        say(f"{word()} ", id),
    ]


def _patches(word: Words) -> list[dict[str, Any]]:
    id = "judge-patched"
    return [
        _message(id, content=[text("cleared later")]),
        _message(id, content=None),
        _message(id, content=[text("replaced later")]),
        _message(id, content=[text(f"{word()} "), text(f"{word()} ")]),
        _message(id),
        _message(id, _meta={"judge": True}),
    ]


def _empty(word: Words) -> list[dict[str, Any]]:
    return [_message("judge-empty"), say(f"{word()} ", "judge-empty")]


def _appended(word: Words) -> list[dict[str, Any]]:
    id = "judge-appended"
    return [say("replaced later", id), _message(id, content=[text(f"{word()} ")]), say(f"{word()} ", id)]


def _malformed(word: Words) -> list[dict[str, Any]]:
    return [
        say(f"{word()} ", "judge-malformed-list"),
        _message("judge-malformed-list", content="no list"),
        _message("judge-malformed-block", content=[{"type": "text"}, text(f"{word()} "), 7]),
    ]


V1 = (
    Trial("MSG-05", "show chunks without `messageId`, with `null` and with an id", _without_ids),
    Trial("MSG-09", "keep messages apart whose ids are different strings", _opaque),
)
V2 = (
    Trial("MSG-14", "begin a message without content as empty", _empty),
    Trial("MSG-15", "append chunks to the content of a message, wherever it came from", _appended),
    Trial("MSG-06", "route interleaved chunks to their messages by id", _interleaved),
    Trial("MSG-08", "keep a message and a thought with the same id apart", _same_id),
    Trial("MSG-13", "leave content alone that a patch does not name", _patches),
    Trial("MSG-23", "skip malformed blocks, and keep the content if the list is malformed", _malformed),
    Trial("MSG-09", "keep messages apart whose ids are different strings", _opaque),
)


@scenarios.add(*(trial.requirement for trial in V1), versions=(1,))
async def chunks(case: ClientCase) -> None:
    """A client shows all chunks, with and without message ids."""
    await run_trials(case, V1)


@scenarios.add(*(trial.requirement for trial in V2), versions=(2,))
async def chunks_and_patches(case: ClientCase) -> None:
    """A client applies chunks and patches to the messages that they name."""
    await run_trials(case, V2)
