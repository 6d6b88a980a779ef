"""TypeScript classes in child processes: `rayling.open` and `rayling.open_async`."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import math
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "python/src"), str(ROOT / "python/tests")]

from processes import kill, wait_for, wait_gone  # noqa: E402

import rayling  # noqa: E402
from rayling.actors.protocol import control_frame  # noqa: E402
from rayling.wire.frames import FrameReader, encode_frame  # noqa: E402

COUNTER = ROOT / "python/tests/actors/counter.ts"


@pytest.fixture(scope="module")
def counter() -> Iterator[rayling.Actor]:
    with rayling.open(COUNTER, "Counter") as actor:
        yield actor


def test_methods_are_called_in_order_and_promises_are_awaited() -> None:
    with rayling.open(COUNTER, "Counter", 1, {"by": 1}) as actor:
        assert actor.add(2) == 4
        assert actor.addLater(3) == 7
        futures: list[Future[Any]] = [actor.add.submit(1) for _ in range(2000)]
        assert [future.result() for future in futures] == list(range(8, 2008))


def test_keywords_arrive_as_one_object(counter: rayling.Actor) -> None:
    assert counter.options(1, by=2, to="x") == [1, {"by": 2, "to": "x"}]
    assert counter.method("options")(1) == [1, None]
    assert counter.run() == "ran"


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (None, "Null"),
        (True, "Boolean"),
        (-7, "Number"),
        (2**53, "BigInt"),
        (-(2**80), "BigInt"),
        (0.1, "Number"),
        (math.inf, "Number"),
        (-0.0, "Number"),
        ("é€ \ud800 1234567890123456789", "String"),
        (b"\x00\xff", "Uint8Array"),
        (b"", "Uint8Array"),
        ([1, [2.5, None]], "Array"),
        ({"a": {"$": 1}, "$": ["b", 0]}, "Object"),
        ({"deep": [{"bytes": b"x" * 100_000}]}, "Object"),
        (datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=timezone.utc), "Date"),
        (datetime(9999, 12, 31, 23, 59, 59, 999000, tzinfo=timezone.utc), "Date"),
        (datetime(1, 1, 1, 0, 0, 0, 1000, tzinfo=timezone.utc), "Date"),
    ],
)
def test_values_come_back_equal(counter: rayling.Actor, value: object, name: str) -> None:
    assert counter.describe(value) == name
    back = counter.echo(value)
    assert back == value
    assert type(back) is type(value)
    assert str(back) == str(value)


def test_nan_and_containers(counter: rayling.Actor) -> None:
    assert math.isnan(counter.echo([math.nan])[0])
    assert counter.echo((1, {"x": (2,)})) == [1, {"x": [2]}]
    assert counter.produced() == {
        "whole": 1,
        "map": {"a": 1},
        "set": [1],
        "when": datetime.fromtimestamp(0, tz=timezone.utc),
    }


def test_a_date_is_rounded_down_to_its_millisecond(counter: rayling.Actor) -> None:
    for year in (1, 1969, 2026, 9999):
        last = datetime(year, 12, 31, 23, 59, 59, 999999, tzinfo=timezone.utc)
        assert counter.echo(last) == last.replace(microsecond=999000)


def test_what_cannot_travel_is_named_with_its_path(counter: rayling.Actor) -> None:
    with pytest.raises(TypeError, match=r"\[0\]\['rows'\]\[1\] of the value is a object"):
        counter.echo({"rows": [1, object()]})
    with pytest.raises(TypeError, match="has the key b'x'"):
        counter.echo({b"x": 1})
    with pytest.raises(ValueError, match=r"\[0\]\['n'\]\[1\] of the value is an integer"):
        counter.echo({"n": [1, 10**5000]})
    loop: list[object] = []
    loop.append(loop)
    with pytest.raises(TypeError, match="inside itself"):
        counter.echo(loop)
    with pytest.raises(rayling.TypeScriptError, match=r"inner\.0 of the value is Symbol\(x\)"):
        counter.functions()


def test_arrays_keep_kind_and_shape(counter: rayling.Actor) -> None:
    numpy = pytest.importorskip("numpy")
    for kind in ("int8", "uint8", "int16", "uint32", "int64", "uint64", "float32", "float64"):
        for array in (numpy.arange(6, dtype=kind), numpy.arange(6, dtype=kind).reshape(2, 3)):
            back = counter.echo(array)
            assert back.dtype == array.dtype
            assert numpy.array_equal(back, array)
    assert counter.describe(numpy.zeros(2, "int64")) == "BigInt64Array"
    assert counter.describe(numpy.float32(1)) == "Number"
    assert counter.sum(numpy.arange(6, dtype="float64").reshape(3, 2).T) == [15, [2, 3]]
    assert counter.echo(numpy.zeros((0, 3))).shape == (0, 3)
    with pytest.raises(TypeError, match="an array of complex128"):
        counter.echo([numpy.zeros(1, "complex128")])
    with pytest.raises(TypeError, match="is a masked array"):
        counter.echo([numpy.ma.array([1, 2], mask=[True, False])])


def test_scalars_of_numpy_are_values_and_keys(counter: rayling.Actor) -> None:
    numpy = pytest.importorskip("numpy")
    when = datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone.utc)
    for unit in ("s", "ms", "us", "ns"):
        assert counter.echo(numpy.datetime64("2026-01-02T03:04:05", unit)) == when
        assert counter.echo([numpy.datetime64("NaT", unit)]) == [None]
        with pytest.raises(TypeError, match="is a timedelta64"):
            counter.echo(numpy.timedelta64(5, unit))
    assert counter.echo({numpy.longdouble(2): [numpy.longdouble("1.5")]}) == {"2.0": [1.5]}
    with pytest.raises(TypeError, match=r"\[0\] of the value is a complex"):
        counter.echo(numpy.clongdouble(1))
    with pytest.raises(TypeError, match="TypeScript has no Date for"):
        counter.echo(numpy.datetime64(10**9, "D"))
    keys = {numpy.int64(5): 1, numpy.bool_(True): 2, None: 3, 1.5: math.inf}
    assert counter.echo(keys) == {"5": 1, "true": 2, "null": 3, "1.5": math.inf}


def test_arrays_stand_in_the_memory_that_was_read() -> None:
    numpy = pytest.importorskip("numpy")
    with rayling.open(COUNTER, "Counter") as actor:
        array = numpy.arange(4_000_000, dtype="float64")
        back = actor.echo(array)
        assert numpy.array_equal(back, array)
        assert back.flags.writeable
        assert not back.flags.owndata


def test_frames_are_read_however_they_are_cut() -> None:
    buffers = [memoryview(b"abc"), memoryview(b""), memoryview(bytes(range(256)) * 3)]
    frames = encode_frame("[1,2]", []) + encode_frame('["x"]', buffers)
    whole = frames + b"".join(buffers) + encode_frame("[3]", [])
    for size in (1, 2, 7, 100, len(whole)):
        reader = FrameReader()
        found: list[tuple[object, list[bytes]]] = []
        at = 0
        while at < len(whole):
            target = reader.target()
            count = min(size, target.nbytes, len(whole) - at)
            target[:count] = whole[at : at + count]
            at += count
            found += [
                (head, [one.getvalue() for one in parts]) for head, parts in reader.received(count)
            ]
        assert found == [([1, 2], []), (["x"], [bytes(one) for one in buffers]), ([3], [])]


def test_an_error_has_the_stack_of_typescript(counter: rayling.Actor) -> None:
    with pytest.raises(rayling.TypeScriptError) as caught:
        counter.fail()
    error = pickle.loads(pickle.dumps(caught.value))
    assert (error.name, error.message, error.code) == ("RangeError", "too much", "TOO_MUCH")
    first, second, *_ = str(error).splitlines()
    assert first == "RangeError: too much"
    assert second.strip().startswith("at Counter.fail (")
    assert "counter.ts:" in second
    assert "actor-host" not in str(error)
    assert isinstance(error.__cause__, rayling.TypeScriptError)
    assert error.__cause__.message == "inside"
    with pytest.raises(rayling.TypeScriptError, match="a text was thrown"):
        counter.failWithText()


def test_what_is_not_there_is_said(counter: rayling.Actor) -> None:
    with pytest.raises(rayling.TypeScriptError, match="has no method nope; its methods are add"):
        counter.nope()
    with pytest.raises(rayling.TypeScriptError, match="has no method toString"):
        counter.toString()
    with pytest.raises(rayling.TypeScriptError, match="exports no class or function Nope"):
        rayling.open(COUNTER, "Nope")
    with pytest.raises(rayling.TypeScriptError, match="it exports Counter, double"):
        rayling.open(COUNTER, "notCallable")
    with pytest.raises(FileNotFoundError, match=r"no module .*nowhere\.ts"):
        rayling.open("nowhere.ts", "Counter")
    with pytest.raises(rayling.TypeScriptError, match="count must not be negative"):
        rayling.open(COUNTER, "Counter", -1)


def test_a_function_is_called_by_its_handle() -> None:
    with rayling.open(COUNTER, "double") as double:
        assert double(4) == 8


def test_a_generator_runs_ahead_by_its_window_and_no_more() -> None:
    with rayling.open(COUNTER, "Counter") as actor:
        assert list(actor.numbers(100)) == list(range(100))
        assert actor.seen()["yielded"] == 100
        method = actor.numbers.options(generator_backpressure_num_objects=4)
        numbers = method(100)
        assert [next(numbers), next(numbers)] == [0, 1]
        # Two were taken and answered for, so four more may be there; the call stands behind them.
        assert 102 <= actor.seen()["yielded"] <= 106
        numbers.close()
        assert actor.seen()["closed"] == 2
        with pytest.raises(StopIteration):
            next(numbers)


def test_an_option_that_is_no_number_is_refused_and_the_actor_lives(counter: rayling.Actor) -> None:
    for ahead in (math.inf, math.nan, 1.5, "2", True):
        with pytest.raises(TypeError, match="must be a whole number, and is"):
            counter.numbers.options(generator_backpressure_num_objects=ahead)
    for timeout in ("1", True):
        with pytest.raises(TypeError, match="timeout must be a number of seconds, and is"):
            counter.echo.options(timeout=timeout)
    for seconds in (math.nan, 0, -1):
        with pytest.raises(ValueError, match="timeout must be positive seconds, and is"):
            counter.echo.options(timeout=seconds)
        with pytest.raises(ValueError, match="timeout must be positive seconds, and is"):
            rayling.open(COUNTER, "Counter", timeout=seconds)
    with pytest.raises(ValueError, match="not JSON compliant"):
        control_frame(3, 1, math.inf)  # type: ignore[arg-type]
    assert counter.echo.options(timeout=math.inf)(1) == 1


def test_a_generator_that_nobody_reads_any_more_is_ended() -> None:
    with rayling.open(COUNTER, "Counter") as actor:
        numbers = actor.numbers(100)
        assert next(numbers) == 0
        del numbers
        gc.collect()
        assert actor.seen()["closed"] == 1


def test_items_are_copies_and_errors_come_behind_them(counter: rayling.Actor) -> None:
    pytest.importorskip("numpy")
    assert [chunk.tolist() for chunk in counter.chunks(3)] == [[0] * 4, [1] * 4, [2] * 4]
    numbers = counter.broken()
    assert next(numbers) == 1
    with pytest.raises(rayling.TypeScriptError, match="after one"):
        next(numbers)
    with pytest.raises(StopIteration):
        next(numbers)


def test_a_timeout_aborts_the_signal_of_the_call() -> None:
    with rayling.open(COUNTER, "Counter") as actor:
        with pytest.raises(TimeoutError, match=r"wait of Counter .* gave no answer in 0\.05 s"):
            actor.wait.options(timeout=0.05)(rayling.ABORT_SIGNAL)
        assert actor.seen()["aborted"] == 1
        future = actor.wait.submit(rayling.ABORT_SIGNAL)
        assert actor.seen()["aborted"] == 1
        assert future.cancel()
        while actor.seen()["aborted"] == 1:
            pass
        assert actor.add(1) == 1
    with pytest.raises(ValueError, match="timeout must be positive"):
        actor.add.options(timeout=0)
    with pytest.raises(TypeError, match="unexpected keyword"):
        actor.add.options(timeOut=1)


def test_closing_runs_the_hook_and_fails_what_is_under_way(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, logger="rayling.actors")
    actor = rayling.open(COUNTER, "Counter")
    under_way = actor.never.submit()
    assert actor.add(1) == 1
    actor.close()
    actor.close()
    assert "shut down" in [record.message for record in caplog.records]
    with pytest.raises(rayling.ActorDiedError, match="it is closed"):
        under_way.result()
    with pytest.raises(rayling.ActorDiedError, match="it is closed"):
        actor.add(1)
    wait_gone(actor.pid)


def test_all_that_was_printed_is_there_when_the_actor_is_closed() -> None:
    class Keeping(logging.Handler):
        lines: list[str] = []  # noqa: RUF012

        def emit(self, record: logging.LogRecord) -> None:
            self.lines.append(record.getMessage())

    logger = logging.Logger("all that was printed")
    logger.addHandler(Keeping())
    with rayling.open(COUNTER, "Counter", logger=logger) as actor:
        actor.printLines(100_000)
    assert Keeping.lines == [*(f"line {number}" for number in range(100_000)), "shut down"]


def test_a_busy_actor_is_killed_when_its_time_to_close_is_over() -> None:
    actor = rayling.open(COUNTER, "Counter")
    actor.spin.submit()
    actor.close(timeout=0.05)
    wait_gone(actor.pid)


def test_the_end_of_the_process_is_an_error_that_says_how(
    caplog: pytest.LogCaptureFixture,
) -> None:
    actor = rayling.open(COUNTER, "Counter")
    under_way = actor.never.submit()
    actor.print("the last line")
    with pytest.raises(rayling.ActorDiedError, match="exit code 3") as caught:
        actor.exit(3)
    assert caught.value.exit_code == 3
    assert caught.value.output == ("error the last line",)
    assert isinstance(caught.value, rayling.HostLostError)
    with pytest.raises(rayling.ActorDiedError):
        under_way.result()
    again = rayling.open(COUNTER, "Counter")
    numbers = again.numbers(1000)
    next(numbers)
    kill(again.pid)
    with pytest.raises(rayling.ActorDiedError, match="signal 9") as killed:
        list(numbers)
    assert pickle.loads(pickle.dumps(killed.value)).signal == 9
    assert "error the last line" in [record.message for record in caplog.records]


def test_a_handle_that_is_dropped_ends_its_process() -> None:
    actor = rayling.open(COUNTER, "Counter")
    pid = actor.pid
    del actor
    gc.collect()
    wait_gone(pid)


async def method_of_a_dropped_handle() -> list[Any]:
    add = (await rayling.open_async(COUNTER, "Counter")).add
    gc.collect()
    return [await add(1), await add(1)]


def test_a_method_keeps_the_process_of_its_dropped_handle() -> None:
    add = rayling.open(COUNTER, "Counter").add
    gc.collect()
    assert [add(1), add(1)] == [1, 2]
    assert asyncio.run(method_of_a_dropped_handle()) == [1, 2]


def program(body: str) -> subprocess.Popen[str]:
    front = f"import asyncio, os, rayling, time\nCOUNTER = {str(COUNTER)!r}\n"
    return subprocess.Popen(
        [sys.executable, "-c", front + body],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "python/src")},
    )


def numbers_of(process: subprocess.Popen[str]) -> list[int]:
    assert process.stdout is not None
    return [int(word) for word in process.stdout.readline().split()]


def test_nothing_is_left_when_the_program_is_killed() -> None:
    process = program(
        """
actors = [rayling.open(COUNTER, "Counter") for _ in range(2)]
print(actors[0].pid, actors[1].pid, actors[0].spawn(), flush=True)
actors[1].spin()
"""
    )
    pids = numbers_of(process)
    assert len(pids) == 3
    process.kill()
    process.wait()
    for pid in pids:
        wait_gone(pid)


def test_a_fork_of_the_program_keeps_nothing_alive() -> None:
    process = program(
        """
actor = rayling.open(COUNTER, "Counter")
child = os.fork()
if child == 0:
    try:
        actor.add(1)
    except rayling.RaylingError as error:
        assert "a fork of it" in str(error), error
    own = rayling.open(COUNTER, "Counter")
    print(actor.pid, own.pid, os.getpid(), own.add(1), flush=True)
time.sleep(1000)
"""
    )
    first, own, fork, one = numbers_of(process)
    process.kill()
    process.wait()
    wait_gone(first)
    assert one == 1
    kill(fork)
    wait_gone(own)


def test_a_fork_that_goes_on_with_the_event_loop_is_told() -> None:
    process = program(
        """
loop = asyncio.new_event_loop()
actor = loop.run_until_complete(rayling.open_async(COUNTER, "Counter"))
child = os.fork()
if child == 0:
    try:
        loop.run_until_complete(actor.add(1))
    except rayling.RaylingError as error:
        os._exit("a fork of it" not in str(error))
    os._exit(2)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
print(loop.run_until_complete(actor.add(2)))
loop.run_until_complete(actor.close())
"""
    )
    assert process.stdout is not None
    assert process.stdout.read().split() == ["0", "2"]
    process.wait()


def test_the_program_ends_though_an_actor_is_open() -> None:
    process = program('actor = rayling.open(COUNTER, "Counter"); print(actor.pid, flush=True)')
    pids = numbers_of(process)
    assert process.wait() == 0
    wait_gone(pids[0])


def test_several_threads_read_one_stream_and_all_come_to_its_end() -> None:
    with rayling.open(COUNTER, "Counter") as actor, ThreadPoolExecutor(8) as pool:
        numbers = actor.chunks(200)
        read = [pool.submit(list, numbers) for _ in range(8)]
        items = [item.tolist()[0] for one in read for item in one.result()]
        assert sorted(items) == list(range(200))


def test_several_tasks_read_one_stream_and_all_come_to_its_end() -> None:
    async def main() -> None:
        async with rayling.open_async(COUNTER, "Counter") as actor:
            numbers = await actor.chunks(100)

            async def read() -> list[int]:
                return [item.tolist()[0] async for item in numbers]

            read_by_each = await asyncio.gather(*[read() for _ in range(8)])
            items = [item for one in read_by_each for item in one]
            assert sorted(items) == list(range(100))

    asyncio.run(main())


def test_a_generator_that_comes_too_late_is_ended() -> None:
    with rayling.open(COUNTER, "Counter") as actor:
        with pytest.raises(TimeoutError):
            actor.onesLater.options(timeout=0.05)()
        actor.release()
        wait_for(lambda: actor.seen()["closed"] == 1)


def test_nothing_is_left_where_the_arguments_of_a_constructor_cannot_travel() -> None:
    before = children()
    with pytest.raises(TypeError, match="is a object") as held:
        rayling.open(COUNTER, "Counter", object())
    # While the error is there, so is what it came through.
    for pid in children() - before:
        wait_gone(pid)
    assert held.value is not None


def children() -> set[int]:
    found: set[int] = set()
    for task in Path(f"/proc/{os.getpid()}/task").iterdir():
        # A thread may end meanwhile.
        with contextlib.suppress(FileNotFoundError):
            found.update(map(int, (task / "children").read_text().split()))
    return found


def test_a_handle_of_another_event_loop_says_so() -> None:
    async def opened() -> rayling.AsyncActor:
        return await rayling.open_async(COUNTER, "Counter")

    actor = asyncio.run(opened())
    with pytest.raises(rayling.RaylingError, match="opened on another event loop"):
        asyncio.run(actor.add(1))
    asyncio.run(actor.close())
    wait_gone(actor.pid)


def test_asyncio_has_the_same_handle() -> None:
    async def main() -> None:
        async with rayling.open_async(COUNTER, "Counter", 1) as actor:
            assert sorted(await asyncio.gather(*[actor.add(1) for _ in range(1000)])) == list(
                range(2, 1002)
            )
            assert [number async for number in await actor.numbers(40)] == list(range(40))
            numbers = await actor.numbers(100)
            assert await anext(numbers) == 0
            await numbers.aclose()
            assert (await actor.seen())["closed"] == 2
            with pytest.raises(rayling.TypeScriptError, match="too much"):
                await actor.fail()
            with pytest.raises(TimeoutError):
                await actor.never.options(timeout=0.05)()
            waiting = asyncio.ensure_future(actor.wait(rayling.ABORT_SIGNAL))
            await actor.add(1)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            assert (await actor.seen())["aborted"] == 1
            with pytest.raises(rayling.ActorDiedError, match="exit code 0"):
                await actor.exit(0)
        other = await rayling.open_async(COUNTER, "double")
        assert await other(3) == 6
        await other.close()
        wait_gone(other.pid)

    asyncio.run(main())
