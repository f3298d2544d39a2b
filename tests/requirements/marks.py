"""The mark that names the requirements a test shows: `@requirement("RPC-40", "RPC-41")`."""

import pytest

requirement = pytest.mark.requirement
