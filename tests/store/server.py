"""A real Redis for tests: one process on a socket in a folder of its own, which keeps nothing on the disk."""

from __future__ import annotations

import subprocess
import tempfile
import time
from pathlib import Path

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

PATIENCE = 20


class Server:
    """A redis-server that can be stopped and started again at the same address."""

    def __init__(self, *options: str) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="redis-")
        self._options = options
        # A unix socket: no port that another test could have taken in between.
        self.socket = Path(self._folder.name) / "redis.sock"
        self.url = f"unix://{self.socket}"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = ["redis-server", "--port", "0", "--unixsocket", str(self.socket), "--save", "", "--appendonly", "no"]
        self.process = subprocess.Popen(
            [*command, "--dir", self._folder.name, *self._options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        deadline = time.monotonic() + PATIENCE
        while not self._answers():
            assert self.process.poll() is None, f"redis-server exited with {self.process.returncode}"
            assert time.monotonic() < deadline, "redis-server does not answer"
            time.sleep(0.01)

    def _answers(self) -> bool:
        client = redis.Redis(unix_socket_path=str(self.socket), retry=Retry(NoBackoff(), 0))
        try:
            return bool(client.ping())
        except redis.AuthenticationError:
            return True
        except redis.RedisError:
            return False
        finally:
            client.close()

    def stop(self) -> None:
        """Kill it: what a client sees is the same as after a crash."""
        assert self.process
        self.process.kill()
        self.process.wait()

    def close(self) -> None:
        self.stop()
        self._folder.cleanup()
