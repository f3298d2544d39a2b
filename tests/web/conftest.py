from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.web.calling import Modules


@pytest.fixture(scope="module")
def modules() -> Iterator[Modules]:
    """What the page's modules export."""
    modules = Modules()
    yield modules
    modules.close()
