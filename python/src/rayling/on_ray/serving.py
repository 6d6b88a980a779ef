"""The connection of a gateway to its driver: one line of JSON for each request and answer.

The first line is `{"token": ...}`. A request is `{"id", "op", "with"}`, its answer `{"id", "ok"}` or
`{"id", "error"}`, and `{"event", ...}` tells what happened on the cluster. The token itself never
leaves the driver before that: the job knows its digest.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import secrets
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

import ray

from rayling.errors import RaylingError
from rayling.on_ray.gateway import Gateway
from rayling.runtime import command

__all__ = ["PROTOCOL", "DriverGoneError", "Listening", "serve"]

#: Changes with the messages.
PROTOCOL = 1

#: What the line in the job's log begins with that tells the driver where to connect.
_ANNOUNCEMENT = "RAYLING_GATEWAY "

#: Seconds that the driver has to connect, and to show its token.
_CONNECT_SECONDS = 60.0

#: Seconds that Ray has to answer.
_RAY_SECONDS = 120.0

#: Probes of the driver's machine without an answer that end the connection.
_PROBES = 4

#: The most bytes of a request: drivers send no longer ones.
_LONGEST_LINE = 2**26

#: The most bytes of an answer: a driver cuts the connection for a longer line.
_LONGEST_ANSWER = 2**28

#: The most characters of a folder for a unix socket, whose path has at most 103 on all systems.
_LONGEST_FOLDER = 70


def _end_without_ray(address: str) -> None:
    print(f"Ray at {address} has not answered within {_RAY_SECONDS:g} s", flush=True)
    os._exit(1)


class DriverGoneError(Exception):
    """The driver did not come."""


@dataclass(frozen=True)
class Listening:
    """What a gateway is started with."""

    token_sha256: str
    namespace: str
    #: Seconds without an answer of the driver's machine after which the driver counts as gone.
    timeout: float
    #: How the driver reaches it: "unix", "loopback", or "tls" from another machine.
    reach: str = "loopback"


async def serve(listening: Listening) -> None:
    """Serves one driver until it is gone.

    Raises:
        DriverGoneError: none connected.
    """
    address = os.environ.get("RAY_ADDRESS", "auto")
    # Ray itself would try for ever.
    late = threading.Timer(_RAY_SECONDS, _end_without_ray, [address])
    late.daemon = True
    late.start()
    ray.init(address=address, namespace=listening.namespace or None, logging_level="warning")
    late.cancel()
    connected: asyncio.Future[Connection] = asyncio.get_running_loop().create_future()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = Connection(reader, writer)
        if connected.done() or not await connection.has_token(listening.token_sha256):
            return writer.close()
        if connected.done():
            return writer.close()
        connected.set_result(connection)
        return None

    try:
        async with _listening(listening.reach, accept) as place:
            said = {"protocol": PROTOCOL, **place}
            print(f"{_ANNOUNCEMENT}{json.dumps(said)}", flush=True)
            connection = await asyncio.wait_for(connected, _CONNECT_SECONDS)
    except asyncio.TimeoutError:
        raise DriverGoneError(f"no driver connected within {_CONNECT_SECONDS:g} s") from None
    connection.probe(listening.timeout)
    await connection.serve()


@contextlib.asynccontextmanager
async def _listening(reach: str, accept: Any) -> AsyncIterator[dict[str, Any]]:
    """Listens for the driver. Its value is where, as the driver gets it."""
    host = ray.util.get_node_ip_address()
    if reach == "unix":
        with tempfile.TemporaryDirectory(prefix="rayling-gateway-", dir=_short()) as folder:
            path = os.path.join(folder, "socket")
            server = await asyncio.start_unix_server(accept, path, limit=_LONGEST_LINE)
            # The driver may be another user's, and has the token.
            os.chmod(folder, 0o711)
            os.chmod(path, 0o666)
            async with _closing(server):
                yield {"host": host, "path": path}
        return
    context, more = None, {}
    if reach == "tls":
        context, fingerprint = await asyncio.to_thread(_secured, host)
        more = {"fingerprint": fingerprint}
    own = host if reach == "tls" else "127.0.0.1"
    server = await asyncio.start_server(accept, own, 0, limit=_LONGEST_LINE, ssl=context)
    async with _closing(server):
        yield {"host": host, "port": server.sockets[0].getsockname()[1], **more}


@contextlib.asynccontextmanager
async def _closing(server: asyncio.Server) -> AsyncIterator[None]:
    """Ends the listening at the end, and no connection."""
    try:
        yield
    finally:
        server.close()


def _short() -> str | None:
    """Returns a folder for a socket, whose path is short; None: the usual one."""
    return "/tmp" if len(tempfile.gettempdir()) > _LONGEST_FOLDER else None


def _secured(address: str) -> tuple[ssl.SSLContext, str]:
    """Makes a key of this process, and a certificate for it.

    Returns:
        How to listen, and the fingerprint by which the driver knows the certificate.

    Raises:
        RaylingError: the certificate cannot be made.
    """
    line = command("python/certificate-main", address)
    made = subprocess.run(line, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if made.returncode != 0:
        raise RaylingError(f"no certificate is made: {made.stderr.strip()}")
    said = json.loads(made.stdout)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    # The module reads files only.
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "gateway.pem")
        with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="utf-8") as file:
            file.write(said["key"] + said["cert"])
        context.load_cert_chain(path)
    return context, said["fingerprint"]


class Connection:
    """The driver, while it is connected."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Takes the streams of a socket."""
        self._reader = reader
        self._writer = writer
        self._running: set[asyncio.Task[None]] = set()

    async def has_token(self, digest: str) -> bool:
        """Whether the first line shows the token of that digest."""
        with contextlib.suppress(ValueError, ConnectionError, asyncio.TimeoutError):
            line = await asyncio.wait_for(self._reader.readline(), _CONNECT_SECONDS)
            token = str(json.loads(line)["token"]).encode()
            return secrets.compare_digest(hashlib.sha256(token).hexdigest(), digest)
        return False

    def probe(self, timeout: float) -> None:
        """Lets the system ask the driver's machine whether it is there.

        A driver may be busy for as long as it likes, and its machine answers meanwhile.

        Args:
            timeout: seconds without an answer after which the connection ends.
        """
        connection: socket.socket = self._writer.get_extra_info("socket")
        if connection.family not in (socket.AF_INET, socket.AF_INET6):
            # The driver is on this machine.
            return
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        pause = max(1, round(timeout / (_PROBES + 1)))
        times = {"TCP_KEEPIDLE": pause, "TCP_KEEPINTVL": pause, "TCP_KEEPCNT": _PROBES}
        # For what was sent and has no answer.
        times["TCP_USER_TIMEOUT"] = round(timeout * 1000)
        for name, value in times.items():
            option = getattr(socket, name, None)
            if option is not None:
                connection.setsockopt(socket.IPPROTO_TCP, option, value)

    async def serve(self) -> None:
        """Answers until the driver leaves, or its machine is gone."""
        gateway = Gateway(self._send)
        await gateway.open()
        self._send({"event": "welcome", "protocol": PROTOCOL, "ray": ray.__version__})
        hearing = asyncio.create_task(self._hear(gateway))
        parts = [asyncio.create_task(one) for one in gateway.watching()]
        done, _ = await asyncio.wait([hearing, *parts], return_when="FIRST_COMPLETED")
        for task in [*parts, hearing, *self._running]:
            task.cancel()
        for task in done:
            if task in parts and task.exception() is not None:
                print(f"the gateway ends: {task.exception()!r}", file=sys.stderr, flush=True)
        await gateway.close()
        self._writer.close()

    async def _hear(self, gateway: Gateway) -> None:
        try:
            # A machine that is gone is a TimeoutError, or another one of the network.
            with contextlib.suppress(OSError):
                # A line without an end was cut by the loss of its driver.
                while (line := await self._reader.readline()).endswith(b"\n"):
                    said = json.loads(line)
                    task = asyncio.create_task(self._answer(gateway, said))
                    self._running.add(task)
                    task.add_done_callback(self._running.discard)
        except ValueError as error:
            # Nothing behind it can be read.
            why = f"a line of the driver cannot be read: {error}"
            print(f"the gateway ends: {why}", file=sys.stderr, flush=True)

    async def _answer(self, gateway: Gateway, said: Mapping[str, Any]) -> None:
        try:
            self._send({"id": said["id"], "ok": await gateway.do(said["op"], said.get("with", {}))})
        except Exception as error:
            described = {"type": type(error).__name__, "message": str(error)}
            self._send({"id": said["id"], "error": described})

    def _send(self, message: Mapping[str, Any]) -> None:
        if not self._writer.is_closing():
            self._writer.write(_line_of(message))


def _line_of(message: Mapping[str, Any]) -> bytes:
    """Returns the message as a line.

    Raises:
        RaylingError: it is longer than the driver takes.
    """
    line = f"{json.dumps(message)}\n".encode()
    if len(line) <= _LONGEST_ANSWER:
        return line
    raise RaylingError(
        f"the answer has {len(line)} bytes, and may have {_LONGEST_ANSWER}: bytes and arrays are "
        "base64 there; return less at once, or write it where the driver can read it"
    )
