"""A client for ``rayling serve``: reward functions in TypeScript, for trainings in Python.

One file without dependencies, for Python 3.10 and later: install nothing, copy it, import it. ::

    from rayling_client import RewardClient

    with RewardClient("http://127.0.0.1:8100") as client:
        outcome = client.score("4", ground_truth="4")
        outcomes = client.score_batch([{"response": "4", "ground_truth": "4"}, ...])

A sample that could not be scored has no score: ``outcome.score`` is ``None`` and ``outcome.error`` says why. It is never a zero.

Every sample travels with an idempotency key, a random one where it has no ``id``. So a request whose answer was lost is sent again without scoring twice what
was scored, also when the server was killed in between (``rayling serve --record``).
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import math
import os
import queue
import random
import re
import select
import socket
import ssl
import threading
import time
import uuid
import weakref
from collections.abc import (
    AsyncIterator,
    Callable,
    Coroutine,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
    Set,
)
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

__all__ = [
    "AsyncRewardClient",
    "Outcome",
    "RewardClient",
    "RewardError",
    "RewardRequestError",
    "RewardUnavailableError",
    "ScoreError",
    "async_reward_function",
    "reward_function",
]

#: A sample as the server takes it: response, and ground_truth, data_source, prompt, extra_info, response_length, id where there are any.
Sample = Mapping[str, Any]

T = TypeVar("T")

#: Bytes of one request, where it has several samples: a server takes 64 MiB unless it is told otherwise.
_FULL_REQUEST = 32 * 2**20


@dataclass(frozen=True)
class ScoreError:
    """Why a sample has no score."""

    code: str
    """A failure code of the reward loop, such as ``SCORE_THREW``, ``SCORE_TIMEOUT`` or ``CANNOT_TELL``."""
    message: str
    kind: str
    """``infrastructure``, ``rate-limit``, ``timeout``, ``data`` or ``user-code``."""


@dataclass(frozen=True)
class Outcome:
    """What became of one sample."""

    score: float | None
    """``None`` where the sample could not be scored."""
    valid: bool
    error: ScoreError | None = None
    extra: dict[str, Any] = field(default_factory=dict)
    """What the score function said beside the score."""
    id: str | None = None
    """The key that the sample travelled with."""
    version: str | None = None
    """Of the reward functions."""
    attempts: int = 0
    latency_ms: float = 0.0
    cost: float | None = None
    replayed: bool = False
    """The server knew the key: nothing ran."""


def _well_formed(text: str) -> str:
    """With U+FFFD for each half of a surrogate pair: UTF-8 has no bytes for it, and a worker that writes the text of an error would die of it."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


class RewardError(Exception):
    """What the client raises. A sample that could not be scored raises nothing: it is an outcome."""

    def __init__(self, message: str = "") -> None:
        super().__init__(_well_formed(message))


class RewardRequestError(RewardError):
    """The server refuses the request, and would refuse it again: what was sent is wrong, or the token is."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(f"{status} {code}: {message}")
        self.status = status
        self.code = _well_formed(code)
        self.message = _well_formed(message)

    def __reduce__(self) -> tuple[Any, ...]:
        """Lets it travel between processes: a pool would wait for ever for one that does not."""
        return type(self), (self.status, self.code, self.message)


class RewardUnavailableError(RewardError):
    """The server gave no answer within all tries."""

    def __init__(self, url: str, attempts: int, cause: str) -> None:
        super().__init__(f"{url} gave no answer in {attempts} tries, last: {cause}")
        self.url = _well_formed(url)
        self.attempts = attempts
        self.cause = _well_formed(cause)

    def __reduce__(self) -> tuple[Any, ...]:
        """Lets it travel between processes: a pool would wait for ever for one that does not."""
        return type(self), (self.url, self.attempts, self.cause)


class _TryAgain(Exception):
    """May go better later."""

    def __init__(self, cause: str, retry_after: float | None = None) -> None:
        # It is the cause of an error, which shows it.
        self.cause = _well_formed(cause)
        super().__init__(self.cause)
        self.retry_after = retry_after


class _Unanswered(_TryAgain):
    """The connection ended before there was an answer."""


class _Calls:
    """The requests of one caller, who may leave: then their connections are cut, and nothing is asked again."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._left = threading.Event()
        self._sockets: set[socket.socket] = set()
        self._deadline = math.inf

    @contextlib.contextmanager
    def for_at_most(self, seconds: float) -> Iterator[None]:
        """The caller leaves then. Timeouts of sockets are for one read, and so would not do."""
        self._deadline = time.monotonic() + seconds
        late = threading.Timer(min(seconds, threading.TIMEOUT_MAX), self.leave)
        late.daemon = True
        late.start()
        try:
            yield
        finally:
            late.cancel()

    def seconds_left(self) -> float:
        # Never 0, with which a socket would not wait at all.
        return max(0.001, self._deadline - time.monotonic())

    def leave(self) -> None:
        with self._lock:
            self._left.set()
            for one in self._sockets:
                with contextlib.suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)

    def pause(self, seconds: float) -> None:
        if self._left.wait(seconds):
            raise _Left

    @contextlib.contextmanager
    def using(self, connected: socket.socket) -> Iterator[None]:
        with self._lock:
            if self._left.is_set():
                raise _Left
            self._sockets.add(connected)
        try:
            yield
        finally:
            with self._lock:
                self._sockets.discard(connected)


class _Left(Exception):
    """Nobody waits for the answer any more."""


def _closed() -> RuntimeError:
    return RuntimeError("the client is closed")


def _no_pickle(client: object) -> TypeError:
    return TypeError(
        f"a {type(client).__name__} cannot be sent to another process: make one in each"
    )


class _Threads(Executor):
    """Daemon threads: a program that is interrupted ends, and waits for no answer."""

    def __init__(self, most: int, name: str) -> None:
        self._most = most
        self._name = name
        self._is_closed = False
        self._begin()

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._free = threading.Semaphore(0)
        self._work: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None]
        self._work = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._process = os.getpid()

    def _check(self) -> None:
        """A fork has none of the threads, and nobody who releases the locks."""
        if os.getpid() != self._process:
            self._begin()

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        self._check()
        future: Future[T] = Future()
        with self._lock:
            if self._is_closed:
                raise _closed()
            self._work.put((future, partial(fn, *args, **kwargs)))
            if not self._free.acquire(blocking=False) and len(self._threads) < self._most:
                thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                self._threads.append(thread)
                thread.start()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self._check()
        with self._lock:
            self._is_closed = True
            with contextlib.suppress(queue.Empty):
                while cancel_futures and (next := self._work.get_nowait()):
                    # A cancelled one would pass for one whose caller had left: a TaskGroup forgets it.
                    if next[0].set_running_or_notify_cancel():
                        next[0].set_exception(_closed())
            for _ in self._threads:
                self._work.put(None)
        for thread in self._threads if wait else ():
            thread.join()

    def _run(self) -> None:
        while next := self._work.get():
            future, work = next
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(work())
                except BaseException as error:
                    future.set_exception(error)
            del next, future, work
            self._free.release()


def _threads(owner: object, most: int) -> _Threads:
    """They end with their owner, where nobody closes it."""
    threads = _Threads(most, "rayling-client")
    weakref.finalize(owner, threads.shutdown, False).atexit = False
    return threads


class RewardClient:
    """Scores samples on a ``rayling serve``. Safe for threads; connections are kept and used again.

    :param url: ``http://host:port``. A token may stand in it: ``http://rayling:TOKEN@host:port``.
    :param token: what the server demands; default: ``RAYLING_SERVE_TOKEN`` of the environment.
    :param timeout: seconds for one answer. A batch is answered when its last sample is: give the slowest judge time.
    :param attempts: tries of a request that is not answered, or answered with 408, 429 or 5xx.
    :param backoff: seconds before the second try; doubled with each try, and drawn at random up to that.
    :param max_backoff: the longest pause; a longer ``Retry-After`` is kept to this.
    :param batch_size: samples of one request; a longer batch is sent as several, and so are samples of more than 32 MiB together, or more than the server takes.
    :param in_flight: requests of a batch that are under way at a time.
    :param ssl_context: for https, which a proxy in front of the server speaks.
    """

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        timeout: float = 600.0,
        attempts: int = 8,
        backoff: float = 0.25,
        max_backoff: float = 30.0,
        batch_size: int = 256,
        in_flight: int = 4,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query:
            raise ValueError(f"url must be http://host:port, and is {url!r}")
        for name, count in (
            ("attempts", attempts),
            ("batch_size", batch_size),
            ("in_flight", in_flight),
        ):
            if not isinstance(count, int) or count < 1:
                raise ValueError(f"{name} must be a whole number of at least 1, and is {count!r}")
        for name, seconds in (("backoff", backoff), ("max_backoff", max_backoff)):
            if not isinstance(seconds, (int, float)) or not 0 <= seconds < math.inf:
                raise ValueError(f"{name} must be seconds, and is {seconds!r}")
        if not isinstance(timeout, (int, float)) or not 0 < timeout < math.inf:
            raise ValueError(f"timeout must be more than 0 seconds, and is {timeout!r}")
        self.timeout = timeout
        self.attempts = attempts
        self.backoff = backoff
        self.max_backoff = max_backoff
        self.batch_size = batch_size
        self.in_flight = in_flight
        self._scheme = parts.scheme
        self._host = parts.hostname
        self._port = parts.port or (443 if parts.scheme == "https" else 80)
        self._base = parts.path.rstrip("/")
        self._ssl_context = ssl_context
        own = unquote(parts.password) if parts.password else None
        known = token or own or os.environ.get("RAYLING_SERVE_TOKEN")
        self._headers = {"content-type": "application/json"}
        if known:
            if not (known.isascii() and known.isprintable()) or " " in known:
                raise ValueError("the token must be ASCII without spaces")
            self._headers["authorization"] = f"Bearer {known}"
        self._closed = False
        self._begin()

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[http.client.HTTPConnection] = []
        self._threads: _Threads | None = None
        self._process = os.getpid()

    def _begin_in_fork(self) -> None:
        """A fork has neither the threads nor a share in the connections, which would mix up the answers."""
        if os.getpid() != self._process:
            self._begin()

    def _check(self) -> None:
        self._begin_in_fork()
        if self._closed:
            raise _closed()

    @property
    def url(self) -> str:
        """Without the token."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"{self._scheme}://{host}:{self._port}{self._base}"

    def score(
        self,
        response: str,
        ground_truth: Any = None,
        *,
        data_source: str | None = None,
        prompt: str | Sequence[Mapping[str, Any]] | None = None,
        extra_info: Mapping[str, Any] | None = None,
        id: str | None = None,
    ) -> Outcome:
        """Scores one sample.

        :raises RewardRequestError: the server refuses the sample.
        :raises RewardUnavailableError: no answer came within all tries.
        """
        sample = {
            "response": response,
            "ground_truth": ground_truth,
            "data_source": data_source,
            "prompt": prompt,
            "extra_info": extra_info,
            "id": id,
        }
        return self._score(sample, _Calls())

    def _score(self, sample: Sample, calls: _Calls) -> Outcome:
        body = _encoded(_keyed(sample, "the sample"), "the sample")
        return self._read(_outcome, "/score", self._ask("/score", body, calls))

    def score_batch(self, samples: Iterable[Sample]) -> list[Outcome]:
        """Scores many samples; outcomes come in their order. Long batches travel as several requests, a few of them at a time.

        :raises RewardRequestError: the server refuses a sample; those of other requests may have been scored.
        :raises RewardUnavailableError: no answer came within all tries.
        """
        outcomes: dict[int, Outcome] = dict(self.score_stream(samples))
        return [outcomes[index] for index in range(len(outcomes))]

    def score_stream(self, samples: Iterable[Sample]) -> Iterator[tuple[int, Outcome]]:
        """Yields ``(index, outcome)``, each request of ``batch_size`` samples when it is there. Input is read no faster than it is scored.

        :raises RewardRequestError: the server refuses a sample.
        :raises RewardUnavailableError: no answer came within all tries.
        """
        pool = self._pool()
        calls = _Calls()
        under_way: dict[Future[list[Outcome]], int] = {}
        requests = _chunks(samples, self.batch_size)
        is_over = False
        try:
            while True:
                while not is_over and len(under_way) < self.in_flight:
                    first, chunk = next(requests, (0, []))
                    if not chunk:
                        is_over = True
                    else:
                        under_way[pool.submit(self._score_request, first, chunk, calls)] = first
                if not under_way:
                    return
                done, _ = wait(under_way, return_when=FIRST_COMPLETED)
                for one in done:
                    first = under_way.pop(one)
                    for offset, outcome in enumerate(one.result()):
                        yield first + offset, outcome
        finally:
            for one in under_way:
                one.cancel()
            calls.leave()

    def ready(self) -> bool:
        """Whether the server takes samples now. Tries once."""
        return self._ready(_Calls())

    def _ready(self, calls: _Calls) -> bool:
        try:
            self._once("GET", "/readyz", None, calls)
        except (RewardError, _TryAgain):
            return False
        return True

    def wait_until_ready(self, timeout: float = 60.0) -> None:
        """Waits for a server that is being started, for ``timeout`` seconds at most.

        :raises RewardRequestError: it refuses to say, at once: the token or the URL is wrong.
        :raises RewardUnavailableError: it does not take samples in time; the last answer is told.
        """
        self._wait_until_ready(timeout, _Calls())

    def _wait_until_ready(self, timeout: float, calls: _Calls) -> None:
        tries = 0
        cause = ""
        try:
            # A try takes a moment, also where no time is given.
            with calls.for_at_most(max(timeout, 0.1)):
                while True:
                    tries += 1
                    try:
                        self._once("GET", "/readyz", None, calls)
                        return
                    except _TryAgain as error:
                        cause = error.cause
                    except RewardRequestError as error:
                        # Without our own code it is of a proxy that knows no such server yet.
                        if (error.status, error.code) != (404, "unknown"):
                            raise
                        cause = str(error)
                    except _Left:
                        cause = f"no whole answer in time{cause and f'; before that, {cause}'}"
                        raise
                    calls.pause(0.1)
        except _Left:
            raise RewardUnavailableError(self.url, tries, cause) from None

    def close(self) -> None:
        """Closes all connections. Idempotent; requests under way in other threads finish, and what waits for its turn is a RuntimeError."""
        self._begin_in_fork()
        with self._lock:
            self._closed = True
            threads, self._threads = self._threads, None
        self._drop_kept()
        if threads is not None:
            threads.shutdown(wait=True, cancel_futures=True)

    def __getstate__(self) -> Any:
        raise _no_pickle(self)

    def __enter__(self) -> RewardClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _pool(self) -> _Threads:
        self._check()
        with self._lock:
            if self._threads is None:
                self._threads = _threads(self, self.in_flight)
            return self._threads

    def _score_request(self, first: int, samples: Sequence[Sample], calls: _Calls) -> list[Outcome]:
        names = [f"sample {first + offset}" for offset in range(len(samples))]
        keyed = [_keyed(sample, name) for sample, name in zip(samples, names, strict=True)]
        texts = [_encoded(sample, name) for sample, name in zip(keyed, names, strict=True)]
        outcomes: list[Outcome] = []
        for part in _parts(texts, _FULL_REQUEST):
            outcomes += self._score_texts(first + len(outcomes), part, calls)
        return outcomes

    def _score_texts(self, first: int, texts: Sequence[bytes], calls: _Calls) -> list[Outcome]:
        body = b'{"samples":[' + b",".join(texts) + b"]}"
        try:
            answer = self._ask("/score/batch", body, calls)
        except RewardRequestError as error:
            if error.status != 413:
                raise _placed(error, first) from error
            if len(texts) == 1:
                message = f"sample {first}: {error.message}"
                raise RewardRequestError(error.status, error.code, message) from error
            # This server, or a proxy before it, takes less at once.
            half = len(texts) // 2
            scored = self._score_texts(first, texts[:half], calls)
            return scored + self._score_texts(first + half, texts[half:], calls)
        outcomes = self._read(_outcomes, "/score/batch", answer)
        if len(outcomes) != len(texts):
            raise RewardUnavailableError(
                self.url, 1, f"{len(outcomes)} outcomes for {len(texts)} samples"
            )
        return outcomes

    def _read(self, read: Callable[[Any], T], path: str, answer: Any) -> T:
        try:
            return read(answer)
        except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
            raise RewardError(
                f"{self.url}{path} gave what is no answer of rayling serve, or one of another "
                f"release: {json.dumps(answer)[:200]} ({type(error).__name__}: {error})"
            ) from error

    def _ask(self, path: str, body: bytes, calls: _Calls) -> Any:
        for attempt in range(1, self.attempts + 1):
            try:
                return self._once("POST", path, body, calls)
            except _TryAgain as error:
                if attempt == self.attempts:
                    raise RewardUnavailableError(self.url, attempt, error.cause) from error
                calls.pause(self._pause(attempt, error.retry_after))
        raise AssertionError("unreachable")

    def _pause(self, attempt: int, retry_after: float | None) -> float:
        """At random up to twice as much each time, so that many clients do not come back at once; never before the server wishes."""
        drawn = random.uniform(0, min(self.max_backoff, self.backoff * 2 ** (attempt - 1)))
        return min(self.max_backoff, max(drawn, retry_after or 0.0))

    def _once(self, method: str, path: str, body: bytes | None, calls: _Calls) -> Any:
        kept = self._kept()
        if kept is not None:
            try:
                return self._exchange(kept, method, path, body, calls)
            except _Unanswered:
                # The server has closed it meanwhile, and so it has the others, or will have soon:
                # that says nothing about how the server is, and so it is no try.
                self._drop_kept()
        return self._exchange(self._connection(), method, path, body, calls)

    def _exchange(
        self,
        connection: http.client.HTTPConnection,
        method: str,
        path: str,
        body: bytes | None,
        calls: _Calls,
    ) -> Any:
        is_answered = False
        try:
            if connection.sock is None:
                self._connect(connection, calls)
            with calls.using(connection.sock):
                response = self._response(connection, method, path, body)
                is_answered = True
                if response.status >= 300:
                    raise _refusal(response)
                value = _value(response)
        except (RewardError, _TryAgain):
            self._give_back(connection)
            raise
        except (OSError, http.client.HTTPException, ValueError) as error:
            # Refused, cut, late, or an answer that stops in the middle.
            connection.close()
            calls.pause(0)
            # A server that is late has the request: it is not asked at once what it is busy with.
            is_cut = isinstance(error, OSError) and not isinstance(error, TimeoutError)
            kind = _Unanswered if is_cut and not is_answered else _TryAgain
            raise kind(f"{type(error).__name__}: {error}") from error
        except BaseException:
            connection.close()
            raise
        self._give_back(connection)
        return value

    def _response(
        self, connection: http.client.HTTPConnection, method: str, path: str, body: bytes | None
    ) -> http.client.HTTPResponse:
        try:
            connection.request(method, f"{self._base}{path}", body, self._headers)
        except TimeoutError:
            raise
        except OSError as unsent:
            # A server that refuses a request says so as soon as it knows, and reads no more of it.
            with contextlib.suppress(OSError, http.client.HTTPException):
                response = http.client.HTTPResponse(connection.sock, method=method)
                response.begin()
                if response.status >= 300:
                    refusal = _refusal(response)
                    connection.close()
                    raise refusal from unsent
            raise
        return connection.getresponse()

    def _connect(self, connection: http.client.HTTPConnection, calls: _Calls) -> None:
        # Leaving cuts only what is connected.
        connection.timeout = min(self.timeout, calls.seconds_left())
        connection.connect()
        connection.sock.settimeout(self.timeout)

    def _kept(self) -> http.client.HTTPConnection | None:
        """Returns None where none is left that the server has not closed."""
        self._check()
        with self._lock:
            while self._idle:
                connection = self._idle.pop()
                if _is_silent(connection.sock):
                    return connection
                connection.close()
        return None

    def _drop_kept(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _connection(self) -> http.client.HTTPConnection:
        if self._scheme == "https":
            return http.client.HTTPSConnection(
                self._host, self._port, timeout=self.timeout, context=self._ssl_context
            )
        return http.client.HTTPConnection(self._host, self._port, timeout=self.timeout)

    def _give_back(self, connection: http.client.HTTPConnection) -> None:
        with self._lock:
            if not self._closed and connection.sock is not None:
                self._idle.append(connection)
                return
        connection.close()


class AsyncRewardClient:
    """The same for asyncio: every method of :class:`RewardClient` as a coroutine. Requests run in threads of the client's own."""

    def __init__(self, url: str, *, in_flight: int = 64, **options: Any) -> None:
        """:param in_flight: requests under way at a time, single ones as well. :param options: those of :class:`RewardClient`."""
        self._client = RewardClient(url, in_flight=in_flight, **options)
        self._threads = _threads(self, in_flight)

    @property
    def url(self) -> str:
        """Without the token."""
        return self._client.url

    async def score(self, response: str, ground_truth: Any = None, **more: Any) -> Outcome:
        """As :meth:`RewardClient.score`."""
        sample = {"response": response, "ground_truth": ground_truth, **more}
        return await self._run(partial(self._client._score, sample))

    async def score_batch(self, samples: Iterable[Sample]) -> list[Outcome]:
        """As :meth:`RewardClient.score_batch`."""
        outcomes = {index: outcome async for index, outcome in self.score_stream(samples)}
        return [outcomes[index] for index in range(len(outcomes))]

    async def score_stream(self, samples: Iterable[Sample]) -> AsyncIterator[tuple[int, Outcome]]:
        """As :meth:`RewardClient.score_stream`."""
        client = self._client
        requests = _chunks(samples, client.batch_size)
        under_way: dict[asyncio.Future[list[Outcome]], int] = {}
        is_over = False
        try:
            while True:
                while not is_over and len(under_way) < client.in_flight:
                    first, chunk = next(requests, (0, []))
                    if not chunk:
                        is_over = True
                        continue
                    under_way[asyncio.ensure_future(self._request(first, chunk))] = first
                if not under_way:
                    return
                done, _ = await asyncio.wait(under_way, return_when=asyncio.FIRST_COMPLETED)
                for one in done:
                    first = under_way.pop(one)
                    for offset, outcome in enumerate(one.result()):
                        yield first + offset, outcome
        finally:
            for one in under_way:
                one.cancel()
                # The first error is raised, and asyncio would log the others.
                one.add_done_callback(lambda it: it.cancelled() or it.exception())

    async def ready(self) -> bool:
        """As :meth:`RewardClient.ready`."""
        return await self._run(self._client._ready)

    async def wait_until_ready(self, timeout: float = 60.0) -> None:
        """As :meth:`RewardClient.wait_until_ready`."""
        await self._run(partial(self._client._wait_until_ready, timeout))

    async def close(self) -> None:
        """As :meth:`RewardClient.close`."""
        await asyncio.get_running_loop().run_in_executor(None, self._close)

    def __getstate__(self) -> Any:
        raise _no_pickle(self)

    async def __aenter__(self) -> AsyncRewardClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _request(self, first: int, chunk: Sequence[Sample]) -> list[Outcome]:
        return await self._run(partial(self._client._score_request, first, chunk))

    async def _run(self, work: Callable[[_Calls], T]) -> T:
        self._client._check()
        calls = _Calls()
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, work, calls)
        finally:
            calls.leave()

    def _close(self) -> None:
        self._threads.shutdown(wait=True, cancel_futures=True)
        self._client.close()


RewardFunction = Callable[..., list["float | None"]]
AsyncRewardFunction = Callable[..., Coroutine[Any, Any, list["float | None"]]]

#: What TRL gives reward functions beside the columns of the data set.
_OF_TRAINER = frozenset(
    {
        "trainer_state",
        "log_extra",
        "log_metric",
        "environments",
        "completion_ids",
        "completions_ids",
    }
)


@dataclass(frozen=True)
class _Taken:
    """Columns of a data set, by what they are taken for."""

    ground_truth: str | None
    data_source: str | None
    columns: Sequence[str] | None


def reward_function(
    client: RewardClient | str,
    *,
    name: str = "rayling",
    ground_truth: str | None = None,
    data_source: str | None = None,
    columns: Sequence[str] | None = None,
    raise_above: float = 1.0,
) -> RewardFunction:
    """A reward function for TRL: ``GRPOTrainer(reward_funcs=reward_function("http://127.0.0.1:8100"), ...)``.

    It is called with ``prompts``, ``completions`` and the columns of the data set. A completion that could not be scored gets ``None``, which TRL leaves out.
    Columns reach the TypeScript function as ``extraInfo``: those that JSON has values for, and so no images. NaN is ``null`` in them. A ground truth that is NaN
    is a ValueError that names the sample: without it, the function might score the answer as wrong.

    :param client: a client, or the URL of one.
    :param name: under which TRL logs the reward.
    :param ground_truth: the column with it; default: the first of ``ground_truth``, ``solution``, ``answer`` and ``label`` that there is.
    :param data_source: the column that names the data set; default: ``data_source``, if there is one.
    :param columns: those that reach the function, of which each must be one that can be sent.
    :param raise_above: raises RewardUnavailableError where more than this share of a batch could not be scored; default: never.
    """
    own = RewardClient(client) if isinstance(client, str) else client
    taken = _Taken(ground_truth, data_source, columns)

    def reward(
        prompts: Sequence[Any] | None = None, *, completions: Sequence[Any], **data: Any
    ) -> list[float | None]:
        samples = _samples(prompts, completions, data, taken)
        return _scores(own.score_batch(samples), raise_above, own.url)

    reward.__name__ = name
    reward.__qualname__ = name
    return reward


def async_reward_function(
    client: AsyncRewardClient | str,
    *,
    name: str = "rayling",
    ground_truth: str | None = None,
    data_source: str | None = None,
    columns: Sequence[str] | None = None,
    raise_above: float = 1.0,
) -> AsyncRewardFunction:
    """As :func:`reward_function`, as a coroutine function, of which TRL runs several at a time."""
    own = AsyncRewardClient(client) if isinstance(client, str) else client
    taken = _Taken(ground_truth, data_source, columns)

    async def reward(
        prompts: Sequence[Any] | None = None, *, completions: Sequence[Any], **data: Any
    ) -> list[float | None]:
        samples = _samples(prompts, completions, data, taken)
        return _scores(await own.score_batch(samples), raise_above, own.url)

    reward.__name__ = name
    reward.__qualname__ = name
    return reward


def _scores(outcomes: Sequence[Outcome], raise_above: float, url: str) -> list[float | None]:
    failed = [outcome for outcome in outcomes if not outcome.valid]
    if len(failed) > raise_above * len(outcomes):
        error = failed[0].error
        reason = "" if error is None else f", the first: {error.code}: {error.message}"
        cause = f"{len(failed)} of {len(outcomes)} samples could not be scored{reason}"
        raise RewardUnavailableError(url, 1, cause)
    return [outcome.score for outcome in outcomes]


def _columns(data: Mapping[str, Any], count: int) -> dict[str, Sequence[Any]]:
    return {
        name: column
        for name, column in data.items()
        if name not in _OF_TRAINER and isinstance(column, (list, tuple)) and len(column) == count
    }


def _column(name: str, lists: Mapping[str, Sequence[Any]]) -> Sequence[Any]:
    if name in lists:
        return lists[name]
    raise KeyError(f"the data set has no column {name!r}: it has {sorted(lists)}")


def _sent(
    lists: Mapping[str, Sequence[Any]], names: Sequence[str] | None
) -> dict[str, Sequence[Any]]:
    if names is not None:
        return {name: _column(name, lists) for name in names}
    sendable: dict[str, Sequence[Any]] = {}
    for name, column in lists.items():
        with contextlib.suppress(TypeError, ValueError):
            sendable[name] = [_Plain(is_strict=False).of(value, name) for value in column]
    return sendable


def _samples(
    prompts: Sequence[Any] | None,
    completions: Sequence[Any],
    data: Mapping[str, Any],
    taken: _Taken,
) -> list[dict[str, Any]]:
    lists = _columns(data, len(completions))
    sent = _sent(lists, taken.columns)
    usual = ("ground_truth", "solution", "answer", "label")
    truth = taken.ground_truth or next((name for name in usual if name in lists), None)
    source = taken.data_source or ("data_source" if "data_source" in lists else None)
    truths = None if truth is None else _column(truth, lists)
    sources = None if source is None else _column(source, lists)
    return [
        {
            "response": _text(completions[index]),
            # Without the images of its messages.
            "prompt": None if prompts is None else _Plain(is_strict=False).of(prompts[index], ""),
            "ground_truth": None if truths is None else truths[index],
            "data_source": None if sources is None else sources[index],
            "extra_info": {name: column[index] for name, column in sent.items()},
        }
        for index in range(len(completions))
    ]


def _text(completion: Any) -> str:
    """What the model said: a text, or the contents of its messages."""
    if isinstance(completion, str):
        return completion
    contents = [
        message.get("content") for message in completion if message.get("role") == "assistant"
    ]
    return "\n".join(_content(content) for content in contents)


def _content(content: Any) -> str:
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content)


def _chunks(samples: Iterable[Sample], size: int) -> Iterator[tuple[int, list[Sample]]]:
    """With the index of the first one."""
    chunk: list[Sample] = []
    first = 0
    for sample in samples:
        chunk.append(sample)
        if len(chunk) == size:
            yield first, chunk
            first += size
            chunk = []
    if chunk:
        yield first, chunk


def _parts(texts: Sequence[bytes], most: int) -> Iterator[list[bytes]]:
    """Of so many bytes at most, but for a text that is longer by itself."""
    part: list[bytes] = []
    size = 0
    for text in texts:
        if part and size + len(text) > most:
            yield part
            part, size = [], 0
        part.append(text)
        size += len(text) + 1
    if part:
        yield part


def _keyed(sample: Sample, what: str) -> dict[str, Any]:
    if not isinstance(sample, Mapping):
        raise TypeError(f"{what} must be a mapping with a response, and is {sample!r}")
    told = {name: value for name, value in sample.items() if value is not None}
    return {"id": str(uuid.uuid4()), **told}


def _encoded(sample: Mapping[str, Any], what: str) -> bytes:
    try:
        return _json(sample)
    except (TypeError, ValueError, RecursionError):
        # It has more than JSON, or what nothing can be made of: the place is found below.
        pass
    try:
        return _json(_Plain(is_strict=True).of(sample, ""))
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(_well_formed(f"{what} cannot be sent: {error}")) from None


def _json(value: Any) -> bytes:
    try:
        return json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        # Half of a surrogate pair, as a tokenizer cuts one: JSON has an escape for it, and UTF-8 has none.
        return json.dumps(value, allow_nan=False).encode()


class _Plain:
    """Makes values of JSON of what Python has: of NumPy and torch, of dates, enumerations, sets and bytes that are UTF-8.

    Dates of any precision are texts in ISO 8601; NaT, and what an array masks, is None. Keys are the texts that JSON has for them: ``true``, ``null``, ``5``.
    Strict, it raises TypeError or ValueError with the place of what JSON has nothing for. Else that is left out, and NaN is None, as pandas means it.
    """

    def __init__(self, is_strict: bool) -> None:
        self._is_strict = is_strict
        self._depth = 0

    def of(self, value: Any, place: str) -> Any:
        if isinstance(value, Enum):
            return self.of(value.value, place)
        if value is None or isinstance(value, (str, bool)):
            return value
        if isinstance(value, (int, float)):
            return self._number(value, place)
        # NumPy, pandas and torch, without importing them.
        if getattr(getattr(value, "dtype", None), "kind", None) in ("M", "m"):
            return self._time(value, place)
        for name in ("tolist", "item"):
            if callable(getattr(value, name, None)):
                plain = getattr(value, name)()
                if type(plain) is type(value):
                    # A longdouble of NumPy: Python has nothing as precise, and JSON neither.
                    plain = complex(value) if value.dtype.kind == "c" else float(value)
                return self.of(plain, place)
        if callable(getattr(value, "isoformat", None)):
            text = value.isoformat()
            return None if text == "NaT" else self.of(text, place)
        if isinstance(value, (bytes, bytearray)):
            with contextlib.suppress(UnicodeDecodeError):
                return value.decode()
        elif isinstance(value, (Mapping, Sequence, Set)):
            return self._container(value, place)
        kind = type(value)
        raise TypeError(f"{place} is a {kind.__module__}.{kind.__qualname__}")

    def _number(self, value: int | float, place: str) -> Any:
        if isinstance(value, int):
            try:
                str(int(value))
            except ValueError as error:
                raise ValueError(f"{place} is an integer of too many digits: {error}") from None
            return int(value)
        if math.isfinite(value):
            return float(value)
        if self._is_strict or not math.isnan(value):
            raise ValueError(f"{place} is {value}, which JSON does not have")
        return None

    def _container(self, value: Any, place: str) -> Any:
        self._depth += 1
        try:
            if self._depth > 200:
                raise ValueError(f"{place[:100]} is nested in itself, or too deep")
            if not isinstance(value, Mapping):
                return [self.of(one, f"{place}[{index}]") for index, one in enumerate(value)]
            made = {}
            for key, one in value.items():
                name = self._name(key, place)
                try:
                    made[name] = self.of(one, f"{place}.{name}" if place else name)
                except (TypeError, ValueError):
                    if self._is_strict:
                        raise
            return made
        finally:
            self._depth -= 1

    def _time(self, value: Any, place: str) -> Any:
        """Of NumPy, one or many. Its `tolist` has integers where Python has no date as precise, or of that year."""
        if getattr(value, "ndim", 0) > 0:
            return [self.of(one, f"{place}[{index}]") for index, one in enumerate(value)]
        if value.dtype.kind == "m":
            raise TypeError(f"{place} is a numpy.timedelta64")
        date = value.tolist()
        if isinstance(date, int) and value.dtype.name.endswith(("ns]", "ps]", "fs]", "as]")):
            whole = value.astype("datetime64[us]")
            date = whole.tolist() if whole == value else date
        if isinstance(date, int):
            return str(value)
        return None if date is None else date.isoformat()

    def _name(self, key: Any, place: str) -> str:
        if isinstance(key, Enum):
            key = key.value
        if isinstance(key, str):
            return key
        if key is None or isinstance(key, (int, float)):
            return json.dumps(key)
        try:
            plain = self.of(key, place)
        except (TypeError, ValueError):
            return str(key)
        if isinstance(plain, str):
            return plain
        return str(key) if isinstance(plain, (list, dict)) else json.dumps(plain)


def _placed(error: RewardRequestError, first: int) -> RewardRequestError:
    """The server counts the samples of a request, and the caller all of them."""
    found = re.match(r"samples\[(\d+)\]", error.message)
    if found is None:
        return error
    message = f"samples[{first + int(found[1])}]{error.message[found.end() :]}"
    return RewardRequestError(error.status, error.code, message)


def _outcomes(wire: Mapping[str, Any]) -> list[Outcome]:
    return [_outcome(one) for one in wire["outcomes"]]


def _outcome(wire: Mapping[str, Any]) -> Outcome:
    error = wire.get("error")
    score, valid = wire["score"], wire["valid"]
    if not isinstance(valid, bool) or valid != (type(score) in (int, float)):
        raise ValueError(f"score {score!r} with valid {valid!r}")
    return Outcome(
        score=float(score) if valid else None,
        valid=valid,
        error=None
        if error is None
        else ScoreError(
            _well_formed(error["code"]), _well_formed(error["message"]), error["class"]
        ),
        extra=dict(wire.get("extra", {})),
        id=wire.get("id"),
        version=wire.get("version"),
        attempts=int(wire.get("attempts", 0)),
        latency_ms=float(wire.get("latency_ms", 0.0)),
        cost=wire.get("cost"),
        replayed=bool(wire.get("replayed", False)),
    )


def _is_silent(connected: socket.socket) -> bool:
    """Between requests, whatever can be read is the end, or belongs to no answer."""
    if not hasattr(select, "poll"):
        return not select.select([connected], [], [], 0)[0]
    # Not select(), which takes no descriptor beyond 1023.
    poll = select.poll()
    poll.register(connected, select.POLLIN)
    return not poll.poll(0)


def _value(response: http.client.HTTPResponse) -> Any:
    text = response.read()
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        # A page of a proxy, or an answer without a length that was cut.
        begins = text[:200].decode("utf-8", "replace")
        cause = f"{response.status} with what is no answer of rayling serve: {begins!r} ({error})"
        raise _TryAgain(cause) from error


def _refusal(response: http.client.HTTPResponse) -> Exception:
    text = response.read().decode("utf-8", "replace")
    try:
        error = json.loads(text)["error"]
        code, message = str(error["code"]), str(error["message"])
    except (ValueError, KeyError, TypeError):
        # Of a proxy in between.
        code, message = "unknown", text[:200]
    location = response.headers.get("location")
    if location is not None and response.status < 400:
        message = f"{message}; it leads to {location}" if message else f"it leads to {location}"
    # 408 is about one connection: it was slow, or a proxy ends one that it found idle.
    if response.status in (408, 429) or response.status >= 500:
        return _TryAgain(f"{response.status} {code}: {message}", _seconds(response))
    return RewardRequestError(response.status, code, message)


def _seconds(response: http.client.HTTPResponse) -> float | None:
    try:
        return float(response.headers.get("retry-after", ""))
    except ValueError:
        # None, or a date, which no server of ours sends.
        return None
