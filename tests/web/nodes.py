"""Node runs what of the page needs no browser."""

from __future__ import annotations

import shutil

import pytest

NODE = shutil.which("node") or ""
needs_node = pytest.mark.skipif(not NODE, reason="there is no node here")
