"""The types that the seeds ask for, which the agent library, the client library and the hub share."""

from __future__ import annotations

from typing import Any

import pytest

from antiphon.errors import InvalidParams
from antiphon.schema import v1, v2
from antiphon.schema.codec import codec
from antiphon.schema.methods import Kind
from antiphon.schema.v1.optins import TurnComplete
from antiphon.schema.version import OptIns
from tests.requirements.seed_places import PLACES, V1S, V2S, version_of

PLACE = PLACES
"""Where the tests of this file count: everywhere."""
CHUNKS = ("agent_message_chunk", "user_message_chunk", "agent_thought_chunk")


def decoded(dialect: str, **update: Any) -> Any:
    version = codec(version_of(dialect))
    params = {"sessionId": "s", "update": {"content": {"type": "text", "text": "x"}, **update}}
    return version.params(Kind.NOTIFICATION, "session/update", version.encode(params)).update


@pytest.mark.parametrize("kind", CHUNKS)
@pytest.mark.parametrize("dialect", V1S)
def test_the_id_of_a_v1_chunk_is_optional_and_null_is_none(dialect: str, kind: str) -> None:
    assert decoded(dialect, sessionUpdate=kind, messageId="m").message_id == "m"
    absent, null = decoded(dialect, sessionUpdate=kind), decoded(dialect, sessionUpdate=kind, messageId=None)
    assert not absent.message_id
    assert not null.message_id


@pytest.mark.parametrize("wrong", [{}, {"messageId": None}, {"messageId": 1}])
@pytest.mark.parametrize("kind", CHUNKS)
@pytest.mark.parametrize("dialect", V2S)
def test_the_id_of_a_v2_chunk_is_required(dialect: str, kind: str, wrong: dict[str, Any]) -> None:
    assert decoded(dialect, sessionUpdate=kind, messageId="m").message_id == "m"
    with pytest.raises(InvalidParams):
        decoded(dialect, sessionUpdate=kind, **wrong)


@pytest.mark.parametrize("dialect", [*V1S, *V2S])
def test_ids_of_messages_have_a_type_of_their_own(dialect: str) -> None:
    made = v1 if version_of(dialect) == 1 else v2
    assert made.MessageId.__supertype__ is str
    assert made.MessageId is not made.SessionId


@pytest.mark.parametrize("dialect", ["v1+turn_complete"])
def test_turn_complete_and_its_capability_have_types(dialect: str) -> None:
    update = {"sessionUpdate": "turn_complete", "promptRequestId": "2", "stopReason": "end_turn"}
    told = decoded(dialect, **update)
    assert isinstance(told, TurnComplete)
    assert (told.prompt_request_id, str(told.stop_reason)) == ("2", "end_turn")
    assert v1.SessionCapabilities(turn_complete={}).turn_complete == {}
    assert OptIns(turn_complete=True).to_meta() == {"turnComplete": True}
