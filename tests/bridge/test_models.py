"""The models of v1 agents: an option of category `model` for v2, and models again for v1 clients."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from antiphon.bridge.downgrade import requests as requests_v1
from antiphon.bridge.upgrade import requests
from antiphon.errors import InvalidParams
from antiphon.schema import v1, v2
from antiphon.schema.codec import codec
from antiphon.schema.methods import Kind
from antiphon.schema.v1.models import SetSessionModelResponse
from tests.bridge.wire import Down, Up, plain, v1_update

MODELS: dict[str, Any] = {
    "currentModelId": "small",
    "availableModels": [
        {"modelId": "small", "name": "Small", "description": "Fast", "_meta": {"k": 1}},
        {"modelId": "large", "name": "Large"},
    ],
    "_meta": {"vendor": True},
}
MODEL_OPTION: dict[str, Any] = {
    "type": "select",
    "configId": "model",
    "name": "Model",
    "category": "model",
    "currentValue": "small",
    "options": [
        {"value": "small", "name": "Small", "description": "Fast", "_meta": {"k": 1}},
        {"value": "large", "name": "Large"},
    ],
    "_meta": {"vendor": True, "antiphon": {"models": "made"}},
}
VALUES = [{"value": "small", "name": "S"}, {"value": "large", "name": "L"}]
OWN = {
    "id": "own", "type": "select", "name": "Which", "category": "model", "currentValue": "large",
    "options": VALUES, "_meta": {"k": 2},
}  # fmt: skip


def result(method: str, **fields: Any) -> Any:
    return codec(1).result(method, msgspec.json.encode(fields))


def opened(up: Up, **fields: Any) -> v2.NewSessionResponse:
    return up.machine.configuration.new_session(result("session/new", sessionId="s", **fields))


def test_models_are_an_option_of_category_model() -> None:
    up = Up()
    assert plain(opened(up, models=MODELS)) == {"sessionId": "s", "configOptions": [MODEL_OPTION]}
    assert up.machine.configuration.model == "model"
    assert up.lost == []


@pytest.mark.parametrize("method", ["session/new", "session/fork", "session/load", "session/resume"])
def test_models_come_back_to_v1_clients_as_they_were_sent(method: str) -> None:
    up, down = Up().machine.configuration, Down().machine.configuration
    given = result(
        method, **({"sessionId": "s"} if method in ("session/new", "session/fork") else {}), models=MODELS
    )
    match method:
        case "session/new":
            sent: Any = down.new_session(up.new_session(given))
        case "session/fork":
            sent = down.fork_session(up.fork_session(given))
        case "session/load":
            sent = down.load_session(up.reopened(given))
        case _:
            sent = down.resume_session(up.reopened(given))
    assert sent == given
    assert plain(sent)["models"] == MODELS


def test_an_option_of_category_model_stands_for_the_models_and_v1_clients_get_both() -> None:
    up, down = Up(), Down()
    made = opened(up, models=MODELS, configOptions=[OWN])
    assert len(made.config_options) == 1
    assert up.machine.configuration.model is None
    sent = plain(down.machine.configuration.new_session(made))
    assert sent["configOptions"] == [OWN]
    assert sent["models"] == {
        "currentModelId": "large",
        "availableModels": [{"modelId": "small", "name": "S"}, {"modelId": "large", "name": "L"}],
    }
    told = v1_update("config_option_update", configOptions=[{**OWN, "currentValue": "small"}])
    (lifted,) = up.machine.update(told)
    assert [plain(each) for each in down.machine.apply(lifted)] == [plain(told)]


def test_an_option_alone_makes_no_models() -> None:
    made = opened(Up(), configOptions=[OWN])
    assert "models" not in plain(Down().machine.configuration.new_session(made))


def test_a_taken_id_is_not_taken_again() -> None:
    other = {**OWN, "id": "model", "category": "other"}
    options = opened(Up(), models=MODELS, configOptions=[other]).config_options
    assert [plain(option)["configId"] for option in options] == ["model", "_model"]


def test_a_current_model_that_is_not_listed_is_listed_and_a_model_listed_twice_is_listed_once() -> None:
    twice = [*MODELS["availableModels"], MODELS["availableModels"][0]]
    (option,) = opened(Up(), models={"currentModelId": "odd", "availableModels": twice}).config_options
    assert [value["value"] for value in plain(option)["options"]] == ["small", "large", "odd"]


@pytest.mark.parametrize("models", [None, 7, {}, {"currentModelId": "a"}, {"availableModels": []}])
def test_models_that_cannot_be_read_are_none(models: Any) -> None:
    assert plain(opened(Up(), models=models)) == {"sessionId": "s"}


def asked(version: int, method: str, **params: Any) -> Any:
    raw = msgspec.json.encode({"sessionId": "s", **params})
    return codec(version).params(Kind.REQUEST, method, raw)


def chosen(value: str, id: str = "model") -> Any:
    return asked(2, "session/set_config_option", configId=id, type="id", value=value)


def test_the_option_is_set_by_set_model_and_answered_with_the_list() -> None:
    up = Up()
    opened(up, models=MODELS)
    configuration = up.machine.configuration
    request = requests_v1.set_config_option(chosen("large"), configuration)
    assert plain(request) == {"sessionId": "s", "modelId": "large"}
    answer = configuration.set_model("large", SetSessionModelResponse())
    assert plain(answer)["configOptions"] == [{**MODEL_OPTION, "currentValue": "large"}]
    for value in ("none", True):
        with pytest.raises(InvalidParams):
            requests_v1.set_config_option(
                asked(2, "session/set_config_option", configId="model", type="id", value="none")
                if value == "none"
                else asked(2, "session/set_config_option", configId="model", type="boolean", value=True),
                configuration,
            )


def test_an_option_of_the_agent_s_own_is_set_as_such() -> None:
    up = Up()
    opened(up, models=MODELS, configOptions=[OWN])
    request = requests_v1.set_config_option(chosen("small", "own"), up.machine.configuration)
    assert isinstance(request, v1.SetSessionConfigOptionId)


@pytest.mark.parametrize(
    ("given", "id"),
    [
        ({"models": MODELS}, "model"),
        ({"models": MODELS, "configOptions": [OWN]}, "own"),
        ({"configOptions": [OWN]}, "own"),
    ],
)
def test_set_model_sets_the_option_that_has_the_models(given: dict[str, Any], id: str) -> None:
    options = opened(Up(), **given).config_options
    wanted = requests.set_model(asked(1, "session/set_model", modelId="large"), options)
    assert (wanted.config_id, wanted.value) == (id, "large")


def test_set_model_without_models_is_refused() -> None:
    with pytest.raises(InvalidParams, match="no models"):
        requests.set_model(asked(1, "session/set_model", modelId="large"), [])


def test_no_list_of_options_is_sent_to_a_v1_client_because_a_model_was_chosen() -> None:
    up, down = Up(), Down()
    down.machine.configuration.new_session(opened(up, models=MODELS))
    answer = up.machine.configuration.set_model("large", SetSessionModelResponse())
    update = v2.ConfigOptionUpdate(config_options=answer.config_options)
    assert down.machine.apply(update) == []
    loaded = down.machine.configuration.load_session(
        v2.ResumeSessionResponse(config_options=answer.config_options)
    )
    assert plain(loaded)["models"] == {**MODELS, "currentModelId": "large"}
