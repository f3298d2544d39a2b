"""Makes `src/antiphon/schema/v1` and `v2` from the pinned schemas.

`python -m tools.schema_generator` writes, `--check` only compares. The flow is one line:
`pinned` loads and verifies, `reader` turns JSON Schema into the `model`, `writer` and `indexes` turn the
model into source, `__main__` formats and writes it. What no schema can say is data in `decisions`.
"""
