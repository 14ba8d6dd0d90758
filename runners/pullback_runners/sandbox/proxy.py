"""The network of builds in a sandbox: a proxy of the agent to listed hosts, with a limit on bytes.

The agent listens on a Unix socket that build steps can see. The sandbox itself has no network: a thread of the measuring process forwards
connections from its loopback to that socket; pip, uv and most programs follow HTTPS_PROXY.
"""

import asyncio
import os
import re
import socket
import threading
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

INSIDE = Path("/run/pullback-builds")
"""The path of the socket inside a sandbox."""
_PORTS = (80, 443)
_MOST_CONNECTIONS = 64
_HEAD_S = 30
_MOST_SAID = 4
_HOST = re.compile(r"[A-Za-z0-9._:-]{1,253}")


@dataclass(frozen=True)
class BuildNetwork:
    """The hosts that builds in sandboxes can reach, and a limit on their traffic."""

    hosts: Sequence[str]
    """Host names, with a port if it is neither 80 nor 443."""
    most_bytes: int
    """The most bytes that the builds of one job may send and receive."""


class BuildProxy:
    """The proxy for the builds of one job."""

    def __init__(self, socket_file: Path, network: BuildNetwork, owner: int | None = None) -> None:
        self.file = socket_file
        self.said: list[str] = []
        """The reasons of refused connections, as sentences."""
        self._hosts = frozenset(each.lower() for each in network.hosts)
        self._left = self._most_bytes = network.most_bytes
        self._owner = owner
        self._connections: set[asyncio.Task[Any]] = set()

    def __enter__(self) -> Self:
        listening = socket.socket(socket.AF_UNIX)
        folder = os.open(self.file.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            listening.bind(
                f"/proc/self/fd/{folder}/{self.file.name}"
            )  # the path of a socket is limited to 108 bytes, that of a folder is not
        finally:
            os.close(folder)
        self.file.chmod(0o600)
        if self._owner is not None:
            os.chown(self.file, self._owner, -1)
        self._is_open = threading.Event()
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._serve(listening)), name="build proxy", daemon=True
        )
        self._thread.start()
        self._is_open.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._closing.set)
        self._thread.join()
        self.file.unlink(missing_ok=True)

    async def _serve(self, listening: socket.socket) -> None:
        self._loop, self._closing = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_unix_server(self._meet, sock=listening)
        self._is_open.set()
        await self._closing.wait()
        server.close()
        self._end_all()
        await asyncio.gather(*self._connections, return_exceptions=True)
        await asyncio.sleep(0)  # aborted connections are closed in the next iteration of the loop

    def _end_all(self) -> None:
        for each in self._connections:
            each.cancel()

    async def _meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - a coroutine runs in a task
        if len(self._connections) >= _MOST_CONNECTIONS:
            writer.transport.abort()
            return
        self._connections.add(task)
        try:
            with suppress(OSError, asyncio.CancelledError, ValueError, asyncio.LimitOverrunError, EOFError):
                await self._pass_on(reader, writer)
        finally:
            self._connections.discard(task)
            if not writer.is_closing():
                writer.transport.abort()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), _HEAD_S)
        line, _, rest = head.partition(b"\r\n")
        method, target, version = line.decode("ascii").split(" ")
        address = urlsplit(f"//{target}" if method == "CONNECT" else target)
        host, port = (address.hostname or "").rstrip("."), address.port or _PORTS[0]
        if not _HOST.fullmatch(host) or (method != "CONNECT" and address.scheme != "http"):
            return await _refuse(writer, 400, "send CONNECT host:port or an absolute http:// address")
        if f"{host}:{port}" not in self._hosts and not (host in self._hosts and port in _PORTS):
            name = host if port in _PORTS else f"{host}:{port}"
            return await self._refuse(
                writer, f"builds may not reach {name}: to allow it, start the agent with --build-host {name}"
            )
        if self._left <= 0:
            return await self._refuse(writer, self._spent())
        try:
            inward, outward = await asyncio.wait_for(asyncio.open_connection(host, port), _HEAD_S)
        except (OSError, TimeoutError) as error:
            return await _refuse(writer, 502, f"{host} cannot be reached ({error.__class__.__name__})")
        try:
            if method == "CONNECT":
                writer.write(b"HTTP/1.1 200 connected\r\n\r\n")
            else:
                path = address._replace(scheme="", netloc="").geturl() or "/"
                outward.write(f"{method} {path} {version}\r\n".encode("ascii") + rest)
            ways: list[Coroutine[Any, Any, None]] = [self._pump(reader, outward), self._pump(inward, writer)]
            await asyncio.gather(*ways)
        finally:
            outward.transport.abort()
        return None

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        while self._left > 0 and (piece := await source.read(1 << 16)):
            self._left -= len(piece)
            sink.write(piece)
            await sink.drain()
        if self._left <= 0:
            self._say(self._spent())
            self._end_all()
        with suppress(OSError):
            sink.write_eof()

    async def _refuse(self, writer: asyncio.StreamWriter, sentence: str) -> None:
        self._say(sentence)
        await _refuse(writer, 403, sentence)

    def _say(self, sentence: str) -> None:
        if sentence not in self.said and len(self.said) < _MOST_SAID:
            self.said.append(sentence)

    def _spent(self) -> str:
        return (
            f"the builds of this job reached their limit of {self._most_bytes / (1 << 30):g} GiB sent and received: "
            "for more, start the agent with a larger --build-gib"
        )


async def _refuse(writer: asyncio.StreamWriter, status: int, sentence: str) -> None:
    """Answer with a sentence as body and as reason phrase: programs show the latter for a refused CONNECT."""
    writer.write(
        f"HTTP/1.1 {status} {sentence}\r\nContent-Type: text/plain\r\nContent-Length: {len(sentence) + 1}\r\n"
        f"Connection: close\r\n\r\n{sentence}\n".encode()
    )
    await writer.drain()
    writer.close()


def forward_loopback(to: Path) -> None:
    """Forward connections from the loopback to a Unix socket from now on, as the proxy of all programs that this process starts."""
    listening = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=_forward, args=(listening, to), name="to the proxy", daemon=True).start()
    address = f"http://127.0.0.1:{listening.getsockname()[1]}"
    for name in ("HTTP_PROXY", "HTTPS_PROXY"):
        os.environ[name] = os.environ[name.lower()] = address


def _forward(listening: socket.socket, to: Path) -> None:
    while True:
        near, _ = listening.accept()
        far = socket.socket(socket.AF_UNIX)
        try:
            far.connect(str(to))
        except OSError:
            near.close()
            far.close()
            continue
        for source, sink in ((near, far), (far, near)):
            threading.Thread(target=_copy, args=(source, sink), daemon=True).start()


def _copy(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while piece := source.recv(1 << 16):
            sink.sendall(piece)
    with suppress(OSError):
        sink.shutdown(socket.SHUT_WR)
