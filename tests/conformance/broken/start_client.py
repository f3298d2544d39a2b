"""Start a client: `start_client.py MODULE CLASS AGENT`. It imports little, because it is started often."""

import os.path
import sys

sys.path[0] = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from tests.conformance.good.client import main  # noqa: E402 - the path comes first

if __name__ == "__main__":
    __import__(sys.argv[1])
    main(getattr(sys.modules[sys.argv[1]], sys.argv[2]))
