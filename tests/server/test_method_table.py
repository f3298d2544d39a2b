"""The method table has a row for every method of clients, and says in which lane each runs."""

from __future__ import annotations

from antiphon.schema.methods import VERSIONS, Sender, methods
from antiphon.server.method import Lane
from antiphon.server.methods.table import METHODS, lane_of, method_of

OF_CLIENTS = [
    method for version in VERSIONS for method in methods(version) if method.sender is not Sender.AGENT
]


def test_every_method_of_clients_has_a_row() -> None:
    assert {method.name for method in OF_CLIENTS} <= METHODS.keys()


def test_a_method_runs_in_the_lane_of_a_session_exactly_where_its_params_name_one() -> None:
    named = {method.name: method.session_scoped for method in OF_CLIENTS}
    lanes = {name: METHODS[name].lane is Lane.SESSION for name in named}
    assert lanes == named


def test_a_method_of_our_own_runs_in_the_lane_of_the_session_that_it_names() -> None:
    assert lane_of("_antiphon/inject", {"sessionId": "sess_1"}) == "sess_1"
    assert lane_of("_example.com/echo", {"sessionId": "sess_1"}) == "sess_1"
    assert lane_of("_example.com/echo", {"text": "hello"}) is None


def test_a_method_of_the_connection_runs_in_no_lane_of_a_session() -> None:
    assert lane_of("providers/list", {"sessionId": "sess_1"}) is None
    assert method_of("providers/list").lane is Lane.CONNECTION
