"""`rayling.verl` without verl: real loops in real Node processes."""

from __future__ import annotations

import asyncio
import contextlib
import enum
import json
import logging
import math
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import unittest
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path
from typing import Any, ClassVar
from unittest import mock

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / path) for path in ("python/src", "python", "python/tests")]

os.environ.setdefault("RAYLING_NODE", str(ROOT / "node_modules/.bin/node"))

from processes import IN_GATE, only_in_full, wait_for  # noqa: E402

import rayling.verl  # noqa: E402
from rayling import score_host  # noqa: E402
from rayling.errors import RaylingError  # noqa: E402
from rayling.plain import NotPlainError, Plain  # noqa: E402
from rayling.score_host import RewardLoopError, ScoreHost, _Lines  # noqa: E402
from rayling.verl import RewardInvalidError, compute_score  # noqa: E402
from rayling_client import _Plain  # noqa: E402

GRADE = str(ROOT / "python/tests/graders/grade.ts")


def options(name: str = "", **more: Any) -> dict[str, Any]:
    """Of a loop as small as can be."""
    reward = f"{GRADE}:{name}" if name else GRADE
    return {"reward": reward, "workers": 1, "executors": 1, **more}


def is_alive(pid: int) -> bool:
    """Whether a process has not ended, as a zombie has."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


def listening(folder: str) -> dict[str, int]:
    """Score hosts that listen in a folder for temporary files: their sockets and process ids."""
    found = {}
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            words = (entry / "cmdline").read_text().rstrip("\0").split("\0")
            if "listen" in words and words[-1].startswith(folder) and words[0] != "/bin/sh":
                found[words[-1]] = int(entry.name)
    return found


def left_in(folder: str) -> list[str]:
    """Files that the hosts have left, but for compiled code, which is kept."""
    user = os.getuid()
    return [
        str(path)
        for path in Path(folder).rglob("*")
        if f"rayling-code-{user}" not in path.parts and path.name != f"rayling-{user}"
    ]


needs_proc = unittest.skipUnless(Path("/proc/self").exists(), "processes are found in /proc")


class InFolder:
    """Loops, shared as by default, in a folder of their own."""

    def __init__(self) -> None:
        folder = tempfile.TemporaryDirectory(dir="/tmp")
        self.folder = folder.name
        self.cleanups = contextlib.ExitStack()
        self.cleanups.callback(folder.cleanup)
        self.cleanups.enter_context(mock.patch.object(tempfile, "tempdir", folder.name))
        hosts = rayling.verl._Hosts()
        self.cleanups.enter_context(mock.patch.object(rayling.verl, "_hosts", hosts))
        self.cleanups.callback(self.close)

    def close(self) -> None:
        for host in rayling.verl._hosts._known.values():
            host.close()
        wait_for(lambda: not listening(self.folder))


@needs_proc
class FunctionTest(unittest.IsolatedAsyncioTestCase):
    """What comes of samples and options: tests share their loops, for starting one takes longest."""

    folder: ClassVar[str]

    @classmethod
    def setUpClass(cls) -> None:
        place = InFolder()
        cls.addClassCleanup(place.cleanups.close)
        cls.folder = place.folder
        # Each test has an event loop of its own, and a host ends with its last connection.
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_forever)
        thread.start()
        cls.addClassCleanup(thread.join)
        cls.addClassCleanup(loop.call_soon_threadsafe, loop.stop)
        for name in ("", "half", "echo"):
            score = compute_score("s", "w1", 1, {}, options=options(name))
            asyncio.run_coroutine_threadsafe(score, loop)

    async def test_returns_what_the_function_returned(self) -> None:
        self.assertEqual(await compute_score("s", "w1", 1, {}, options=options("half")), 0.5)
        record = await compute_score("s", "w1 w2", 1, {}, options=options())
        self.assertEqual(record, {"score": (1 * 0.1 + 2 * 0.1) / 1.3, "words": 2})

    async def test_samples_of_one_turn_go_in_one_message(self) -> None:
        with mock.patch.object(score_host, "_head", wraps=score_host._head) as head:
            samples = [compute_score("s", "w1", 1, {}, options=options("half")) for _ in range(50)]
            await asyncio.gather(*samples)
        messages = [call.args[0] for call in head.call_args_list]
        sizes = [len(rows) for rows in messages if isinstance(rows, list)]
        self.assertEqual(sizes, [50])

    async def test_a_failed_sample_raises(self) -> None:
        mine = options(timeoutMs=300)
        for does, code in (
            ("throw", "SCORE_THREW: this one throws"),
            ("garbage", "INVALID_SCORE"),
            ("hang", "SCORE_TIMEOUT"),
            ("exit", "EXECUTOR_DIED"),
        ):
            with self.assertRaisesRegex(RewardInvalidError, code):
                await compute_score("s", "w1", 1, {"does": does}, options=mine)
        with self.assertRaisesRegex(
            RewardInvalidError, r"INVALID_SAMPLE: extra_info\.x is a builtins"
        ):
            await compute_score("s", "w1", 1, {"x": object()}, options=mine)

    async def test_a_failed_sample_has_a_value_and_the_columns_of_others(self) -> None:
        async def score(does: str, invalid: Any) -> Any:
            extra = {"does": does}
            return await compute_score("s", "w1", 0, extra, options=options(), invalid=invalid)

        rows = await asyncio.gather(*[score(does, -1) for does in ("throw", "", "garbage")])
        failed = {"score": -1.0, "words": None}
        self.assertEqual(rows[0], {**failed, "reward_error": "SCORE_THREW"})
        self.assertEqual(rows[1], {"score": 0.1 / 0.3, "words": 1, "reward_error": None})
        self.assertEqual(rows[2], {**failed, "reward_error": "INVALID_SCORE"})
        none = await score("throw", "none")
        self.assertEqual(none, {"score": None, "words": None, "reward_error": "SCORE_THREW"})

    async def test_samples_that_cannot_be_sent_are_invalid_and_no_others(self) -> None:
        inside: dict[str, Any] = {}
        inside["x"] = inside

        class Broken(dict[str, Any]):
            def items(self) -> Any:
                raise LookupError("no items")

        wrong: list[tuple[dict[str, Any], str]] = [
            ({"data_source": None}, "data_source is a NoneType, and must be text"),
            ({"solution_str": 5}, "solution_str is a int, and must be text"),
            ({"extra_info": [1]}, "extra_info is a list, and must be a mapping"),
            ({"extra_info": {"x": object()}}, r"extra_info\.x is a builtins\.object"),
            ({"extra_info": inside}, "extra_info is nested in itself"),
            ({"extra_info": {"x": Broken(a=1)}}, "cannot be read: LookupError: no items"),
            ({"extra_info": {"n": 10**5000}}, r"extra_info\.n is an integer of more digits"),
            ({"ground_truth": [-(10**5000)]}, "ground_truth is an integer of more digits"),
            ({"extra_info": {10**5000: 1}}, "cannot be read: ValueError: Exceeds the limit"),
        ]
        good: dict[str, Any] = {
            "data_source": "s",
            "solution_str": "w1",
            "ground_truth": 1,
            "extra_info": {},
        }
        more: dict[str, Any] = {"options": options(), "invalid": 0}
        samples = [*({**good, **one} for one, _ in wrong), good]
        rows: list[Any] = await asyncio.gather(*(compute_score(**one, **more) for one in samples))
        scored = {"score": rows[-1]["score"], "words": 1, "reward_error": None}
        invalid = {"score": 0.0, "words": None, "reward_error": "INVALID_SAMPLE"}
        self.assertEqual([*rows], [*([invalid] * len(wrong)), scored])
        for one, reason in wrong:
            with self.assertRaisesRegex(RewardInvalidError, reason):
                await compute_score(**{**good, **one}, options=options())

    async def test_a_turn_that_cannot_be_written_lets_no_sample_wait(self) -> None:
        written = score_host._head

        def fails_for(text: str) -> Any:
            def head(message: Any, is_tagged: bool) -> Any:
                if any(row[2:3] == [text] for row in message):
                    raise MemoryError("some words")
                return written(message, is_tagged)

            return mock.patch.object(score_host, "_head", head)

        async def scores() -> list[Any]:
            texts = ("w1", "w1 w2", "w2")
            samples = [compute_score("s", one, 1, {}, options=options("half")) for one in texts]
            return [*await asyncio.gather(*samples, return_exceptions=True)]

        self.assertEqual(await scores(), [0.5] * 3)
        with fails_for("w1 w2"):
            first, failed, last = await scores()
        self.assertEqual((first, last), (0.5, 0.5))
        self.assertIsInstance(failed, RewardInvalidError)
        self.assertRegex(str(failed), "^INVALID_SAMPLE: .* cannot be sent: MemoryError: some words")
        with mock.patch.object(score_host, "_frames", side_effect=MemoryError("some words")):
            for error in await scores():
                self.assertIsInstance(error, RaylingError)
                self.assertIn("cannot be sent: MemoryError: some words", str(error))

    async def test_a_value_of_200_levels_comes_whether_its_numbers_are_tagged_or_not(self) -> None:
        for innermost in (1, 2**60):
            value: Any = innermost
            for _ in range(199):
                value = [value]
            row = await compute_score("s", "w1", 1, {"x": value}, options=options("half"))
            self.assertEqual(row, 0.5)

    async def test_a_turn_of_many_bytes_travels_in_several_frames(self) -> None:
        texts = [" ".join(["w1"] * n) for n in (*range(1, 100), 2000)]
        with (
            mock.patch.object(score_host, "_FULL_FRAME", 2000),
            mock.patch.object(score_host, "MAX_HEAD_BYTES", 3000),
        ):
            rows: list[Any] = await asyncio.gather(
                *(compute_score("s", one, 1, {}, options=options(), invalid=-1) for one in texts)
            )
        words = [(row["words"], row["reward_error"]) for row in rows]
        self.assertEqual(words, [*((n, None) for n in range(1, 100)), (None, "INVALID_SAMPLE")])

    async def test_a_number_has_the_column_acc_where_others_fail(self) -> None:
        row = await compute_score("s", "w1", 1, {}, options=options("half"), invalid=0)
        self.assertEqual(row, {"acc": 0.5, "score": 0.5, "reward_error": None})
        failed = await compute_score(
            "s", "w1", 1, {"x": object()}, options=options("half"), invalid=0
        )
        self.assertEqual(failed, {"acc": 0.0, "score": 0.0, "reward_error": "INVALID_SAMPLE"})

        class Scalar(float):
            """A number of numpy: whether it is equal to something is none of Python's values."""

            def item(self) -> float:
                return float(self)

            def __eq__(self, _: object) -> Any:
                return object()

            __hash__ = float.__hash__

        failed = await compute_score(
            "s", "w1", 1, {"x": object()}, options=options("half"), invalid=Scalar(0.25)
        )
        self.assertEqual(failed, {"acc": 0.25, "score": 0.25, "reward_error": "INVALID_SAMPLE"})

    async def test_a_reward_error_of_the_function_stays_where_it_has_scored(self) -> None:
        scored = score_host.Outcome(1.0, {"reward_error": "mine"})
        failed = score_host.Outcome(None, {"reward_error": "mine"}, "SCORE_THREW", "no")
        host = mock.Mock(score=mock.AsyncMock(side_effect=[scored, failed]))
        with mock.patch.object(rayling.verl, "_hosts", mock.Mock(get=lambda *_: host)):
            rows = [await compute_score("s", "w1", 1, invalid=0) for _ in range(2)]
        self.assertEqual(rows[0], {"score": 1.0, "reward_error": "mine"})
        self.assertEqual(rows[1], {"score": 0.0, "reward_error": "SCORE_THREW"})

    async def test_columns_are_as_they_are_named(self) -> None:
        row = await compute_score("s", "w1", 0, {}, options=options(), columns=["words", "reason"])
        self.assertEqual(row, {"score": 0.1 / 0.3, "words": 1, "reason": None})

    async def test_values_come_as_they_are(self) -> None:
        extra: Any = {
            "nan": math.nan,
            "big": 2**60,
            "none": None,
            "list": [1, "ü", True],
            5: (1.5, -0.5),
        }
        row: Any = await compute_score("s", "w1", 2**53, extra, options=options("echo"))
        self.assertEqual(row["groundTruth"], f'"{2**53}"')
        echoed = row["extraInfo"]
        self.assertEqual(echoed["list"], [1, "ü", True])
        self.assertEqual(echoed["5"], [1.5, -0.5])
        self.assertIsNone(echoed["none"])
        # Within extra info, what JSON has no number for comes back as a text.
        self.assertEqual([echoed["nan"], echoed["big"]], ["NaN", str(2**60)])

    async def test_an_integer_that_python_does_not_read_comes_as_a_text(self) -> None:
        row: Any = await compute_score("s", "w1", 1, {}, options=options("long"))
        self.assertEqual(row["digits"], "1" + "0" * 4300)

    async def test_what_looks_like_a_tagged_value_comes_as_it_is(self) -> None:
        lookalikes: dict[str, Any] = {"$": ["i", "5"], "deep": {"$": 1}}
        for extra in (lookalikes, {**lookalikes, "big": 2**60}):
            row: Any = await compute_score("s", "w1", 1, extra, options=options("echo"))
            echoed = row["extraInfo"]
            self.assertEqual([echoed["$"], echoed["deep"]], [["i", "5"], {"$": 1}])

    async def test_what_graders_print_is_logged(self) -> None:
        said: asyncio.Queue[str] = asyncio.Queue()
        handler = logging.Handler()
        loop = asyncio.get_running_loop()
        # The thread of the connection logs.
        handler.emit = lambda record: loop.call_soon_threadsafe(  # type: ignore[method-assign]
            said.put_nowait, record.getMessage()
        )
        logger = logging.getLogger("rayling.output")
        self.addCleanup(logger.removeHandler, handler)
        self.addCleanup(logger.setLevel, logger.level)
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
        await compute_score("s", "w1", 1, {"does": "say"}, options=options())
        self.assertRegex(await said.get(), r"^\(.*\) it was said: w1$")

    async def test_options_come_from_a_file_and_keywords_win(self) -> None:
        (Path(self.folder) / "grade.ts").symlink_to(GRADE)
        config = Path(self.folder) / "rewards.yaml"
        config.write_text("reward: ./grade.ts:half\nworkers: 1\ntimeoutMs: 100\n")
        self.assertEqual(await compute_score("s", "w1", 1, {}, config=str(config)), 0.5)
        hanging = {"reward": "./grade.ts"}
        with self.assertRaisesRegex(RewardInvalidError, "within 100 ms"):
            await compute_score("s", "w1", 1, {"does": "hang"}, config=str(config), options=hanging)

    async def test_a_loop_that_cannot_be_opened_says_why(self) -> None:
        cases = [
            (options(workrs=1), "workrs"),
            ({"reward": GRADE.replace("grade.ts", "ranks.ts")}, "all answers to a prompt"),
            ({"reward": "/none.ts"}, r"/none\.ts"),
            (options("none"), "none"),
        ]
        # A process each; the last two are told on the same way as the first.
        for mine, reason in cases[:2] if IN_GATE else cases:
            with self.assertRaisesRegex(RewardLoopError, reason):
                await compute_score("s", "w1", 1, {}, options=mine)
        wrong: list[dict[str, Any]] = [
            {"share": "nod"},
            {"invalid": "rise"},
            {"invalid": True},
            {"invalid": math.nan},
            {"columns": "words"},
            {"config": 5},
            {"options": GRADE},
        ]
        for arguments in wrong:
            more: dict[str, Any] = {"options": options(), **arguments}
            with self.assertRaisesRegex(
                (TypeError, ValueError), f"^{next(iter(arguments))} must be"
            ):
                await compute_score("s", "w1", 1, {}, **more)

    async def test_a_file_that_cannot_be_read_is_named(self) -> None:
        config = Path(self.folder) / "rewards.yaml"
        for text in ("reward: [", None):
            config.unlink(missing_ok=True) if text is None else config.write_text(text)
            with self.assertRaisesRegex(RewardLoopError, f"{config} cannot be read as YAML"):
                await compute_score("s", "w1", 1, {}, config=str(config))
            config = config.with_name("missing.yaml")

    def test_transports_of_uvloop_do_which_are_none_of_asyncio(self) -> None:
        class Wrapped:
            def __init__(self, transport: Any) -> None:
                self.writelines = transport.writelines
                self.abort = transport.abort

        made: Any = score_host._Connection.connection_made
        mine = options("half")
        with mock.patch.object(
            score_host._Connection, "connection_made", lambda self, one: made(self, Wrapped(one))
        ):
            self.assertEqual(asyncio.run(compute_score("s", "w1", 1, {}, options=mine)), 0.5)


@needs_proc
class HostTest(unittest.IsolatedAsyncioTestCase):
    """Processes of loops: each test has one of its own."""

    def setUp(self) -> None:
        place = InFolder()
        self.addCleanup(place.cleanups.close)
        self.folder = place.folder

    async def test_a_host_that_is_killed_is_replaced(self) -> None:
        mine = options(timeoutMs=60_000)
        slow = asyncio.ensure_future(compute_score("s", "w1", 0, {"ms": 500}, options=mine))
        await compute_score("s", "w1", 0, {}, options=mine)
        [first] = listening(self.folder).values()
        os.kill(first, signal.SIGKILL)
        self.assertEqual(await slow, {"score": 0.1 / 0.3, "words": 1})
        [second] = listening(self.folder).values()
        self.assertNotEqual(first, second)

    def test_event_loops_of_several_threads_have_one_process_of_their_own(self) -> None:
        host = ScoreHost(options(), share=False)
        all_begin = threading.Barrier(3)

        async def score(first: int) -> list[int]:
            numbers = range(first, first + 20)
            await asyncio.to_thread(all_begin.wait)
            scored = [host.score("s", f"w{number}", 0, {"ms": 1}) for number in numbers]
            # The score is a third of the number.
            return [round((one.score or 0) * 3) for one in await asyncio.gather(*scored)]

        def rounds(first: int) -> list[int]:
            return [one for _ in range(3) for one in asyncio.run(score(first))]

        with ThreadPoolExecutor(3) as threads:
            found = list(threads.map(rounds, (100, 200, 300)))
        self.assertEqual(found, [[*range(first, first + 20)] * 3 for first in (100, 200, 300)])
        self.assertEqual(len(listening(self.folder)), 1)
        host.close()
        wait_for(lambda: not listening(self.folder))

    def test_event_loops_one_after_the_other_go_on_with_it(self) -> None:
        mine = options("half")
        for _ in range(2):
            self.assertEqual(asyncio.run(compute_score("s", "w1", 1, {}, options=mine)), 0.5)
        for _ in range(3):
            # One that is dropped, and never closed.
            loop = asyncio.new_event_loop()
            scored = loop.run_until_complete(compute_score("s", "w1", 1, {}, options=mine))
            self.assertEqual(scored, 0.5)
        [host] = rayling.verl._hosts._known.values()
        self.assertEqual(list(host._connections), [loop])
        self.assertEqual(len(listening(self.folder)), 1)
        loop.close()


@needs_proc
class SharingTest(unittest.TestCase):
    """Processes that are killed."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory(dir="/tmp")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def worker(self, does: str = "") -> subprocess.Popen[str]:
        """Scores one sample, says so, and waits."""
        text = f"""
            import asyncio
            from rayling.verl import compute_score
            async def main():
                again = compute_score("s", "w1", 1, {{}}, options={options("half")!r})
                print(await again, flush=True)
                {does}
                await asyncio.sleep(3600)
            asyncio.run(main())
        """
        return self.program(text)

    def program(self, text: str) -> subprocess.Popen[str]:
        program = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(text)],
            env={**os.environ, "PYTHONPATH": str(ROOT / "python/src"), "TMPDIR": self.folder},
            stdout=subprocess.PIPE,
            text=True,
        )
        self.addCleanup(program.communicate)
        self.addCleanup(program.kill)
        return program

    def test_processes_share_one_host_and_leave_nothing_when_all_are_killed(self) -> None:
        workers = [self.worker() for _ in range(3)]
        for worker in workers:
            assert worker.stdout is not None
            self.assertEqual(worker.stdout.readline(), "0.5\n")
        [host] = listening(self.folder).values()
        for worker in workers[:2]:
            worker.kill()
            worker.wait()
        another = self.worker()
        assert another.stdout is not None
        self.assertEqual(another.stdout.readline(), "0.5\n")
        self.assertEqual(list(listening(self.folder).values()), [host])
        for worker in (*workers, another):
            worker.kill()
        wait_for(lambda: not is_alive(host))
        self.assertEqual(left_in(self.folder), [])

    def test_forks_have_connections_of_their_own(self) -> None:
        text = f"""
            import asyncio, os, signal
            from rayling.verl import compute_score, start
            mine = {options()!r}
            async def score(first):
                numbers = range(first, first + 50)
                each = [compute_score("s", f"w{{n}}", 0, {{"ms": 1}}, options=mine) for n in numbers]
                # The score is a third of the number.
                return [round(3 * one["score"]) for one in await asyncio.gather(*each)] == [*numbers]
            def fork(first):
                child = os.fork()
                if child == 0:
                    os._exit(not asyncio.run(score(first)))
                return child
            def children(first):
                forks = [fork(first + 100), fork(first + 200)]
                return [os.waitstatus_to_exitcode(os.waitpid(one, 0)[1]) for one in forks]
            start(options=mine)
            print(children(0), asyncio.run(score(0)), flush=True)
            print(children(300), asyncio.run(score(300)), flush=True)
            resting = os.fork()
            if resting == 0:
                signal.pause()
            print(resting, flush=True)
            signal.pause()
        """
        program = self.program(text)
        assert program.stdout is not None
        # First forks of a connection that was opened ahead, then of one that was used.
        for _ in range(2):
            self.assertEqual(program.stdout.readline(), "[0, 0] True\n")
        resting = int(program.stdout.readline())
        self.addCleanup(os.kill, resting, signal.SIGKILL)
        [host] = listening(self.folder).values()
        program.kill()
        wait_for(lambda: not is_alive(host))
        self.assertTrue(is_alive(resting))
        self.assertEqual(left_in(self.folder), [])

    @only_in_full("the hosts of processes that are killed later are gone, too, above")
    def test_a_process_that_is_killed_while_its_host_starts_leaves_nothing(self) -> None:
        worker = self.worker()
        wait_for(lambda: len(listening(self.folder)) == 1)
        worker.kill()
        wait_for(lambda: not listening(self.folder))
        self.assertEqual(left_in(self.folder), [])


class StartTest(unittest.TestCase):
    """What verl's configuration says is started when verl imports the function."""

    def imported(self, config: Any) -> Any:
        with mock.patch.object(rayling.verl, "start") as start:
            rayling.verl.start_for_verl()
        return start.call_args and start.call_args.kwargs

    def test_at_the_place_of_verl_and_at_that_of_its_version_0_7(self) -> None:
        kwargs = {"options": {"reward": "/grade.ts"}}
        function = {"path": "/reward_function.py", "reward_kwargs": kwargs}
        self.assertEqual(self.imported({"reward": {"custom_reward_function": function}}), kwargs)
        self.assertEqual(self.imported({"custom_reward_function": function}), kwargs)

    def test_nothing_is_started_for_anything_else(self) -> None:
        for config in (None, {}, {"reward": None}, {"custom_reward_function": {"path": None}}):
            self.assertIsNone(self.imported(config))

    def test_the_router_of_a_reward_model_is_known(self) -> None:
        reward_router_address = "127.0.0.1:1"
        function = {"path": "/reward_function.py"}
        found = self.imported({"custom_reward_function": function})
        self.assertEqual(found, {"reward_router_address": reward_router_address})

    def test_python_m_prints_the_path_of_a_file_that_verl_can_load(self) -> None:
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "python/src")}
        said = subprocess.check_output(
            [sys.executable, "-m", "rayling.verl"], env=environment, text=True
        )
        self.assertTrue(Path(said.strip()).is_file())


#: What `rayling.verl` and the client make of a value.
PLAIN: tuple[Callable[[Any], Any], ...] = (
    lambda one: Plain().of(one, "x"),
    lambda one: _Plain(is_strict=True).of(one, "x"),
)


class LinesTest(unittest.TestCase):
    def test_a_log_that_cannot_be_written_ends_no_connection(self) -> None:
        log = mock.Mock(side_effect=OSError("no room"))
        with mock.patch.object(logging, "raiseExceptions", False):
            _Lines(log).add("one\ntwo\nthr")
        self.assertEqual(log.call_args_list, [mock.call("%s", "one"), mock.call("%s", "two")])


class PlainTest(unittest.TestCase):
    def test_values_of_numpy(self) -> None:
        try:
            import numpy as np
        except ImportError:
            self.skipTest("numpy is not installed")
        plain = Plain().of({"a": np.int64(5), "b": np.float32(0.5), "c": np.array([1, 2])}, "x")
        self.assertEqual(plain, {"a": 5, "b": 0.5, "c": [1, 2]})
        self.assertEqual([type(one) for one in plain.values()], [int, float, list])
        self.assertEqual(
            Plain().of(np.array([{"a": np.str_("b")}], dtype=object), "x"), [{"a": "b"}]
        )

    def test_a_longdouble_is_a_number(self) -> None:
        try:
            import numpy as np
        except ImportError:
            self.skipTest("numpy is not installed")
        for make in PLAIN:
            plain = make([np.longdouble("0.5"), np.ones(1, np.longdouble)])
            self.assertEqual(plain, [0.5, [1.0]])
            with self.assertRaisesRegex(TypeError, "complex"):
                make(np.clongdouble(1))

    def test_dates_of_numpy_are_the_same_text_in_each_unit(self) -> None:
        try:
            import numpy as np
        except ImportError:
            self.skipTest("numpy is not installed")
        for make in PLAIN:
            for unit in ("s", "ms", "us", "ns"):
                when = np.datetime64("2020-01-02T03:04:05", unit)
                self.assertEqual(make(when), "2020-01-02T03:04:05")
                self.assertEqual(make(np.array([[when]])), [["2020-01-02T03:04:05"]])
                self.assertIsNone(make(np.datetime64("NaT", unit)))
                with self.assertRaisesRegex(TypeError, "x is a numpy.timedelta64"):
                    make(np.timedelta64(5, unit))
            precise = "2020-01-02T03:04:05.123456789"
            self.assertEqual(make(np.datetime64(precise)), precise)
            self.assertEqual(make(np.datetime64("2020-01-02")), "2020-01-02")
            self.assertEqual(make(np.datetime64("20000-01-01")), "20000-01-01")
            days = np.array(["2020-01-02", "2020-01-03"], dtype="datetime64[ns]")
            self.assertEqual(
                make(np.ma.array(days, mask=[False, True])), ["2020-01-02T00:00:00", None]
            )
            self.assertEqual(make(np.ma.array([1.5, 2], mask=[False, True])), [1.5, None])
            keys = {np.int64(5): 1, np.bool_(True): 2, np.datetime64("2020-01-02", "ns"): 3}
            self.assertEqual(make(keys), {"5": 1, "true": 2, "2020-01-02T00:00:00": 3})

    def test_keys_are_spelled_as_json_spells_them(self) -> None:
        class Level(enum.Enum):
            ONE = 1

        keys: dict[Any, int] = dict.fromkeys((True, None, 7, 1.5, "a", math.inf), 0)
        spelled = json.loads(json.dumps(keys))
        for make in PLAIN:
            self.assertEqual(list(make(keys)), list(spelled))
            others = {Level.ONE: 0, date(2026, 1, 2): 0, b"text": 0, (1, 2): 0}
            self.assertEqual(list(make(others)), ["1", "2026-01-02", "text", "(1, 2)"])
            # Of pandas.
            self.assertIsNone(make(mock.Mock(spec=["isoformat"], isoformat=lambda: "NaT")))

    def test_an_enumeration_is_its_value(self) -> None:
        class Kind(str, enum.Enum):
            EASY = "easy"

        class Level(enum.Enum):
            ONE = 1

        self.assertEqual(
            Plain().of([Kind.EASY, Level.ONE, {Kind.EASY: Level.ONE}], "x"),
            ["easy", 1, {"easy": 1}],
        )

    def test_a_value_may_have_200_levels(self) -> None:
        value: Any = 1
        for _ in range(199):
            value = [value]
        self.assertEqual(Plain().of({"a": value}, "x"), {"a": value})
        with self.assertRaisesRegex(NotPlainError, "^x is nested in itself, or deeper than 200"):
            Plain().of({"a": [value]}, "x")

    def test_the_place_of_what_cannot_be_sent(self) -> None:
        with self.assertRaisesRegex(NotPlainError, r"extra_info\.a\.b is a builtins\.object"):
            Plain().of({"a": [{"b": object()}]}, "extra_info")


if __name__ == "__main__":
    unittest.main()
