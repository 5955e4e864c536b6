"""Free ports for servers of the tests: each process looks in a range of its own, so that two do not take the same."""

import os

from prefmh_web.embedded.server import free_port


def port_from(first: int) -> int:
    """Return a port that nobody listens on, somewhat above `first`."""
    return free_port("127.0.0.1", None, first=first + 7 * (os.getpid() % 100), tries=300)
