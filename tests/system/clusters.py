"""API replicas and workers on one database."""

import signal
import socket
from functools import partial

import httpx
from tests.system.products import until


def free_port():
    """A port nobody listens on at this moment."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


class Replica:
    """One process of a cluster, which can be killed and started again."""

    def __init__(self, product, name, arguments, environment):
        self.name = name
        self.log = product.home / f"{name}.log"
        self._environment = environment
        self._begin = partial(product.start, *arguments, log=self.log)
        self.process = self._begin(environment=environment)

    def kill(self):
        """End it as a power cut would."""
        self.process.kill()
        self.process.wait()

    def restart(self, **variables):
        """Start it again, with other variables if they are given."""
        self.process = self._begin(environment=self._environment | variables)

    def stop(self, timeout_s=30):
        """Ask it to end, and return its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout_s)


class Cluster:
    """API replicas and workers on one database, as an installation that grew has them."""

    def __init__(self, product, environment, *, replicas, workers):
        self.product = product
        migrated = product.start("db", "upgrade", log=product.home / "upgrade.log", environment=environment)
        assert migrated.wait(180) == 0, (product.home / "upgrade.log").read_text()
        ports = [free_port() for _ in range(replicas)]
        self.urls = [f"http://127.0.0.1:{port}" for port in ports]
        self.replicas = [
            Replica(product, f"serve-{number}", ["serve", "--port", str(port)], environment)
            for number, port in enumerate(ports)
        ]
        self.workers = [Replica(product, f"worker-{number}", ["worker"], environment) for number in range(workers)]
        for url in self.urls:
            self.wait_until_ready(url)

    @property
    def processes(self):
        """All of them."""
        return [*self.replicas, *self.workers]

    def wait_until_ready(self, url):
        """Wait until a replica and its database answer."""
        until(lambda: is_ready(url), 180, what=f"{url} to be ready")

    def said(self):
        """What all processes wrote."""
        return "".join(process.log.read_text() for process in self.processes)


def is_ready(url):
    """Whether a service and its database answer."""
    try:
        return httpx.get(f"{url}/readyz", trust_env=False, timeout=5).is_success
    except httpx.TransportError:
        return False
