"""Loading the pinned schemas: verified by hash, and the stable one proven to be part of the unstable one."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

PINNED = Path(__file__).parent.parent / "pinned"

Node = dict[str, Any]


class PinError(Exception):
    """A pinned schema is not what it should be."""


def verify(folder: Path = PINNED) -> None:
    """Refuses a schema whose hash is not the pinned one."""
    for line in (folder / "SHA256SUMS").read_text().splitlines():
        digest, name = line.split()
        found = hashlib.sha256((folder / name).read_bytes()).hexdigest()
        if found != digest:
            raise PinError(f"{name} is not the pinned schema: its hash is {found}")


def load(version: int, folder: Path = PINNED) -> tuple[dict[str, Node], dict[str, Node]]:
    """The stable and the unstable definitions of a version."""
    stable: dict[str, Node] = json.loads((folder / f"v{version}.json").read_text())["$defs"]
    unstable: dict[str, Node] = json.loads((folder / f"v{version}.unstable.json").read_text())["$defs"]
    for name, node in stable.items():
        if name not in unstable:
            raise PinError(f"v{version}: {name} is stable and not in the unstable schema")
        refusal = difference(node, unstable[name])
        if refusal:
            raise PinError(f"v{version}: {name} is not the same in the stable schema: {refusal}")
    return stable, unstable


def difference(stable: Any, unstable: Any) -> str:
    """Why `stable` is not a part of `unstable`; empty where it is one."""
    if isinstance(stable, dict) and isinstance(unstable, dict):
        for key, value in stable.items():
            if key not in unstable:
                return f"{key} is gone"
            if key in ("anyOf", "oneOf"):
                gone = [item for item in value if all(difference(item, other) for other in unstable[key])]
                refusal = f"a branch of {key} is gone" if gone else ""
            elif key == "required":
                refusal = "" if set(value) == set(unstable[key]) else "required differs"
            else:
                refusal = difference(value, unstable[key])
            if refusal:
                return f"{key}: {refusal}"
        # A mark or constraint that only the unstable schema has would change the meaning of stable data.
        grown = unstable.keys() - stable.keys() - {"properties"}
        if grown and not _named(stable, unstable):
            return f"only the unstable one has {sorted(grown)}"
        return ""
    return "" if stable == unstable else f"{stable!r} is not {unstable!r}"


def _named(stable: Node, unstable: Node) -> bool:
    """Whether the keys are names (of properties or defaults) and may grow."""
    keywords = {"type", "properties", "$ref", "anyOf", "oneOf", "allOf", "const"}
    return not keywords & unstable.keys() or isinstance(unstable.get("type"), dict)
