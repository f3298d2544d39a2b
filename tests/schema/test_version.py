"""Which version two peers agree on, and in which dialect (section 2 of the catalogue)."""

from __future__ import annotations

import pytest

from antiphon.errors import InvalidParams, InvalidRequest, RemoteError, UnsupportedVersion
from antiphon.schema.handshake import TABLE, Input, State
from antiphon.schema.version import Agreement, Dialect, OptIns, choose_version, read_answer, read_offer
from tests.requirements.marks import requirement

INFO = {"name": "x", "version": "1"}


@requirement("INIT-02", "INIT-03", "INIT-04")
@pytest.mark.parametrize(
    ("requested", "supported", "chosen"),
    [
        (1, (1, 2), 1),
        (2, (1, 2), 2),
        (3, (1, 2), 2),
        (65535, (1, 2), 2),
        (2, (1,), 1),
        (0, (1,), 1),
        (7, (2,), 2),
    ],
)
def test_the_answer_is_the_highest_we_speak_up_to_what_was_asked(requested, supported, chosen):
    assert choose_version(requested, supported) == chosen


@requirement("INIT-03", "RPC-24")
@pytest.mark.parametrize(("requested", "supported"), [(0, (1, 2)), (1, (2,))])
def test_nothing_in_common_is_an_error_that_says_what_there_is(requested, supported):
    with pytest.raises(UnsupportedVersion) as caught:
        choose_version(requested, supported)
    wire = caught.value.to_wire()
    assert wire.code == -32022
    assert wire.data == {"requested": requested, "supported": list(supported)}


@requirement("INIT-01")
@pytest.mark.parametrize("version", [None, "2", 2.0, True, -1, 65536, [2]])
def test_a_version_is_a_uint16(version):
    with pytest.raises(InvalidParams):
        read_offer({"protocolVersion": version})


@requirement("INIT-27")
def test_a_repeat_may_not_ask_for_less():
    with pytest.raises(InvalidRequest):
        read_offer({"protocolVersion": 1}, selected=2)
    assert read_offer({"protocolVersion": 2, "info": INFO}, selected=2).version == 2


@requirement("INIT-09")
def test_only_a_newer_request_is_read_forgivingly():
    newer = read_offer({"protocolVersion": 3})
    assert (newer.exact, newer.params["info"]) == (False, {"name": "unknown", "version": "unknown"})
    exact = read_offer({"protocolVersion": 2})
    assert exact.exact
    assert "info" not in exact.params


def offer_v1(ours):
    return read_offer({"protocolVersion": 1, "clientCapabilities": {"_meta": {"antiphon": ours}}})


@pytest.mark.parametrize(
    ("ours", "wanted"),
    [
        ({"turnComplete": True}, OptIns(turn_complete=True)),
        ({"promptLifecycle": 2}, OptIns(prompt_lifecycle=True)),
        ({"messageUpdate": True}, OptIns(message_update=True)),
        ({"turnComplete": 1, "promptLifecycle": True, "messageUpdate": "yes"}, OptIns()),
        ("nonsense", OptIns()),
    ],
)
def test_a_v1_client_asks_for_its_opt_ins_one_by_one(ours, wanted):
    offer = offer_v1(ours)
    assert offer.wanted == wanted
    assert offer.agree(OptIns(True, True, True)) == Agreement(1, Dialect.V1, wanted)
    assert offer.agree(OptIns()) == Agreement(1, Dialect.V1, OptIns())


@pytest.mark.parametrize("given", [OptIns(True, False, True), OptIns(False, True, True)])
def test_an_opt_in_is_confirmed_in_the_words_it_was_asked_in(given):
    answer = {"protocolVersion": 1, "agentCapabilities": {"_meta": {"antiphon": given.to_meta()}}}
    assert offer_v1(given.to_meta()).wanted == given
    assert read_answer(answer) == Agreement(1, Dialect.V1, given)


def test_the_prompt_lifecycle_rules_out_turn_complete_whoever_says_both():
    both = OptIns(True, True, True)
    assert offer_v1(both.to_meta()).agree(both).opt_ins == OptIns(False, True, True)
    answer = {"protocolVersion": 1, "agentCapabilities": {"_meta": {"antiphon": both.to_meta()}}}
    assert read_answer(answer).opt_ins == OptIns(False, True, True)


def test_v2_is_spoken_as_published_unless_the_proposed_dialect_is_asked_for():
    plain = read_offer({"protocolVersion": 2, "info": INFO})
    assert plain.agree() == Agreement(2, Dialect.V2)
    proposed = read_offer(
        {"protocolVersion": 2, "info": INFO, "_meta": {"antiphon": {"dialect": "proposed"}}}
    )
    assert proposed.agree(OptIns(turn_complete=True)) == Agreement(2, Dialect.V2_PROPOSED)


@pytest.mark.parametrize(
    ("answer", "version"),
    [
        ({"protocolVersion": 1}, 1),
        ({"protocolVersion": 1, "info": INFO}, 1),
        ({"protocolVersion": 2, "info": INFO, "capabilities": {}}, 2),
        ({"protocolVersion": 2, "info": INFO, "agentInfo": INFO, "agentCapabilities": {}}, 2),
        ({"protocolVersion": 2, "agentCapabilities": {}}, 1),
        ({"protocolVersion": 2, "agentInfo": INFO}, 1),
        ({"protocolVersion": 2}, 1),
    ],
)
def test_the_answers_number_and_shape_decide_together(answer, version):
    assert read_answer(answer).version == version


@requirement("INIT-06")
@pytest.mark.parametrize(
    "answer",
    [
        None,
        [],
        {},
        {"protocolVersion": 0},
        {"protocolVersion": 3},
        {"protocolVersion": True},
        {"protocolVersion": 9999, "agentInfo": INFO},
    ],
)
def test_an_answer_we_cannot_speak_is_an_error(answer):
    with pytest.raises(RemoteError):
        read_answer(answer)


def test_the_opening_has_a_decision_for_every_state_and_input():
    assert set(TABLE) == {(state, input) for state in State for input in Input}
