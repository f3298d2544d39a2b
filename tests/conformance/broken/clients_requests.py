"""Broken clients: how they answer what the agent asks for."""

from __future__ import annotations

from typing import Any

from tests.conformance.broken.defect import Defects
from tests.conformance.good.client import (
    INVALID_PARAMS,
    ClientFailed,
    GoodClient,
    PatientClient,
    RequestRefused,
)
from tests.conformance.good.client_terminals import Terminal, Terminals

defects = Defects()


@defects.add("PERM-V1-02", versions=(1,))
class AnswersWithTheKind(GoodClient):
    """It answers a permission request with the kind of an option, which is no option."""

    def decide(self, options: list[dict[str, Any]]) -> dict[str, Any]:
        return {"outcome": "selected", "optionId": options[0]["kind"]}


@defects.add("PERM-V2-05", versions=(2,))
class KnowsItsSubjectsOnly(GoodClient):
    """It refuses a permission request about something that it does not know."""

    def on_permission(self, id: Any, params: dict[str, Any]) -> None:
        if params.get("subject", {}).get("type", "command").startswith("_"):
            raise RequestRefused(INVALID_PARAMS, "Unknown subject")
        super().on_permission(id, params)


@defects.add("PERM-V2-09", versions=(2,))
class AnswersAWithdrawnQuestionWithAnError(PatientClient):
    """It answers a permission request that the agent cancels with an error."""

    def cancel_question(self, id: Any) -> None:
        if self.questions.pop(id, None):
            self.refuse(id, -32800, "Request cancelled")


@defects.add("PERM-V2-09", versions=(2,))
class IgnoresAWithdrawnQuestion(PatientClient):
    """It never answers a permission request that the agent cancels."""

    def cancel_question(self, id: Any) -> None:
        pass


@defects.add("PROMPT-V1-12", versions=(1,), also=("PERM-V1-03",))
class ForgetsQuestionsOnCancel(PatientClient):
    """It leaves permission requests open when the turn is cancelled."""

    def cancel(self) -> None:
        self.questions.clear()
        super().cancel()


@defects.add("PROMPT-V1-12", versions=(1,), also=("PERM-V1-03",))
class CancelsOneQuestionOnly(PatientClient):
    """It answers only the first of two open permission requests when the turn is cancelled."""

    def cancel(self) -> None:
        while len(self.questions) > 1:
            self.questions.popitem()
        super().cancel()


@defects.add("ELIC-03", versions=(2,))
class RefusesModesAsUnknownMethods(GoodClient):
    """It refuses a mode that it did not advertise with the wrong code."""

    def on_elicitation(self, id: Any, params: dict[str, Any]) -> None:
        if params.get("mode") != "form":
            raise RequestRefused(-32603, "Internal error")
        super().on_elicitation(id, params)


@defects.add("ELIC-07", versions=(1,))
class FillsInText(GoodClient):
    """It answers a form with a text instead of its fields."""

    def fill_in(self, schema: dict[str, Any]) -> dict[str, Any]:
        return {"action": "accept", "content": "yes"}


@defects.add("ELIC-12", versions=(2,))
class FailsOnACompletion(GoodClient):
    """It fails on the completion of an elicitation that it does not know."""

    def on_unknown_notification(self, method: str) -> None:
        if method == "elicitation/complete":
            raise ClientFailed("no such elicitation")


@defects.add("ELIC-19", versions=(2,))
class KnowsItsFormatsOnly(GoodClient):
    """It refuses a form with an unknown string format."""

    def fill_in(self, schema: dict[str, Any]) -> dict[str, Any]:
        if any("format" in field for field in schema["properties"].values()):
            raise RequestRefused(INVALID_PARAMS, "Unknown format")
        return super().fill_in(schema)


@defects.add("FS-02", versions=(1,))
class CountsLinesFromZero(GoodClient):
    """It reads the lines of a file from one too late."""

    def read_file(self, params: dict[str, Any]) -> str:
        line = params.get("line")
        return super().read_file(params if line is None else {**params, "line": line + 1})


@defects.add("FS-03", versions=(1,))
class WritesNoNewFiles(GoodClient):
    """It says that it has written a file that does not exist, and does not."""

    def write_file(self, params: dict[str, Any]) -> None:
        pass


@defects.add("FS-04", versions=(1,))
class ReadsMissingFilesAsInternalErrors(GoodClient):
    """It answers for a missing file with an internal error."""

    def read_file(self, params: dict[str, Any]) -> str:
        try:
            return super().read_file(params)
        except RequestRefused:
            raise RequestRefused(-32603, "Internal error") from None


class SlowTerminal(Terminal):
    """Is made when its command has ended."""

    def __init__(self, params: dict[str, Any]) -> None:
        super().__init__(params)
        self.ended.join()


class SlowTerminals(Terminals):
    terminal_class = SlowTerminal


@defects.add("TERMV1-02", versions=(1,))
class WaitsForTheCommand(GoodClient):
    """It answers `terminal/create` when the command has ended."""

    terminals_class = SlowTerminals


class StartOfTheOutput(Terminal):
    """Drops the end of its output."""

    def keep(self, data: bytes) -> bytes:
        return data if self.limit is None else data[: self.limit // 2 * 2]


class TerminalsWithTheStart(Terminals):
    terminal_class = StartOfTheOutput


@defects.add("TERMV1-03", versions=(1,))
class KeepsTheStartOfTheOutput(GoodClient):
    """It drops the end of an output that is too long."""

    terminals_class = TerminalsWithTheStart


class EndedTerminals(Terminals):
    """Report an exit at once."""

    def output(self, terminal: Terminal) -> dict[str, Any]:
        return {"exitStatus": {"exitCode": 0}, **super().output(terminal)}


@defects.add("TERMV1-04", versions=(1,))
class ReportsAnExitWhileItRuns(GoodClient):
    """It reports an exit status of a command that runs."""

    terminals_class = EndedTerminals


class CodelessTerminals(Terminals):
    """Forget the exit code."""

    def wait(self, id: Any, terminal: Terminal) -> None:
        terminal.ended.join()
        self.answer(id, {})


@defects.add("TERMV1-05", versions=(1,))
class ForgetsTheExitCode(GoodClient):
    """It does not tell the exit code of a command."""

    terminals_class = CodelessTerminals


class LastingTerminals(Terminals):
    """Keep a terminal that was released."""

    def forget(self, name: str) -> None:
        pass


@defects.add("TERMV1-06", versions=(1,))
class KeepsReleasedTerminals(GoodClient):
    """It answers for a terminal that was released."""

    terminals_class = LastingTerminals
