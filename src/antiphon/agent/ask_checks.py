"""What an agent may ask: flat forms without secrets, and addresses without credentials.

A mistake is told to the author at the call that makes it, and nothing is sent.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from antiphon.engine.forms import Form
from antiphon.engine.patterns import Unsupported, pattern
from antiphon.errors import LocalError
from antiphon.schema import v2
from antiphon.schema.repair import Malformed, repair
from antiphon.schema.wire import Unknown
from antiphon.server.checks import check_value

SECRET = re.compile(
    r"(?:.*[_ .-])?(?:password|passwd|passphrase|passcode|secret|credentials?|private[_ .-]?key"
    r"|api[_ .-]?key|(?:access|auth|refresh|id|bearer)[_ .-]?token)"
)
"""How fields and parameters are called that hold a secret: by their last words."""
SECRET_FORMATS = ("password", "_password", "secret", "_secret")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def check_schema(schema: v2.ElicitationSchema | Mapping[str, Any]) -> v2.ElicitationSchema:
    """A schema that can be asked. Raises `LocalError`."""
    if not isinstance(schema, v2.ElicitationSchema):
        try:
            schema = repair(2).build(v2.ElicitationSchema, dict(schema))
        except Malformed as error:
            raise LocalError(f"not a schema that can be asked: {error}") from None
    assert isinstance(schema, v2.ElicitationSchema)
    for name in schema.required or ():
        if name not in schema.properties:
            raise LocalError(f"{name!r} is required and is no property")
    for name, property in schema.properties.items():
        try:
            _check_property(name, property)
        except LocalError as error:
            raise LocalError(f"{name!r}: {error.detail}") from None
    problems = _unfit_defaults(schema)
    if problems:
        raise LocalError(
            "; ".join(f"the default of {name!r} {problem}" for name, problem in problems.items())
        )
    return schema


def _check_property(name: str, property: v2.ElicitationPropertySchema) -> None:
    if isinstance(property, Unknown):
        if not str(property.get("type")).startswith("_"):  # ELIC-05, EXT-06
            raise LocalError("a form is flat, of strings, numbers, integers, booleans and arrays of choices")
        return
    if isinstance(property, v2.MultiSelectPropertySchema):
        items = property.items
        if isinstance(items, Unknown):
            if not str(items.get("type")).startswith("_"):
                raise LocalError("an array is one of choices")
            return
        _check_choices(items.enum if isinstance(items, v2.StringMultiSelectItems) else items.any_of)
        return
    if not isinstance(property, v2.StringPropertySchema):
        return
    for choices in (property.enum, property.one_of):
        if choices is not None:
            _check_choices(choices)
            return
    if property.format in SECRET_FORMATS or is_secret(name):
        raise LocalError("a secret is not asked for with a form: use `ask_url`")  # ELIC-13
    check_value(property.format)
    if property.pattern is not None:
        try:
            pattern(property.pattern)
        except Unsupported as error:  # ELIC-18: an answer could not be checked
            raise LocalError(f"its pattern cannot be used: {error}") from None


def _check_choices(choices: list[str] | list[v2.EnumOption]) -> None:
    if not choices:
        raise LocalError("there is nothing to choose from")  # ELIC-21


def _unfit_defaults(schema: v2.ElicitationSchema) -> dict[str, str]:
    form = Form(schema)
    found = form.read(form.defaults).problems
    return {name: problem for name, problem in found.items() if name in form.defaults}


def is_secret(name: str) -> bool:
    return SECRET.fullmatch(_HUMP.sub("_", name).lower()) is not None


def check_url(url: str) -> None:
    """Raises `LocalError` for an address that cannot be visited, or that holds credentials (ELIC-16)."""
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError:
        raise LocalError("not an address that can be visited") from None
    if parts.scheme not in ("https", "http") or not host or re.search(r"[\s\x00-\x1f]", url):
        raise LocalError("not an address that can be visited: it begins with https:// and a host")
    if parts.username is not None or parts.password is not None:
        raise LocalError("an address holds no name or password: whoever sees it would be let in")
    for name, _ in (*parse_qsl(parts.query), *parse_qsl(parts.fragment)):
        if is_secret(name):
            raise LocalError(f"an address holds no credentials, and {name!r} names one")
