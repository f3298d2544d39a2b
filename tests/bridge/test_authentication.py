"""Ways to log in cross both ways and come back the same (24.1)."""

from __future__ import annotations

from antiphon.bridge.authentication import methods_v1, methods_v2, status_v1, status_v2
from antiphon.schema import v1, v2
from antiphon.schema.wire import Unknown
from tests.requirements.marks import requirement

TERMINAL = v2.AuthMethodTerminal(
    method_id=v2.AuthMethodId("console"),
    name="Console",
    description="Here",
    args=["--login"],
    env=[v2.EnvVariable(name="A", value="1"), v2.EnvVariable(name="B", value="2")],
    meta={"k": 1},
)
KEY = v2.AuthMethodAgent(method_id=v2.AuthMethodId("key"), name="Key", description="A key", meta={"k": [2]})
STATUS = v2.AuthStatusResponse(
    state=v2.AuthState.AUTHENTICATED,
    accounts=[v2.AuthAccount(label="ann", active=True, name="Ann", email="a@b.c", organization="O")],
    meta={"k": 3},
)


@requirement("AUTH-02", "AUTH-03")
def test_the_methods_come_back_the_same() -> None:
    assert methods_v2(methods_v1([TERMINAL, KEY])) == [TERMINAL, KEY]
    assert methods_v1([TERMINAL])[0] == v1.AuthMethodTerminal(
        id=v1.AuthMethodId("console"),
        name="Console",
        description="Here",
        args=["--login"],
        env={"A": "1", "B": "2"},
        meta={"k": 1},
    )


@requirement("AUTH-04")
def test_an_unknown_type_is_not_shown_to_v1_which_would_take_it_for_another() -> None:
    assert methods_v1([Unknown({"type": "_odd", "methodId": "odd", "name": "Odd"})]) == []


def test_24_of_two_variables_of_one_name_the_last_counts() -> None:
    twice = v2.AuthMethodTerminal(
        method_id=v2.AuthMethodId("t"),
        name="T",
        env=[v2.EnvVariable(name="A", value="1"), v2.EnvVariable(name="A", value="2")],
    )
    (made,) = methods_v1([twice])
    assert isinstance(made, v1.AuthMethodTerminal)
    assert made.env == {"A": "2"}


@requirement("AUTH-23", "AUTH-24")
def test_a_status_comes_back_the_same_and_an_unknown_state_as_unknown() -> None:
    assert status_v2(status_v1(STATUS)) == STATUS
    odd = v1.AuthStatusResponse(state=v1.AuthState("half"))
    assert status_v2(odd) == v2.AuthStatusResponse(state=v2.AuthState.UNKNOWN)
