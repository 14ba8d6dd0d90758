"""The upload loop: wakes when something is spooled, sends it oldest first, retries for as long as it takes."""

import json
import threading
from pathlib import Path

import httpx
import structlog

from pullback_runners.agent.client import ServiceClient
from pullback_runners.agent.deliveries import refusal_delivery
from pullback_runners.agent.errors import PermanentError, RefusedError
from pullback_runners.agent.retries import retries
from pullback_runners.agent.spool import Delivery, Spool

_log = structlog.get_logger()

_IDLE_CHECK_S = 60.0


class UploadLoop:
    """A daemon thread over the spool: the process may end at any moment, the spool remembers."""

    def __init__(self, client: ServiceClient, spool: Spool) -> None:
        self._client = client
        self._spool = spool
        self._work = threading.Event()
        self._idle = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="upload", daemon=True)

    def start(self) -> None:
        """Begin with whatever an earlier agent left behind."""
        self._work.set()
        self._thread.start()

    def put(self, delivery: Delivery) -> Path:
        """Spool a delivery and send it soon."""
        path = self._spool.put(delivery)
        self._work.set()
        return path

    def wait_for(self, path: Path, timeout_s: float) -> bool:
        """Wait until a spooled delivery is acknowledged or refused; False when the time ran out first."""
        with self._idle:
            return self._idle.wait_for(lambda: not path.exists(), timeout_s)

    def _run(self) -> None:
        while True:
            self._work.wait(_IDLE_CHECK_S)
            self._work.clear()
            try:
                self._spool.forget_old()
                for path in self._spool.waiting():
                    self._send(path)
                    with self._idle:
                        self._idle.notify_all()
            except (
                OSError
            ) as error:  # a full disk: what could not be put away is sent again, which the service counts once
                _log.error("the spool cannot be written", folder=str(self._spool.folder), reason=str(error))

    def _send(self, path: Path) -> None:
        try:
            delivery = self._spool.read(path)
            for attempt in retries(first_pause_s=0.5):
                with attempt:
                    self._deliver(delivery)
        except PermanentError as error:
            _log.error("delivery refused", file=path.name, reason=str(error))
            if isinstance(error, RefusedError) and delivery.fallback_path is not None:
                self._send(self._spool.put(refusal_delivery(delivery, str(error))))
            self._spool.mark_refused(path, str(error))
        else:
            self._spool.mark_sent(path)
            _log.info("delivered", file=path.name, path=delivery.path)

    def _deliver(self, delivery: Delivery) -> None:
        body = json.dumps(delivery.body, separators=(",", ":")).encode()
        try:
            self._client.deliver(delivery.path, body=body, key=delivery.key, lease_token=delivery.lease_token)
        except RefusedError as refusal:
            # A service restored from an older backup knows no such attempt; the report is worth keeping all the same.
            if refusal.status != httpx.codes.NOT_FOUND or delivery.fallback_path is None:
                raise
            self._client.deliver(delivery.fallback_path, body=body, key=delivery.key, lease_token=None)
