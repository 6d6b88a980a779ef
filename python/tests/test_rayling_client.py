"""The client against a real ``rayling serve``. Run them with pytest, or with ``python3 -m unittest`` where there is none.

RAYLING_SERVE names the command (a list in JSON); default: this checkout's.
"""

from __future__ import annotations

import asyncio
import contextlib
import enum
import inspect
import json
import os
import pickle
import select
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import unittest
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar
from unittest import mock

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "python/tests")]

from processes import IN_GATE, only_in_full  # noqa: E402

import rayling_client  # noqa: E402
from rayling_client import (  # noqa: E402
    AsyncRewardClient,
    RewardClient,
    RewardError,
    RewardRequestError,
    RewardUnavailableError,
    async_reward_function,
    reward_function,
)

COMMAND = json.loads(
    os.environ.get("RAYLING_SERVE")
    or json.dumps(
        [str(ROOT / "node_modules/.bin/node"), str(ROOT / "packages/rayling/src/cli/main.ts")]
    )
)
REWARD = ROOT / "packages/rayling/test/fixtures/served-reward.ts"
TOKEN = "a-token-of-some-length"


class Kind(enum.Enum):
    EASY = "easy"


class Server:
    """``rayling serve`` in a process of its own."""

    def __init__(self, *flags: str, port: int = 0, token: str | None = None) -> None:
        env = {key: value for key, value in os.environ.items() if key != "RAYLING_SERVE_TOKEN"}
        if token is not None:
            env["RAYLING_SERVE_TOKEN"] = token
        listen = ["--listen", f"127.0.0.1:{port}", "--workers", "1", "--no-request-log"]
        self.process = subprocess.Popen(
            [*COMMAND, "serve", "--reward", str(REWARD), *listen, *flags],
            stdout=subprocess.PIPE,
            env=env,
            text=True,
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line.startswith("Serving rewards on "), line
        self.url = line.split()[-1]

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


class Listening:
    """An HTTP server of the test's own."""

    def __init__(self, answer: Callable[[BaseHTTPRequestHandler], None]) -> None:
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                answer(self)

            def do_POST(self) -> None:
                answer(self)

            def log_message(self, *_: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            # Many connect at once, and one that is not taken tries again seconds later.
            request_queue_size = 128

        self.server = Server(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


def answer_with(
    handler: BaseHTTPRequestHandler, status: int, text: str, headers: dict[str, str] | None = None
) -> None:
    body = text.encode()
    handler.send_response(status)
    handler.send_header("content-length", str(len(body)))
    for name, value in (headers or {}).items():
        handler.send_header(name, value)
    handler.end_headers()
    handler.wfile.write(body)


class Gate:
    """What the reward function asks: counts its runs, and holds those that are to be held."""

    def __init__(self) -> None:
        self.runs: Counter[str] = Counter()
        self.lock = threading.Lock()
        self.open = threading.Event()
        self.open.set()
        self.held = threading.Semaphore(0)
        self.holds: Callable[[str], bool] = lambda _: False
        self.listening = Listening(self._answer)
        self.url = self.listening.url

    def _answer(self, handler: BaseHTTPRequestHandler) -> None:
        name = handler.path[1:]
        with self.lock:
            self.runs[name] += 1
            score = sum(self.runs.values())
        if not self.open.is_set() and self.holds(name):
            self.held.release()
            self.open.wait()
        # The server that asked may have been killed.
        with contextlib.suppress(OSError):
            answer_with(handler, 200, str(score))


class Shared:
    """One server for all that need none of their own: starting one takes longest."""

    gate: Gate
    server: Server
    client: RewardClient


def setUpModule() -> None:
    Shared.gate = Gate()
    Shared.server = Server("--reward-kwarg", f"gate={Shared.gate.url}")
    Shared.client = RewardClient(Shared.server.url)


def tearDownModule() -> None:
    Shared.client.close()
    Shared.server.kill()
    Shared.gate.listening.close()


class WithServer(unittest.TestCase):
    def setUp(self) -> None:
        self.gate = Shared.gate
        self.server = Shared.server
        self.client = Shared.client


class Scores(WithServer):
    def test_a_sample_has_its_score_and_its_extras(self) -> None:
        outcome = self.client.score("numbers", 4)
        self.assertEqual((outcome.score, outcome.valid, outcome.error), (0.25, True, None))
        self.assertEqual(outcome.extra["note"], "text")
        self.assertEqual(outcome.attempts, 1)
        self.assertIsNotNone(outcome.id)

    def test_a_failed_sample_has_none_and_a_reason(self) -> None:
        outcome = self.client.score("throw")
        self.assertIsNone(outcome.score)
        self.assertFalse(outcome.valid)
        assert outcome.error is not None
        self.assertEqual((outcome.error.code, outcome.error.kind), ("SCORE_THREW", "user-code"))

    def test_the_function_gets_what_it_is_sent(self) -> None:
        outcome = self.client.score(
            "told:",
            {"answer": [4]},
            data_source="gsm8k",
            prompt=[{"role": "user", "content": "2+2?"}],
            extra_info={"split": "test"},
        )
        told = {
            "groundTruth": {"answer": [4]},
            "dataSource": "gsm8k",
            "question": "2+2?",
            "split": "test",
        }
        self.assertEqual({key: outcome.extra[key] for key in told}, told)

    def test_a_batch_of_several_requests_keeps_its_order(self) -> None:
        with RewardClient(self.server.url, batch_size=7, in_flight=3) as client:
            samples = [{"response": str(i % 2), "ground_truth": 1} for i in range(100)]
            outcomes = client.score_batch(iter(samples))
            self.assertEqual([outcome.score for outcome in outcomes], [i % 2 for i in range(100)])
            self.assertEqual(client.score_batch([]), [])
            self.assertEqual(
                sorted(index for index, _ in client.score_stream(samples)), list(range(100))
            )

    def test_an_id_is_scored_once(self) -> None:
        first = self.client.score("ask:once", id="mine")
        again = self.client.score("ask:once", id="mine")
        self.assertEqual((first.score, first.replayed), (again.score, False))
        self.assertTrue(again.replayed)
        self.assertEqual(self.gate.runs["once"], 1)
        self.client.score("ask:each")
        self.client.score("ask:each")
        self.assertEqual(self.gate.runs["each"], 2)

    def test_half_of_a_surrogate_pair_travels(self) -> None:
        self.assertEqual(self.client.score("\ud83d", "\ud83d").score, 1)
        self.assertEqual(self.client.score("\U0001f600 é", "\U0001f600 é").score, 1)

    def test_values_of_python_travel_as_those_of_json(self) -> None:
        class Array:
            def tolist(self) -> list[Any]:
                return [1, Kind.EASY]

        sent = {"array": Array(), "day": date(2026, 1, 2), "bytes": b"text", "set": {5}, 7: (1,)}
        told = {"array": [1, "easy"], "day": "2026-01-02", "bytes": "text", "set": [5], "7": [1]}
        outcome = self.client.score("told:", Kind.EASY, extra_info={"sent": sent})
        self.assertEqual((outcome.extra["sent"], outcome.extra["groundTruth"]), (told, "easy"))

    def test_what_cannot_be_sent_is_named(self) -> None:
        inside: list[Any] = []
        inside.append({"again": inside})
        for value, error, place in (
            (object(), TypeError, r"extra_info\.a\[0\] is a builtins\.object"),
            (b"\xff", TypeError, r"extra_info\.a\[0\] is a builtins\.bytes"),
            (float("inf"), ValueError, r"extra_info\.a\[0\] is inf"),
            (10**5000, ValueError, r"extra_info\.a\[0\] is an integer of too many digits"),
            (inside, ValueError, r"extra_info\.a\[0\]\[0\]\.again"),
        ):
            with self.assertRaisesRegex(error, place):
                self.client.score("1", extra_info={"a": [value]})
        with self.assertRaisesRegex(TypeError, "sample 1 must be a mapping"):
            self.client.score_batch([{"response": "1"}, "1"])  # type: ignore[list-item]
        with self.assertRaisesRegex(ValueError, "sample 1 cannot be sent"):
            self.client.score_batch(
                [{"response": "1"}, {"response": "1", "ground_truth": float("nan")}]
            )
        with self.assertRaisesRegex(TypeError, "the sample cannot be sent"):
            self.client.score("1", object())

    def test_what_the_server_refuses_is_not_tried_again(self) -> None:
        with self.assertRaises(RewardRequestError) as raised:
            self.client.score_batch([{"response": "1"}, {"respnse": "1"}])
        self.assertEqual((raised.exception.status, raised.exception.code), (422, "invalid_request"))
        self.assertIn("samples[1]", raised.exception.message)

    def test_a_refused_sample_is_counted_among_all_of_its_batch(self) -> None:
        with (
            RewardClient(self.server.url, batch_size=2) as client,
            self.assertRaisesRegex(RewardRequestError, r"samples\[5\]\.response"),
        ):
            client.score_batch([*[{"response": "1"}] * 5, {"response": 1}])

    def test_options_that_cannot_be_are_refused(self) -> None:
        wrong: list[dict[str, Any]] = [
            {"timeout": 0},
            {"timeout": None},
            {"backoff": -1},
            {"max_backoff": float("nan")},
            {"attempts": 1.5},
            {"batch_size": 0},
            {"token": "two\nlines"},
        ]
        for options in wrong:
            with self.assertRaisesRegex(ValueError, f"{next(iter(options))} must be"):
                RewardClient(self.server.url, **options)
        with self.assertRaisesRegex(ValueError, "url must be"):
            RewardClient(f"{self.server.url}?reward=dict")


class Interrupts(unittest.TestCase):
    """A server that never answers: a program that waited for it would never end."""

    def setUp(self) -> None:
        self.asked = threading.Semaphore(0)
        self.open = threading.Event()
        self.listening = Listening(self.answer)
        self.addCleanup(self.listening.close)
        self.addCleanup(self.open.set)

    def answer(self, _: BaseHTTPRequestHandler) -> None:
        self.asked.release()
        self.open.wait()

    def interrupted(self, does: str) -> int:
        program = f"""
            import asyncio, signal
            from rayling_client import *
            signal.signal(signal.SIGINT, signal.default_int_handler)
            URL = {self.listening.url!r}
            async def score(does):
                async with AsyncRewardClient(URL) as client:
                    await does(client)
            {does}
        """
        process = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(program)],
            env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
            stderr=subprocess.DEVNULL,
        )
        self.asked.acquire()
        process.send_signal(signal.SIGINT)
        return process.wait()

    def test_a_program_ends_where_it_is_interrupted(self) -> None:
        cases = [
            "RewardClient(URL).score_batch([{'response': '1'}])",
            "asyncio.run(score(lambda client: client.score_batch([{'response': '1'}])))",
            "RewardClient(URL).score('1')",
            "with RewardClient(URL) as client: client.score_batch([{'response': '1'}])",
            "reward_function(URL)(completions=['1'])",
            "asyncio.run(score(lambda client: client.score('1')))",
        ]
        # A program each: with threads of a batch, and with an event loop.
        for does in cases[:2] if IN_GATE else cases:
            with self.subTest(does):
                self.assertEqual(self.interrupted(does), -signal.SIGINT)

    def test_a_program_ends_where_it_has_left_what_it_asked(self) -> None:
        async def cancelled(does: Callable[[AsyncRewardClient], Coroutine[Any, Any, Any]]) -> None:
            async with AsyncRewardClient(self.listening.url) as client:
                asking = asyncio.ensure_future(does(client))
                await asyncio.to_thread(self.asked.acquire)
                asking.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await asking

        for does in (
            lambda client: client.score("1"),
            AsyncRewardClient.ready,
            AsyncRewardClient.wait_until_ready,
        ):
            asyncio.run(cancelled(does))


class Closing(unittest.TestCase):
    """A server that holds its answers: what is closed has requests under way, and samples that wait for their turn."""

    def setUp(self) -> None:
        self.asked = threading.Semaphore(0)
        self.open = threading.Event()
        self.listening = Listening(self.answer)
        self.addCleanup(self.listening.close)
        self.addCleanup(self.open.set)

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        handler.rfile.read(int(handler.headers["content-length"]))
        self.asked.release()
        self.open.wait()
        outcome = {"score": 1, "valid": True}
        is_batch = handler.path.endswith("batch")
        answer_with(handler, 200, json.dumps({"outcomes": [outcome]} if is_batch else outcome))

    def test_coroutines_under_way_finish_and_those_that_wait_fail(self) -> None:
        async def run() -> None:
            client = AsyncRewardClient(self.listening.url, in_flight=1)
            with contextlib.ExitStack() as ends:
                ends.callback(self.open.set)
                await check(client)

        async def check(client: AsyncRewardClient) -> None:
            first = asyncio.ensure_future(client.score("1"))
            await asyncio.to_thread(self.asked.acquire)
            waiting = [client.score("2"), client.score_batch([{"response": "3"}])]
            failing = asyncio.gather(*waiting, return_exceptions=True)
            await asyncio.sleep(0)
            closing = asyncio.ensure_future(client.close())
            for error in await failing:
                self.assertIsInstance(error, RuntimeError)
                self.assertEqual(str(error), "the client is closed")
            self.open.set()
            await closing
            self.assertEqual((await first).score, 1)
            with self.assertRaisesRegex(RuntimeError, "the client is closed"):
                await client.score("4")

        asyncio.run(run())

    def test_a_batch_that_waits_for_its_turn_fails(self) -> None:
        client = RewardClient(self.listening.url, in_flight=1)
        is_read = threading.Event()

        def samples() -> Iterator[dict[str, str]]:
            yield {"response": "2"}
            is_read.set()

        with ThreadPoolExecutor() as threads, contextlib.ExitStack() as ends:
            ends.callback(self.open.set)
            first = threads.submit(client.score_batch, [{"response": "1"}])
            self.asked.acquire()
            waiting = threads.submit(client.score_batch, samples())
            is_read.wait()
            closing = threads.submit(client.close)
            with self.assertRaisesRegex(RuntimeError, "the client is closed"):
                waiting.result()
            self.open.set()
            closing.result()
            self.assertEqual([outcome.score for outcome in first.result()], [1])

    def test_a_client_is_for_one_process_and_says_so(self) -> None:
        for client in (RewardClient(self.listening.url), AsyncRewardClient(self.listening.url)):
            with self.assertRaisesRegex(TypeError, "Client cannot be sent to another process"):
                pickle.dumps(client)


@unittest.skipUnless(hasattr(os, "fork"), "there are no forks here")
class Forks(unittest.TestCase):
    def test_a_fork_has_connections_of_its_own(self) -> None:
        outcome = json.dumps({"score": 1, "valid": True})
        ports: set[int] = set()

        def answer(handler: BaseHTTPRequestHandler) -> None:
            handler.rfile.read(int(handler.headers["content-length"]))
            ports.add(handler.client_address[1])
            batch = json.dumps({"outcomes": [json.loads(outcome)]})
            answer_with(handler, 200, batch if handler.path.endswith("batch") else outcome)

        listening = Listening(answer)
        self.addCleanup(listening.close)
        client = RewardClient(listening.url)
        for _ in range(2):
            client.score("1")
        client.score_batch([{"response": "1"}])
        self.assertEqual(len(ports), 1)
        child = os.fork()
        if child == 0:
            try:
                os._exit(int(client.score_batch([{"response": "1"}])[0].score != 1))
            finally:
                os._exit(2)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
        client.score("1")
        self.assertEqual(len(ports), 2)

    def test_a_fork_has_threads_of_its_own(self) -> None:
        outcome = json.dumps({"score": 1, "valid": True})

        def answer(handler: BaseHTTPRequestHandler) -> None:
            handler.rfile.read(int(handler.headers["content-length"]))
            answer_with(handler, 200, outcome)

        listening = Listening(answer)
        self.addCleanup(listening.close)
        client = AsyncRewardClient(listening.url)
        self.assertEqual(asyncio.run(client.score("1")).score, 1)
        # The thread waits for work, which it would get in this process alone.
        client._threads._free.acquire()
        client._threads._free.release()
        child = os.fork()
        if child == 0:
            try:
                os._exit(int(asyncio.run(client.score("1")).score != 1))
            finally:
                os._exit(2)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
        asyncio.run(client.close())


class Answers(unittest.TestCase):
    """Servers that refuse what they have not read, and services that are none of ours."""

    def new_client(
        self, answer: Callable[[BaseHTTPRequestHandler], None], **options: Any
    ) -> RewardClient:
        listening = Listening(answer)
        self.addCleanup(listening.close)
        client = RewardClient(listening.url, backoff=0.0, **options)
        self.addCleanup(client.close)
        return client

    def test_a_refusal_is_told_that_comes_before_all_is_sent(self) -> None:
        seen: list[int] = []

        def answer(handler: BaseHTTPRequestHandler) -> None:
            status = statuses[len(seen)]
            seen.append(status)
            error = {"error": {"code": "some_code", "message": "some words"}}
            answer_with(handler, status, json.dumps(error), {"connection": "close"})
            handler.close_connection = True

        client = self.new_client(answer)
        # More than sockets hold.
        text = "x" * 2**24
        statuses = [401, 413, 413, 503, 421]
        for status in statuses[:2]:
            with self.assertRaisesRegex(RewardRequestError, f"^{status} some_code: some words$"):
                client.score(text)
        with self.assertRaisesRegex(RewardRequestError, "^413 some_code: sample 0: some words$"):
            reward_function(client)(completions=[text])
        # What may go better later is tried again.
        with self.assertRaisesRegex(RewardRequestError, "^421 some_code"):
            client.score(text)
        self.assertEqual(seen, statuses)

    def test_a_request_that_is_too_long_is_sent_in_parts(self) -> None:
        counts: list[int] = []
        refused: list[int] = []

        def answer(handler: BaseHTTPRequestHandler) -> None:
            body = handler.rfile.read(int(handler.headers["content-length"]))
            samples = json.loads(body)["samples"]
            if len(body) > 2000:
                refused.append(len(samples))
                answer_with(handler, 413, "too much for this proxy")
                return
            counts.append(len(samples))
            outcomes = [{"score": len(one["response"]), "valid": True} for one in samples]
            answer_with(handler, 200, json.dumps({"outcomes": outcomes}))

        client = self.new_client(answer)
        samples = [{"response": "x" * size} for size in range(1, 101)]
        scores = [float(size) for size in range(1, 101)]
        self.assertEqual([one.score for one in client.score_batch(samples)], scores)
        self.assertEqual(sum(counts), 100)
        with self.assertRaisesRegex(RewardRequestError, "^413 unknown: sample 3: too much"):
            client.score_batch([*samples[:3], {"response": "x" * 3000}])
        counts.clear()
        refused.clear()
        with mock.patch.object(rayling_client, "_FULL_REQUEST", 1500):
            self.assertEqual([one.score for one in client.score_batch(samples)], scores)
        self.assertEqual((sum(counts), refused), (100, []))
        self.assertGreater(max(counts), 1)

    def test_an_answer_that_is_none_of_ours_is_told_with_its_beginning(self) -> None:
        answers = [
            "{}",
            "null",
            "[]",
            '{"outcomes": null}',
            '{"outcomes": [1]}',
            '{"outcomes": [{"score": 1}]}',
            '{"outcomes": [{"score": "1", "valid": true}]}',
            '{"outcomes": [{"score": null, "valid": true}]}',
            '{"outcomes": [{"score": 0, "valid": false}]}',
            '{"outcomes": [{"score": null, "valid": false, "error": "no"}]}',
        ]
        left = list(answers)

        def answer(handler: BaseHTTPRequestHandler) -> None:
            handler.rfile.read(int(handler.headers["content-length"]))
            answer_with(handler, 200, left.pop(0))

        client = self.new_client(answer)
        for told in answers:
            with self.assertRaises(RewardError) as raised:
                client.score_batch([{"response": "1"}])
            self.assertIs(type(raised.exception), RewardError)
            said = f"{client.url}/score/batch gave what is no answer of rayling serve"
            self.assertIn(said, str(raised.exception))
            self.assertIn(told, str(raised.exception))
        left.append("{}")
        with self.assertRaisesRegex(RewardError, "/score gave what is no answer.*: {}"):
            client.score("1")
        left.append("<html>")
        again = RewardClient(client.url, attempts=1)
        self.addCleanup(again.close)
        with self.assertRaisesRegex(RewardUnavailableError, "200 with what is no .*'<html>'"):
            again.score("1")

    def test_a_redirection_says_where_it_leads(self) -> None:
        client = self.new_client(
            lambda handler: answer_with(handler, 302, "", {"location": "https://there/login"})
        )
        with self.assertRaisesRegex(RewardRequestError, "it leads to https://there/login"):
            client.score("1")


class Tries(WithServer):
    def proxy(
        self, spoil: Callable[[BaseHTTPRequestHandler, int, bytes], bool]
    ) -> tuple[str, list[str]]:
        """Passes requests on. `spoil` gets the number of the try and the true answer; True: it has answered itself."""
        seen: list[str] = []

        def answer(handler: BaseHTTPRequestHandler) -> None:
            body = handler.rfile.read(int(handler.headers.get("content-length", "0")))
            seen.append(handler.path)
            request = post(self.server.url + handler.path, body)
            if not spoil(handler, len(seen), request):
                answer_with(handler, 200, request.decode(), {"content-type": "application/json"})

        listening = Listening(answer)
        self.addCleanup(listening.close)
        return listening.url, seen

    def test_an_answer_that_was_lost_is_asked_for_again_and_nothing_is_scored_twice(self) -> None:
        def spoil(handler: BaseHTTPRequestHandler, attempt: int, answer: bytes) -> bool:
            if attempt == 1:
                answer_with(handler, 503, "busy", {"retry-after": "0"})
            elif attempt == 2:
                # Half an answer, and the connection ends.
                handler.send_response(200)
                handler.send_header("content-length", str(len(answer)))
                handler.end_headers()
                handler.wfile.write(answer[: len(answer) // 2])
                handler.close_connection = True
            elif attempt == 3:
                handler.connection.shutdown(socket.SHUT_RDWR)
                handler.close_connection = True
            else:
                return False
            return True

        url, seen = self.proxy(spoil)
        with RewardClient(url, backoff=0.0) as client:
            outcomes = client.score_batch([{"response": "ask:lost"}, {"response": "ask:lost2"}])
        self.assertEqual(len(seen), 4)
        self.assertTrue(all(outcome.replayed for outcome in outcomes))
        self.assertEqual((self.gate.runs["lost"], self.gate.runs["lost2"]), (1, 1))

    def test_retry_after_is_waited_for(self) -> None:
        client = RewardClient(self.server.url, backoff=0.5, max_backoff=4.0)
        self.addCleanup(client.close)
        self.assertEqual(client._pause(1, 3.0), 3.0)
        self.assertEqual(client._pause(1, 60.0), 4.0)
        pauses = [client._pause(attempt, None) for attempt in range(1, 9) for _ in range(20)]
        self.assertTrue(all(0 <= pause <= 4.0 for pause in pauses))
        self.assertGreater(max(pauses), 1.0)

    def test_a_server_that_is_not_there_is_told_after_all_tries(self) -> None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            url = f"http://127.0.0.1:{taken.getsockname()[1]}"
            with RewardClient(url, attempts=3, backoff=0.0) as client:
                with self.assertRaises(RewardUnavailableError) as raised:
                    client.score("1")
                self.assertEqual(raised.exception.attempts, 3)
                self.assertFalse(client.ready())


class KeptConnections(WithServer):
    """A server closes them when it likes: that is no failure of a request."""

    def closing(
        self, spoil: Callable[[BaseHTTPRequestHandler], bool], together: int = 1
    ) -> tuple[str, list[int]]:
        """Passes requests on, the first ones together, and so on connections of their own.

        `spoil` gets those on a kept connection, once they are scored; True: it has answered
        itself. Returns the ports that requests came from, too.
        """
        ports: list[int] = []
        all_there = threading.Barrier(together)

        def answer(handler: BaseHTTPRequestHandler) -> None:
            body = handler.rfile.read(int(handler.headers["content-length"]))
            port = handler.client_address[1]
            is_kept = port in ports
            ports.append(port)
            request = post(self.server.url + handler.path, body)
            if is_kept and spoil(handler):
                return
            if len(ports) <= together:
                all_there.wait()
            answer_with(handler, 200, request.decode(), {"content-type": "application/json"})

        listening = Listening(answer)
        self.addCleanup(listening.close)
        return listening.url, ports

    @only_in_full("those of a server that was restarted were closed in a pause as well, below")
    def test_those_closed_in_a_pause_cost_no_attempt(self) -> None:
        gate = Gate()
        self.addCleanup(gate.listening.close)
        server = Server("--idle-timeout", "1", "--reward-kwarg", f"gate={gate.url}")
        self.addCleanup(server.kill)

        def once() -> AsyncRewardClient:
            return AsyncRewardClient(server.url, attempts=1)

        async def run() -> None:
            gate.open.clear()
            gate.holds = lambda _: True
            async with once() as single, once() as batch, once() as probe:
                clients = (single, batch, probe)
                scores = [
                    asyncio.ensure_future(client.score(f"ask:{i}"))
                    for i in range(20)
                    for client in clients
                ]
                for _ in scores:
                    await asyncio.to_thread(gate.held.acquire)
                gate.open.set()
                await asyncio.gather(*scores)
                for client in clients:
                    self.assertEqual(len(client._client._idle), 20)
                    await asyncio.to_thread(wait_for_ends, client._client)
                self.assertEqual((await single.score("1", "1")).score, 1)
                self.assertEqual((await batch.score_batch([{"response": "1"}]))[0].score, 0)
                self.assertTrue(await probe.ready())

        asyncio.run(run())

    def test_those_of_a_server_that_was_restarted_cost_no_attempt(self) -> None:
        first = Server()
        client = RewardClient(first.url, attempts=1)
        self.addCleanup(client.close)
        client.score("1", "1")
        first.kill()
        wait_for_ends(client)
        second = Server(port=int(first.url.rpartition(":")[2]))
        self.addCleanup(second.kill)
        self.assertEqual(client.score("1", "1").score, 1)

    def test_one_that_ends_under_a_request_is_asked_again_on_a_new_one(self) -> None:
        def spoil(handler: BaseHTTPRequestHandler) -> bool:
            handler.connection.shutdown(socket.SHUT_RDWR)
            handler.close_connection = True
            return True

        url, ports = self.closing(spoil, together=2)
        with RewardClient(url, attempts=1, batch_size=1, in_flight=2) as client:
            client.score_batch([{"response": "1"}] * 2)
            outcome = client.score("ask:kept")
            # The other one was given up with it.
            self.assertEqual(len(client._idle), 1)
        self.assertEqual(self.gate.runs["kept"], 1)
        self.assertTrue(outcome.replayed)
        self.assertEqual(len(ports), 4)
        self.assertEqual(len(set(ports)), 3)

    def test_a_proxy_that_ends_an_idle_one_with_408_is_asked_again(self) -> None:
        def spoil(handler: BaseHTTPRequestHandler) -> bool:
            answer_with(handler, 408, "idle for too long", {"connection": "close"})
            return True

        url, ports = self.closing(spoil)
        with RewardClient(url, attempts=2, backoff=0.0) as client:
            client.score("1")
            self.assertEqual(client.score("1", "1").score, 1)
        self.assertEqual((len(ports), len(set(ports))), (3, 2))

    def test_half_an_answer_and_none_in_time_are_attempts(self) -> None:
        asked = threading.Semaphore(0)
        is_over = threading.Event()
        self.addCleanup(is_over.set)

        def half(handler: BaseHTTPRequestHandler) -> bool:
            handler.send_response(200)
            handler.send_header("content-length", "100")
            handler.end_headers()
            handler.wfile.write(b"{")
            handler.close_connection = True
            asked.release()
            return True

        def late(_: BaseHTTPRequestHandler) -> bool:
            asked.release()
            return is_over.wait()

        cases = ((half, 600, "IncompleteRead"), (late, 0.2, "TimeoutError"))
        for spoil, seconds, cause in cases:
            url, ports = self.closing(spoil)
            with RewardClient(url, attempts=1) as client:
                client.score("1")
                [kept] = client._idle
                kept.sock.settimeout(seconds)
                with self.assertRaisesRegex(RewardUnavailableError, f"1 tries, last: {cause}"):
                    client.score("1")
            asked.acquire()
            self.assertEqual(len(ports), 2)


class Readiness(WithServer):
    def new_client(self, url: str, **options: Any) -> RewardClient:
        client = RewardClient(url, **options)
        self.addCleanup(client.close)
        return client

    def listening(self, answer: Callable[[BaseHTTPRequestHandler], None]) -> str:
        listening = Listening(answer)
        self.addCleanup(listening.close)
        return listening.url

    def answering(self, *answers: tuple[int, str]) -> str:
        """Gives each of these answers once, and the last one from then on."""
        left = list(answers)

        def answer(handler: BaseHTTPRequestHandler) -> None:
            answer_with(handler, *(left.pop(0) if len(left) > 1 else left[0]))

        return self.listening(answer)

    def not_ready(self, url: str, timeout: float) -> RewardUnavailableError:
        """Waits with a client that gives each request ten minutes, and so would wait for them."""
        start = time.monotonic()
        with self.assertRaises(RewardUnavailableError) as raised:
            self.new_client(url).wait_until_ready(timeout=timeout)
        self.assertGreaterEqual(time.monotonic() - start, timeout)
        self.assertLess(time.monotonic() - start, 300)
        return raised.exception

    def test_a_server_that_is_ready_is_waited_for_no_longer(self) -> None:
        for timeout in (600, float("inf")):
            self.new_client(self.server.url).wait_until_ready(timeout=timeout)

    def test_a_server_that_is_being_started_is_waited_for(self) -> None:
        starting = [(503, "loading"), (404, "default backend"), (429, "busy"), (200, "{}")]
        self.new_client(self.answering(*starting)).wait_until_ready(timeout=600)

    def test_a_refusal_that_no_waiting_mends_is_raised_at_once(self) -> None:
        own = json.dumps({"error": {"code": "some_code", "message": "some words"}})
        for status in (302, 400, 401, 403, 404, 421):
            with self.subTest(status):
                client = self.new_client(
                    self.answering((503, "loading"), (status, own), (200, "{}"))
                )
                with self.assertRaisesRegex(RewardRequestError, f"{status} some_code: some words"):
                    client.wait_until_ready(timeout=600)

    def test_the_last_answer_is_told(self) -> None:
        for status in (503,) if IN_GATE else (429, 503, 404):
            error = self.not_ready(self.answering((status, "some words")), 1)
            self.assertIn(f"{status} unknown: some words", str(error))

    def test_nobody_there_is_told_and_tried_once_where_no_time_is_given(self) -> None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            for timeout in (0, 0.3):
                url = f"http://127.0.0.1:{taken.getsockname()[1]}"
                self.assertIn("ConnectionRefusedError", str(self.not_ready(url, timeout)))

    def test_a_server_that_never_answers_is_waited_for_no_longer(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            error = self.not_ready(f"http://127.0.0.1:{silent.getsockname()[1]}", 0.2)
        self.assertEqual((error.attempts, error.cause), (1, "no whole answer in time"))

    def test_a_server_that_never_ends_its_answer_is_waited_for_no_longer(self) -> None:
        is_over = threading.Event()
        self.addCleanup(is_over.set)

        def drip(handler: BaseHTTPRequestHandler) -> None:
            handler.send_response(200)
            handler.send_header("content-length", "1000000")
            handler.end_headers()
            with contextlib.suppress(OSError):
                while not is_over.wait(0.01):
                    handler.wfile.write(b" ")

        error = self.not_ready(self.listening(drip), 0.5)
        self.assertEqual((error.attempts, error.cause), (1, "no whole answer in time"))

    def test_an_answer_before_the_silence_is_told(self) -> None:
        is_over = threading.Event()
        self.addCleanup(is_over.set)
        seen: list[str] = []

        def answer(handler: BaseHTTPRequestHandler) -> None:
            seen.append(handler.path)
            if len(seen) > 1:
                is_over.wait()
            else:
                answer_with(handler, 503, "loading")

        error = self.not_ready(self.listening(answer), 2)
        self.assertEqual((seen, error.attempts), (["/readyz"] * 2, 2))
        self.assertIn("no whole answer in time; before that, 503 unknown: loading", str(error))

    def test_later_requests_have_the_time_of_the_client(self) -> None:
        client = self.new_client(self.server.url, timeout=500)
        client.wait_until_ready(timeout=60)
        [kept] = client._idle
        self.assertEqual(kept.sock.gettimeout(), 500)


def wait_for_ends(client: RewardClient) -> None:
    """Returns when the server has closed all connections that the client keeps."""
    for connection in client._idle:
        select.select([connection.sock], [], [])


def post(url: str, body: bytes) -> bytes:
    from urllib.request import Request, urlopen

    with urlopen(Request(url, body, {"content-type": "application/json"})) as response:
        return bytes(response.read())


@only_in_full("serve/keys.test.ts kills a server under load; here Tries asks again with the key")
class Restarts(unittest.TestCase):
    def test_a_batch_goes_on_over_a_kill_and_nothing_recorded_runs_again(self) -> None:
        gate = Gate()
        self.addCleanup(gate.listening.close)
        with tempfile.TemporaryDirectory() as folder, socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
            free.close()
            flags = ["--reward-kwarg", f"gate={gate.url}", "--record", f"{folder}/rewards.jsonl"]
            first = Server(*flags, port=port)
            gate.open.clear()
            gate.holds = lambda name: int(name) % 10 == 9
            client = RewardClient(
                first.url, batch_size=20, in_flight=4, attempts=1000, backoff=0.05
            )
            self.addCleanup(client.close)
            samples = [{"response": f"ask:{i}", "id": str(i)} for i in range(200)]
            outcomes: list[Any] = []
            asking = threading.Thread(target=lambda: outcomes.extend(client.score_batch(samples)))
            asking.start()
            # Two of each of the four requests under way.
            for _ in range(8):
                gate.held.acquire()
            first.kill()
            recorded = recorded_keys(folder)
            gate.open.set()
            second = Server(*flags, port=port)
            self.addCleanup(second.kill)
            asking.join()
            self.assertEqual([outcome.id for outcome in outcomes], [str(i) for i in range(200)])
            self.assertTrue(all(outcome.valid for outcome in outcomes))
            self.assertEqual(sorted(recorded_keys(folder), key=int), [str(i) for i in range(200)])
            for key, runs in gate.runs.items():
                self.assertLessEqual(runs, 1 if key in recorded else 2)


def recorded_keys(folder: str) -> list[str]:
    lines = Path(f"{folder}/rewards.jsonl").read_text().split("\n")
    # The last one is cut off, or nothing.
    return [json.loads(line)["key"] for line in lines[:-1]]


class Tokens(unittest.TestCase):
    def test_a_token_is_sent_and_told_nowhere(self) -> None:
        server = Server(token=TOKEN)
        self.addCleanup(server.kill)
        host = server.url.removeprefix("http://")
        for client in (
            RewardClient(server.url, token=TOKEN),
            RewardClient(f"http://rayling:{TOKEN}@{host}"),
        ):
            self.addCleanup(client.close)
            self.assertEqual(client.score("1", 1).score, 1)
            self.assertNotIn(TOKEN, client.url)
            # Reward functions have no use for it.
            self.assertIsNone(client.score("env").extra["token"])
        wrong = RewardClient(server.url, token="another-token-of-length")
        self.addCleanup(wrong.close)
        with self.assertRaises(RewardRequestError) as raised:
            wrong.score("1", 1)
        self.assertEqual((raised.exception.status, raised.exception.code), (401, "invalid_token"))
        self.assertFalse(wrong.ready())
        # Were it waited for, the test would take ten minutes.
        with self.assertRaisesRegex(RewardRequestError, "401 invalid_token"):
            wrong.wait_until_ready(timeout=600)


class Trl(WithServer):
    """As GRPOTrainer._calculate_rewards calls reward functions (TRL f2cd57710)."""

    of_trainer: ClassVar[dict[str, Any]] = {
        "trainer_state": object(),
        "log_extra": lambda *_: None,
        "log_metric": lambda *_: None,
        "environments": [object(), object()],
    }

    def test_texts_with_the_columns_of_the_data_set(self) -> None:
        reward = reward_function(self.client, name="right")
        self.assertEqual(reward.__name__, "right")
        rewards = reward(
            prompts=["1+1?", "2+2?", "3+3?"],
            completions=["2", "5", "throw"],
            completion_ids=[[1], [2], [3]],
            answer=["2", "4", "6"],
            **self.of_trainer,
        )
        self.assertEqual(rewards, [1.0, 0.0, None])

    def test_conversations(self) -> None:
        reward = reward_function(self.server.url, ground_truth="solution")
        rewards = reward(
            prompts=[[{"role": "user", "content": "2+2?"}]] * 2,
            completions=[
                [{"role": "assistant", "content": "4"}],
                [{"role": "assistant", "content": [{"type": "text", "text": "5"}]}],
            ],
            completion_ids=[[1], [2]],
            solution=["4", "4"],
            answer=["not this", "nor this"],
            **self.of_trainer,
        )
        self.assertEqual(rewards, [1.0, 0.0])

    def test_columns_that_json_has_no_values_for_are_left_out(self) -> None:
        """Images of a data set, which TRL also puts into the messages of its prompts."""
        seen: list[Any] = []

        def answer(handler: BaseHTTPRequestHandler) -> None:
            text = handler.rfile.read(int(handler.headers["content-length"]))
            [sample] = json.loads(text)["samples"]
            seen.append(sample)
            answer_with(handler, 200, json.dumps({"outcomes": [{"score": 1, "valid": True}]}))

        listening = Listening(answer)
        self.addCleanup(listening.close)
        image = object()
        content = [{"type": "image", "image": image}, {"type": "text", "text": "2+2?"}]
        data: dict[str, Any] = {
            "prompts": [[{"role": "user", "content": content}]],
            "completions": ["4"],
            "answer": ["4"],
            "image": [image],
            "level": [float("nan")],
            "day": [date(2026, 1, 2)],
        }
        reward_function(listening.url)(**data)
        [sample] = seen
        self.assertEqual(sample["prompt"][0]["content"], [{"type": "image"}, content[1]])
        self.assertEqual(sample["ground_truth"], "4")
        self.assertEqual(sample["extra_info"], {"answer": "4", "level": None, "day": "2026-01-02"})
        reward_function(listening.url, columns=["day"])(**data)
        self.assertEqual(seen[1]["extra_info"], {"day": "2026-01-02"})
        self.assertEqual(seen[1]["ground_truth"], "4")
        with self.assertRaisesRegex(TypeError, r"extra_info\.image is a builtins\.object"):
            reward_function(listening.url, columns=["image"])(**data)
        # A function that compares would take null for a wrong answer.
        missing = {"completions": ["4", "5"], "answer": [4.0, float("nan")]}
        with self.assertRaisesRegex(ValueError, "sample 1 cannot be sent: ground_truth is nan"):
            reward_function(listening.url)(**missing)
        self.assertEqual(len(seen), 2)

    def test_a_column_that_is_not_there_is_named(self) -> None:
        reward = reward_function(self.client, ground_truth="truth")
        with self.assertRaisesRegex(KeyError, "truth"):
            reward(prompts=["?"], completions=["1"], answer=["1"])

    def test_too_many_failures_end_the_step_where_that_is_wished_for(self) -> None:
        reward = reward_function(self.client, raise_above=0.4)
        self.assertEqual(
            reward(completions=["1", "1", "throw"], answer=["1"] * 3), [1.0, 1.0, None]
        )
        with self.assertRaisesRegex(RewardUnavailableError, "2 of 3 samples"):
            reward(completions=["1", "throw", "throw"], answer=["1"] * 3)

    def test_a_coroutine_function_of_which_several_run(self) -> None:
        reward = async_reward_function(self.server.url)
        self.assertTrue(inspect.iscoroutinefunction(reward))

        async def both() -> list[list[float | None]]:
            calls = [
                reward(prompts=["?"], completions=["1"], completion_ids=[[1]], answer=[answer])
                for answer in ("1", "2")
            ]
            return await asyncio.gather(*calls)

        self.assertEqual(asyncio.run(both()), [[1.0], [0.0]])


class Asyncio(WithServer):
    def test_single_samples_and_batches(self) -> None:
        async def run() -> None:
            async with AsyncRewardClient(self.server.url, batch_size=9, in_flight=8) as client:
                await client.wait_until_ready(timeout=600)
                self.assertTrue(await client.ready())
                outcomes = await asyncio.gather(*(client.score(str(i), 7) for i in range(50)))
                self.assertEqual([o.score for o in outcomes], [float(i == 7) for i in range(50)])
                samples = [{"response": str(i), "ground_truth": 7} for i in range(50)]
                batch = await client.score_batch(samples)
                self.assertEqual([o.score for o in batch], [float(i == 7) for i in range(50)])
                with self.assertRaises(RewardRequestError):
                    await client.score_batch([{"response": 1}])

        asyncio.run(run())


if __name__ == "__main__":
    unittest.main()
