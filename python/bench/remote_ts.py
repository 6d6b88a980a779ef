"""How much slower is a call of a TypeScript class on Ray than a call of Ray's own actor?

    python python/bench/remote_ts.py [--rounds 30] [--calls 50] [--in-flight 1000]

Two pairs of the same kind, in one run, in turns: a class whose calls run beside each other against an
asynchronous class in Python, and one of one call at a time against a plain class in Python. Each turn
gives one ratio; the medians and quartiles of the ratios are printed. On a machine that is busy with
other work, the waits for a processor decide over them: the last column is the ratio of the time that
all processes of a call had one, driver included. Above 1, TypeScript is cheaper.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import sys
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

import ray

import rayling
from rayling.runtime import find_node

SOURCE = str(Path(__file__).resolve().parents[1] / "src")
COUNTER = Path(__file__).resolve().parents[1] / "tests/actors/counter.ts"


class Counter:
    """The class of TypeScript, in Python."""

    def __init__(self) -> None:
        """Starts at 0."""
        self.count = 0

    def add(self, by: int) -> int:
        """Adds."""
        self.count += by
        return self.count

    def pid(self) -> int:
        """Returns the process id."""
        return os.getpid()


class AsyncCounter(Counter):
    """The same for asyncio."""

    async def add(self, by: int) -> int:  # type: ignore[override]
        """Adds."""
        return super().add(by)


def one_at_a_time(actor: Any, calls: int) -> float:
    """Returns calls per second."""
    start = time.perf_counter()
    for _ in range(calls):
        ray.get(actor.add.remote(1))
    return calls / (time.perf_counter() - start)


def in_flight(actor: Any, calls: int) -> float:
    """Returns calls per second, of four times as many as are under way at a time."""
    part = max(1, calls // 10)
    start = time.perf_counter()
    parts = deque([actor.add.remote(1) for _ in range(part)] for _ in range(10))
    for _ in range(30):
        ray.get(parts.popleft())
        parts.append([actor.add.remote(1) for _ in range(part)])
    while parts:
        ray.get(parts.popleft())
    return 40 * part / (time.perf_counter() - start)


def processor_seconds(pids: list[int]) -> float:
    """Returns what these processes and this one have used of processors, on Linux."""
    ticks = 0
    for pid in pids:
        _, _, rest = Path(f"/proc/{pid}/stat").read_text().rpartition(")")
        ticks += sum(int(field) for field in rest.split()[11:13])
    return ticks / os.sysconf("SC_CLK_TCK") + time.process_time()


class Subject:
    """An actor, the processes that its calls take, and what was measured of it."""

    def __init__(self, actor: Any, pids: list[int]) -> None:
        """Starts with nothing measured."""
        self.actor = actor
        self.pids = pids
        self.rates: list[float] = []
        self.seconds = 0.0

    def measure(self, rate: Callable[[Any], float]) -> None:
        """Runs one round."""
        before = processor_seconds(self.pids)
        self.rates.append(rate(self.actor))
        self.seconds += processor_seconds(self.pids) - before


def compare(
    name: str, pair: tuple[Subject, Subject], rounds: int, rate: Callable[[Any], float]
) -> None:
    """Prints the rates of both, the ratio of each round, and that of the processors' time."""
    for subject in pair:
        subject.rates = []
        subject.seconds = 0.0
    for number in range(rounds):
        # Who is first takes turns.
        for subject in pair if number % 2 == 0 else reversed(pair):
            subject.measure(rate)
    ours, theirs = pair
    ratios = [our / their for our, their in zip(ours.rates, theirs.rates, strict=True)]
    low, middle, high = statistics.quantiles(ratios, n=4)
    our, their = statistics.median(ours.rates), statistics.median(theirs.rates)
    print(
        f"{name:<44}{our:>9.0f}/s{their:>9.0f}/s{middle:>7.2f}  {low:.2f} to {high:.2f}"
        f"{theirs.seconds / ours.seconds:>11.2f}",
        flush=True,
    )


def typescript(actor: Any) -> Subject:
    """Returns an actor in TypeScript, whose calls take a worker and its Node."""
    node = ray.get(actor.pid.remote())
    _, _, rest = Path(f"/proc/{node}/stat").read_text().rpartition(")")
    return Subject(actor, [node, int(rest.split()[1])])


def python(actor: Any) -> Subject:
    """Returns an actor in Python."""
    return Subject(actor, [ray.get(actor.pid.remote())])


def main() -> None:
    """Runs the comparison."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--calls", type=int, default=50)
    parser.add_argument("--in-flight", type=int, default=1000)
    flags = parser.parse_args()
    start_ray()
    node = ".".join(map(str, find_node().version))
    print(
        f"Ray {ray.__version__}, Python {platform.python_version()}, Node {node}, "
        f"{os.cpu_count()} CPUs, load {os.getloadavg()[0]:.0f}, n = {flags.rounds}"
    )
    both = rayling.remote_ts(COUNTER, "Counter", methods=["add", "pid"])
    ordered = rayling.remote_ts(COUNTER, "Counter", methods=["add", "pid"], max_concurrency=1)
    pairs = {
        "asynchronous": (
            typescript(both.remote()),
            python(ray.remote(max_concurrency=1000)(AsyncCounter).remote()),
        ),
        "one at a time": (typescript(ordered.remote()), python(ray.remote(Counter).remote())),
    }
    print(f"{'':<44}{'TypeScript':>11}{'Python':>11}  ratio  quartiles     processors")
    for kind, pair in pairs.items():
        awaited = lambda actor: one_at_a_time(actor, flags.calls)  # noqa: E731
        flight = lambda actor: in_flight(actor, flags.in_flight)  # noqa: E731
        compare(f"{kind}, each call awaited", pair, flags.rounds, awaited)
        compare(f"{kind}, {flags.in_flight} in flight", pair, flags.rounds, flight)
    ray.shutdown()


def start_ray() -> None:
    """Starts Ray on this machine, with the package for its workers."""
    known = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = SOURCE if known is None else os.pathsep.join([SOURCE, known])
    # Workers of both run at the priority of all programs: by default they yield to others' work.
    os.environ.setdefault("RAY_worker_niceness", "0")
    # On a busy machine Ray starts slowly.
    os.environ.setdefault("RAY_raylet_start_wait_time_s", "150")
    ray.init(
        address="local",
        num_cpus=8,
        include_dashboard=False,
        logging_level="ERROR",
        log_to_driver=False,
    )


if __name__ == "__main__":
    main()
