"""A RabbitMQ node of a test's own, which it may freeze: nobody else's is touched."""

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from kombu import Connection
from kombu.exceptions import OperationalError

from tests.support import needs
from tests.support.ports import port_from

# The one in the usual place changes to a user of its own, who may not write to our folder.
_PROGRAM = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
HOW = "needs RabbitMQ's program (Debian: apt-get install rabbitmq-server)"


def demand() -> None:
    """Skip the calling test, with the reason, where the program is missing; under CI, fail."""
    needs.demand(_PROGRAM.exists(), HOW)


class RabbitMQ:
    """A broker on a port and in a folder of its own."""

    def __init__(self) -> None:
        self.port, self._between_nodes = port_from(35_000), port_from(37_000)
        self.url = f"amqp://guest:guest@127.0.0.1:{self.port}//"
        self._folder = Path(tempfile.mkdtemp(prefix="prefmh-rabbitmq-"))
        self._process: subprocess.Popen | None = None

    def start(self) -> None:
        """Start and wait until it takes connections."""
        (self._folder / "own.conf").write_text(f"listeners.tcp.1 = 127.0.0.1:{self.port}\n")
        (self._folder / "plugins").write_text("[].\n")
        environment = {
            **os.environ,
            "HOME": str(self._folder),
            "RABBITMQ_NODENAME": f"prefmh{self.port}@localhost",
            "RABBITMQ_DIST_PORT": str(self._between_nodes),
            "RABBITMQ_MNESIA_BASE": str(self._folder),
            "RABBITMQ_LOG_BASE": str(self._folder),
            "RABBITMQ_CONFIG_FILE": str(self._folder / "own.conf"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self._folder / "plugins"),
            "RABBITMQ_CONF_ENV_FILE": "/dev/null",
            "ERL_FLAGS": "-kernel inet_dist_use_interface {127,0,0,1}",
        }
        with (self._folder / "out.log").open("w") as log:
            self._process = subprocess.Popen(
                [str(_PROGRAM)], env=environment, cwd=self._folder, stdout=log, stderr=log, start_new_session=True
            )
        while not self._answers():
            assert self._process.poll() is None, (self._folder / "out.log").read_text()
            time.sleep(0.2)

    def freeze(self) -> None:
        """Stop it where it stands: it refuses nothing and answers nothing."""
        os.killpg(self._process.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        os.killpg(self._process.pid, signal.SIGCONT)

    def remove(self) -> None:
        if self._process is not None:
            # With its children; they are gone when it has ended by itself.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _answers(self) -> bool:
        try:
            with Connection(self.url, connect_timeout=2) as connection:
                connection.ensure_connection(max_retries=1, interval_start=0.1)
        except (OperationalError, OSError):
            return False
        return True
