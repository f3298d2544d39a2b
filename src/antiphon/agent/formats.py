"""Texts of a form that have a format, for the fields of a struct."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from msgspec import Meta

Email: TypeAlias = Annotated[str, Meta(extra_json_schema={"format": "email"})]
Uri: TypeAlias = Annotated[str, Meta(extra_json_schema={"format": "uri"})]
