"""Answers that cannot be read, from a peer that is not the Node process: no call waits for ever."""

from __future__ import annotations

import asyncio
import json
import pickle
import socket
import struct
import subprocess
import sys
import unittest
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "python/src"), str(ROOT / "python")]

import rayling.plain  # noqa: E402
import rayling.verl  # noqa: E402
import rayling_client  # noqa: E402
from rayling.actors.connection import Connection  # noqa: E402
from rayling.actors.protocol import Answer  # noqa: E402
from rayling.errors import ActorDiedError, RaylingError  # noqa: E402


class Peer:
    """A process that does nothing, and the end of the socket that it would have."""

    def __init__(self) -> None:
        self.socket, self.theirs = socket.socketpair()
        self.process = subprocess.Popen(["sleep", "1000"], start_new_session=True)
        self.outputs: list[Any] = []

    def answers(self, text: str) -> None:
        head = text.encode()
        self.theirs.sendall(struct.pack("<II", len(head), 0) + head)

    def kill(self) -> None:
        self.process.kill()
        self.theirs.close()

    def wait(self) -> int:
        return self.process.wait()


class Unreadable(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self) -> None:
        self.peer = Peer()
        self.addCleanup(self.peer.kill)
        self.connection = Connection(self.peer, "/counter.ts", "Counter")  # type: ignore[arg-type]
        self.connection.attach()

    async def asked(self) -> asyncio.Task[Any]:
        call = asyncio.ensure_future(self.connection.call("add", [1]))
        loop = asyncio.get_running_loop()
        self.peer.theirs.setblocking(False)
        await loop.sock_recv(self.peer.theirs, 65_536)
        self.peer.theirs.setblocking(True)
        return call

    async def test_a_value_that_is_none_fails_its_call_alone(self) -> None:
        first = await self.asked()
        self.peer.answers(json.dumps([Answer.TAGGED, 1, {"$": ["d", 1e300]}]))
        with self.assertRaisesRegex(RaylingError, "the answer cannot be read"):
            await first
        second = await self.asked()
        self.peer.answers(json.dumps([Answer.TAGGED, 2, {"$": ["unknown"]}]))
        with self.assertRaisesRegex(RaylingError, "of the kind 'unknown'"):
            await second
        third = await self.asked()
        self.peer.answers(json.dumps([Answer.VALUE, 3, 7]))
        self.assertEqual(await third, 7)

    async def test_an_item_that_is_none_ends_its_stream(self) -> None:
        call = await self.asked()
        self.peer.answers(json.dumps([Answer.STREAM, 1]))
        stream = await call
        self.peer.answers(json.dumps([Answer.TAGGED_ITEM, 1, {"$": ["i", "no number"]}]))
        with self.assertRaisesRegex(RaylingError, "the answer cannot be read"):
            await stream.next()

    async def test_bytes_that_are_no_frame_end_the_process_and_all_calls(self) -> None:
        first = await self.asked()
        second = await self.asked()
        self.peer.answers("[1, 2")
        for call in (first, second):
            with self.assertRaisesRegex(ActorDiedError, "its answer cannot be read"):
                await call


HALF = "half a pair: \ud83d"
INNER = rayling.TypeScriptError(HALF, HALF, HALF, HALF)

#: An error of each public class, every text of which has half a surrogate pair.
ERRORS: tuple[BaseException, ...] = (
    RaylingError(HALF),
    rayling.RuntimeNotFoundError(HALF),
    rayling.RuntimeVersionError(HALF),
    rayling.HostLostError(HALF),
    ActorDiedError(HALF, 1, None, (HALF, HALF)),
    rayling.TypeScriptError(HALF, HALF, "", HALF, INNER),
    rayling.plain.NotPlainError(HALF, object()),
    rayling.verl.RewardInvalidError(HALF, HALF),
    rayling.verl.RewardLoopError(HALF),
    rayling_client.RewardError(HALF),
    rayling_client.RewardRequestError(422, HALF, HALF),
    rayling_client.RewardUnavailableError(HALF, 2, HALF),
)


class Travelling(unittest.TestCase):
    """A worker that cannot write or pickle an error dies of it, and a pool waits for it for ever."""

    def test_errors_of_all_public_classes_are_pickled_and_written_in_utf8(self) -> None:
        modules = (rayling, rayling.errors, rayling.plain, rayling.verl, rayling_client)
        named = {getattr(module, name) for module in modules for name in module.__all__}
        classes = {one for one in named if isinstance(one, type) and issubclass(one, Exception)}
        self.assertEqual({type(error) for error in ERRORS}, classes)
        for error in ERRORS:
            with self.subTest(type(error).__name__):
                back = pickle.loads(pickle.dumps(error))
                self.assertIs(type(back), type(error))
                for one in (error, back, back.__cause__):
                    if one is not None:
                        told = [str(one), repr(vars(one)), *map(str, vars(one).values())]
                        "".join(told).encode()
                self.assertIn("half a pair: \ufffd", str(error))
                self.assertEqual((str(back), vars(back)), (str(error), vars(error)))

    def test_what_a_value_is_called_in_an_error_is_written_in_utf8(self) -> None:
        with (
            rayling_client.RewardClient("http://127.0.0.1:9") as client,
            self.assertRaisesRegex(TypeError, "half a pair: \ufffd is a builtins.object"),
        ):
            client.score("1", extra_info={HALF: object()})
        # So Python has a byte of a path that is not UTF-8.
        with self.assertRaisesRegex(FileNotFoundError, "none: \ufffd"):
            rayling.open("none: \udcff")


if __name__ == "__main__":
    unittest.main()
