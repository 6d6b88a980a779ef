"""TypeScript classes as actors on a real Ray: calls, streams, restarts, names, and what is left after kills."""

from __future__ import annotations

import inspect
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "python/src"), str(ROOT / "python/tests")]

from processes import kill, wait_for, wait_gone  # noqa: E402

import rayling  # noqa: E402

ray = pytest.importorskip("ray", reason="Ray is not installed")

pytestmark = pytest.mark.ray

COUNTER = ROOT / "python/tests/actors/counter.ts"
NAMESPACE = "remote-ts"

#: Ray waits as long for a process of its own on a busy machine.
PATIENCE = {"RAY_raylet_start_wait_time_s": "150", "PYTHONPATH": str(ROOT / "python/src")}


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[str]:
    os.environ.update(PATIENCE)
    context = ray.init(
        address="local",
        num_cpus=8,
        resources={"special": 1},
        namespace=NAMESPACE,
        include_dashboard=False,
        logging_level="ERROR",
    )
    yield context.address_info["gcs_address"]
    ray.shutdown()


def actor_class(**options: Any) -> Any:
    return rayling.remote_ts(
        COUNTER,
        "Counter",
        methods=[
            "add",
            "addLater",
            "echo",
            "sum",
            "options",
            "fail",
            "exit",
            "pid",
            "never",
            "spawn",
        ],
        streams=["numbers", "chunks", "broken"],
        **options,
    )


@pytest.fixture(scope="module")
def counter() -> Iterator[Any]:
    actor = actor_class().remote()
    yield actor
    ray.kill(actor)


def test_calls_return_refs_and_refs_are_arguments() -> None:
    actor = actor_class().remote(1, by=1)
    first = actor.add.remote(2)
    assert ray.get([first, actor.addLater.remote(first)]) == [4, 8]
    refs = [actor.add.remote(1) for _ in range(1000)]
    assert sorted(ray.get(refs)) == list(range(9, 1009))


def test_one_at_a_time_keeps_the_order_of_calls() -> None:
    # Ray keeps no order for a class that has one.
    assert not any(map(inspect.iscoroutinefunction, vars(rayling.TypeScriptActor).values()))
    actor = actor_class(max_concurrency=1).remote()
    assert ray.get([actor.addLater.remote(1) for _ in range(300)]) == list(range(1, 301))


def test_values_and_arrays_come_back(counter: Any) -> None:
    numpy = pytest.importorskip("numpy")
    value = {"bytes": b"\x00" * 1_000_000, "large": 2**60, "list": [None, 1.5]}
    assert ray.get(counter.echo.remote(value)) == value
    array = numpy.arange(1_000_000, dtype="float32").reshape(1000, 1000)
    assert numpy.array_equal(ray.get(counter.echo.remote(ray.put(array))), array)
    assert ray.get(counter.options.remote(1, by=2)) == [1, {"by": 2}]
    assert ray.get(counter.echo.options(num_returns=2).remote([1, 2])[1]) == 2


def test_an_error_is_a_task_error_and_a_typescript_error(counter: Any) -> None:
    with pytest.raises(rayling.TypeScriptError, match=r"at Counter\.fail") as caught:
        ray.get(counter.fail.remote())
    assert isinstance(caught.value, ray.exceptions.RayTaskError)
    cause = caught.value.cause
    assert isinstance(cause, rayling.TypeScriptError)
    assert (cause.name, cause.message, cause.code) == ("RangeError", "too much", "TOO_MUCH")


def test_what_is_wrong_is_said(counter: Any) -> None:
    wrong = rayling.remote_ts(COUNTER, "Counter", methods=["numbers", "nope"], streams=["add"])
    actor = wrong.remote()
    with pytest.raises(TypeError, match="numbers of Counter is a generator"):
        ray.get(actor.numbers.remote(1))
    with pytest.raises(TypeError, match="add of Counter is no generator"):
        ray.get(next(actor.add.remote(1)))
    with pytest.raises(rayling.TypeScriptError, match="has no method nope"):
        ray.get(actor.nope.remote())
    with pytest.raises(AttributeError):
        counter.unknown.remote()
    with pytest.raises(FileNotFoundError):
        rayling.remote_ts("nowhere.ts", "Counter")
    with pytest.raises(ValueError, match="cannot have the name '__init__'"):
        rayling.remote_ts(COUNTER, "Counter", methods=["__init__"])
    with pytest.raises(ValueError, match="cannot have the name 'rayling_turn'"):
        rayling.remote_ts(COUNTER, "Counter", methods=["rayling_turn"])
    with pytest.raises(ValueError, match="'numbers' is named twice"):
        rayling.remote_ts(COUNTER, "Counter", methods=["numbers"], streams=["numbers"])
    with pytest.raises(TypeError, match="methods must be a list of names, and is 'add'"):
        rayling.remote_ts(COUNTER, "Counter", methods="add")
    with pytest.raises(ray.exceptions.ActorDiedError, match="count must not be negative"):
        ray.get(actor_class().remote(-1).add.remote(1))


def test_a_function_is_the_method_call() -> None:
    double = rayling.remote_ts(COUNTER, "double", methods=["call"])
    assert ray.get(double.remote().call.remote(4)) == 8
    ordered = rayling.remote_ts(COUNTER, "double", methods=["call"], max_concurrency=1)
    assert ray.get(ordered.remote().call.remote(4)) == 8


def test_a_cancelled_call_aborts_its_signal_and_a_cancelled_stream_ends() -> None:
    actor = rayling.remote_ts(
        COUNTER, "Counter", methods=["wait", "waiting", "seen"], streams=["forever"]
    ).remote()
    waiting = actor.wait.remote(rayling.ABORT_SIGNAL)
    endless = actor.forever.remote()
    assert ray.get(next(endless)) == 0
    wait_for(lambda: ray.get(actor.waiting.remote()) == 1)
    for under_way in (waiting, endless):
        ray.cancel(under_way)
    with pytest.raises(ray.exceptions.TaskCancelledError):
        ray.get(waiting)
    wait_for(lambda: seen_by(actor) == {"closed": 1, "aborted": 1})


def seen_by(actor: Any) -> dict[str, int]:
    seen = ray.get(actor.seen.remote())
    return {"closed": seen["closed"], "aborted": seen["aborted"]}


def test_generators_are_streams(counter: Any) -> None:
    assert [ray.get(ref) for ref in counter.numbers.remote(40)] == list(range(40))
    chunks = counter.chunks.options(num_returns="streaming").remote(3)
    assert [ray.get(ref).tolist() for ref in chunks] == [[0] * 4, [1] * 4, [2] * 4]
    broken = counter.broken.remote()
    assert ray.get(next(broken)) == 1
    with pytest.raises(rayling.TypeScriptError, match="after one"):
        ray.get(next(broken))


def test_options_of_ray_are_kept() -> None:
    actor = actor_class(num_cpus=1).options(resources={"special": 1}).remote()
    ray.get(actor.add.remote(1))
    assert ray.available_resources().get("special", 0) == 0
    pid = ray.get(actor.pid.remote())
    del actor
    wait_gone(pid)


def test_an_exit_of_the_process_is_a_death_that_ray_restarts() -> None:
    actor = actor_class(max_restarts=1, max_task_retries=-1).remote(10)
    first = ray.get(actor.pid.remote())
    assert ray.get(actor.add.remote(1)) == 11
    # A call that ends the process is tried again, and ends the next one.
    with pytest.raises(ray.exceptions.ActorDiedError):
        ray.get(actor.exit.remote(0))
    wait_gone(first)

    actor = actor_class(max_restarts=1, max_task_retries=-1).remote(10)
    first = ray.get(actor.pid.remote())
    assert ray.get(actor.add.remote(1)) == 11
    kill(first)
    assert ray.get(actor.add.remote(2)) == 12
    assert ray.get(actor.pid.remote()) != first


def test_without_restarts_an_exit_is_the_end() -> None:
    actor = actor_class().remote()
    under_way = actor.never.remote()
    pid = ray.get(actor.pid.remote())
    with pytest.raises(ray.exceptions.ActorDiedError):
        ray.get(actor.exit.remote(3))
    with pytest.raises(ray.exceptions.ActorDiedError):
        ray.get(under_way)
    wait_gone(pid)


def test_nothing_is_left_of_a_killed_actor_or_worker() -> None:
    actor = actor_class().remote()
    pid, spawned = ray.get([actor.pid.remote(), actor.spawn.remote()])
    ray.kill(actor)
    wait_gone(pid)
    wait_gone(spawned)

    actor = actor_class(max_restarts=1, max_task_retries=-1).remote()
    pid, spawned = ray.get([actor.pid.remote(), actor.spawn.remote()])
    kill(parent_of(pid))
    wait_gone(pid)
    wait_gone(spawned)
    assert ray.get(actor.add.remote(1)) == 1


def parent_of(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("PPid:")).split()[1])


def driver(
    address: str, body: str, runtime_env: dict[str, str] | None = None
) -> subprocess.Popen[str]:
    front = f"""
import os, sys, time, ray, rayling
ray.init(
    address={address!r},
    namespace={NAMESPACE!r},
    logging_level="ERROR",
    log_to_driver=False,
    runtime_env={runtime_env!r},
    **({{"include_dashboard": False}} if {address!r} == "local" else {{}}),
)
Counter = rayling.remote_ts({str(COUNTER)!r}, "Counter", methods=["add", "pid", "exit"])
"""
    return subprocess.Popen(
        [sys.executable, "-c", front + body],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **PATIENCE},
    )


def numbers_of(process: subprocess.Popen[str]) -> list[int]:
    assert process.stdout is not None
    return [int(word) for word in process.stdout.readline().split()]


def test_a_detached_actor_is_found_by_its_name_from_other_drivers(cluster: str) -> None:
    first = driver(
        cluster,
        """
actor = Counter.options(
    name="kept", lifetime="detached", max_restarts=-1, max_task_retries=-1
).remote(5)
print(ray.get(actor.add.remote(1)), ray.get(actor.pid.remote()), flush=True)
""",
    )
    count, pid = numbers_of(first)
    assert first.wait() == 0
    assert count == 6
    # Without the class: Ray and the installed package have all that it takes.
    second = driver(
        cluster,
        """
del Counter
actor = ray.get_actor("kept")
print(ray.get(actor.add.remote(1)), ray.get(actor.pid.remote()), flush=True)
""",
    )
    assert numbers_of(second) == [7, pid]
    assert second.wait() == 0
    # Its driver is gone, and it is restarted with the arguments that it was made with.
    actor = ray.get_actor("kept")
    kill(pid)
    assert ray.get(actor.add.remote(1)) == 6
    again = actor_class().options(name="kept", lifetime="detached", get_if_exists=True).remote()
    assert ray.get(again.add.remote(1)) == 7
    pid = ray.get(actor.pid.remote())
    ray.kill(actor)
    wait_gone(pid)


def test_a_module_is_found_in_the_working_directory(cluster: str, tmp_path: Path) -> None:
    (tmp_path / "one.ts").write_text("export class One { one() { return 1; } }")
    process = driver(
        cluster,
        f"""
os.chdir({str(tmp_path)!r})
One = rayling.remote_ts("one.ts", "One", methods=["one"])
# As on a machine that has no such file.
os.remove("one.ts")
print(ray.get(One.remote().one.remote()), flush=True)
""",
        {"working_dir": str(tmp_path)},
    )
    assert numbers_of(process) == [1]
    assert process.wait() == 0


def test_nothing_is_left_of_a_killed_driver(cluster: str) -> None:
    process = driver(
        cluster,
        """
actors = [Counter.remote() for _ in range(2)]
print(*ray.get([actor.pid.remote() for actor in actors]), flush=True)
time.sleep(1000)
""",
    )
    pids = numbers_of(process)
    assert len(pids) == 2
    process.kill()
    process.wait()
    for pid in pids:
        wait_gone(pid)


def test_nothing_is_left_of_a_killed_raylet() -> None:
    process = driver(
        "local",
        """
actor = Counter.remote()
raylet = ray._private.worker._global_node.all_processes["raylet"][0].process
print(ray.get(actor.pid.remote()), raylet.pid, flush=True)
# Workers of Ray do not end as long as a dead raylet is a zombie.
raylet.wait()
sys.stdin.readline()
ray.shutdown()
""",
    )
    pid, raylet = numbers_of(process)
    os.kill(raylet, signal.SIGKILL)
    wait_gone(pid)
    process.communicate("\n")
