"""Login methods and login status: v1 and v2 name the same things differently (24.1)."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import structs

from antiphon.bridge import losses
from antiphon.bridge.content import twin
from antiphon.bridge.losses import Ledger, Report
from antiphon.schema import v1, v2
from antiphon.schema.wire import Unknown


def methods_v1(methods: Iterable[v2.AuthMethod], *, report: Report | None = None) -> list[v1.AuthMethod]:
    """As a v1 client reads them. A custom type is left out: v1 would take it for one of the agent's own."""
    shown: list[v1.AuthMethod] = []
    for method in methods:
        if isinstance(method, Unknown):
            Ledger(report).lose(losses.AUTH_METHOD, method)
            continue
        fields = structs.asdict(method)
        fields["id"] = v1.AuthMethodId(fields.pop("method_id"))
        if isinstance(method, v2.AuthMethodTerminal):
            fields["env"] = {variable.name: variable.value for variable in method.env}
            shown.append(v1.AuthMethodTerminal(**fields))
        else:
            shown.append(v1.AuthMethodAgent(**fields))
    return shown


def methods_v2(methods: Iterable[v1.AuthMethod]) -> list[v2.AuthMethod]:
    shown: list[v2.AuthMethod] = []
    for method in methods:
        fields = structs.asdict(method)
        fields["method_id"] = v2.AuthMethodId(fields.pop("id"))
        if isinstance(method, v1.AuthMethodTerminal):
            fields["env"] = [v2.EnvVariable(name=name, value=value) for name, value in method.env.items()]
            shown.append(v2.AuthMethodTerminal(**fields))
        else:
            shown.append(v2.AuthMethodAgent(**fields))
    return shown


def status_v1(status: v2.AuthStatusResponse) -> v1.AuthStatusResponse:
    made: v1.AuthStatusResponse = twin(status, v1)
    return made


def status_v2(
    status: v1.AuthStatusResponse
    | v2.AuthStatusResponse
    | v1.AuthStatusUpdateNotification
    | v2.AuthStatusUpdateNotification,
) -> v2.AuthStatusResponse:
    """Return the status that an agent reports. A state that is not known is `unknown` (AUTH-24)."""
    state = v2.AuthState(status.state)
    return v2.AuthStatusResponse(
        state=state if state.known else v2.AuthState.UNKNOWN,
        accounts=twin(status.accounts, v2),
        meta=status.meta,
    )
