"""How much slower is a call of a TypeScript class on Ray than a call of Ray's own actor?

    python python/bench/remote_ts.py [--rounds 30] [--calls 50] [--in-flight 1000]

Two pairs of the same kind, in one run, in turns: a class whose calls run beside each other against an
asynchronous class in Python, and one of one call at a time against a plain class in Python. Each turn
gives one ratio; the medians and quartiles of the ratios are printed.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import sys
import time
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
    """Returns calls per second."""
    start = time.perf_counter()
    ray.get([actor.add.remote(1) for _ in range(calls)])
    return calls / (time.perf_counter() - start)


def compare(name: str, ours: Any, theirs: Any, rounds: int, rate: Callable[[Any], float]) -> None:
    """Prints the rates of both, and the ratio of each round."""
    rates: list[tuple[float, float]] = []
    for number in range(rounds):
        # Who is first takes turns.
        if number % 2 == 0:
            first = rate(ours)
            rates.append((first, rate(theirs)))
        else:
            first = rate(theirs)
            rates.append((rate(ours), first))
    ratios = [our / their for our, their in rates]
    low, middle, high = statistics.quantiles(ratios, n=4)
    our, their = (statistics.median(one) for one in zip(*rates, strict=True))
    print(f"{name:<52}{our:>8.0f}/s{their:>8.0f}/s{middle:>7.2f}  ({low:.2f} to {high:.2f})")


def main() -> None:
    """Runs the comparison."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--calls", type=int, default=50)
    parser.add_argument("--in-flight", type=int, default=1000)
    flags = parser.parse_args()
    # For the workers.
    known = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = SOURCE if known is None else os.pathsep.join([SOURCE, known])
    # On a busy machine Ray starts slowly.
    os.environ.setdefault("RAY_raylet_start_wait_time_s", "150")
    ray.init(
        address="local",
        num_cpus=8,
        include_dashboard=False,
        logging_level="ERROR",
        log_to_driver=False,
    )
    load = os.getloadavg()[0]
    node = ".".join(map(str, find_node().version))
    print(
        f"Ray {ray.__version__}, Python {platform.python_version()}, Node {node}, "
        f"{os.cpu_count()} CPUs, load {load:.0f}, n = {flags.rounds}"
    )
    typescript = rayling.remote_ts(COUNTER, "Counter", methods=["add"])
    ordered = rayling.remote_ts(COUNTER, "Counter", methods=["add"], max_concurrency=1)
    pairs = [
        (
            "asynchronous",
            typescript.remote(),
            ray.remote(max_concurrency=1000)(AsyncCounter).remote(),
        ),
        ("one call at a time", ordered.remote(), ray.remote(Counter).remote()),
    ]
    ray.get([actor.add.remote(1) for _, *both in pairs for actor in both])
    print(f"{'':<52}{'TypeScript':>10}{'Python':>10}{'ratio':>7}  (quartiles)")
    for kind, ours, theirs in pairs:
        compare(
            f"{kind} class, each call awaited",
            ours,
            theirs,
            flags.rounds,
            lambda actor: one_at_a_time(actor, flags.calls),
        )
        compare(
            f"{kind} class, {flags.in_flight} in flight",
            ours,
            theirs,
            flags.rounds,
            lambda actor: in_flight(actor, flags.in_flight),
        )
    ray.shutdown()


if __name__ == "__main__":
    main()
