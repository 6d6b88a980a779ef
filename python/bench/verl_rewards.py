"""How long verl's RewardLoopManager takes over a grader in TypeScript, and over the same in Python.

    python python/bench/verl_rewards.py [ROUNDS]

Both are measured in each round, one after the other, with two workers: a batch of 512 rows whose grader
does nothing, one of 256 rows whose grader waits 200 ms, and the first batch 5 s after the start.
Prints the best and the median of both, and the ratios of medians within rounds.
"""

from __future__ import annotations

import gc
import platform
import statistics
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from verl_rewards import GRADERS, batch, config, manager, ray_session

GRADER = str(Path(__file__).resolve().parents[1] / "src/rayling/verl/reward_function.py")
TYPESCRIPT = (GRADER, {"options": {"reward": str(GRADERS / "grade.ts")}})
PYTHON = (str(GRADERS / "grade.py"), {})

#: Between the start of the workers and the first batch.
PAUSE_S = 5

SHAPES = {"512 rows of 0 ms": (512, 0), "256 rows of 200 ms": (256, 200)}


def timed(rewards: Any, rows: int, ms: int) -> float:
    """Milliseconds of one batch."""
    data = batch([{"ms": ms} for _ in range(rows)])
    gc.collect()
    begin = time.perf_counter()
    rewards.compute_rm_score(data)
    return (time.perf_counter() - begin) * 1e3


def measure(
    tokenizer: str, path: str, kwargs: dict[str, Any], first: str
) -> dict[str, list[float]]:
    """A first and a second batch of one shape, and then five of each."""
    with manager(config(tokenizer, path, kwargs)) as rewards:
        time.sleep(PAUSE_S)
        found = {"first and second": [timed(rewards, *SHAPES[first]) for _ in range(2)]}
        for name, shape in SHAPES.items():
            found[name] = [timed(rewards, *shape) for _ in range(5)]
    return found


def main(rounds: int) -> None:
    """Prints a line for each round and shape."""
    print(f"{platform.platform()}, Python {platform.python_version()}")
    ratios: dict[str, list[float]] = {name: [] for name in SHAPES}
    with ray_session() as tokenizer:
        for round_number in range(rounds):
            first = list(SHAPES)[round_number % 2]
            order = [PYTHON, TYPESCRIPT] if round_number % 4 < 2 else [TYPESCRIPT, PYTHON]
            found = {path: measure(tokenizer, path, kwargs, first) for path, kwargs in order}
            python, typescript = found[PYTHON[0]], found[TYPESCRIPT[0]]
            for name, one in (("Python", python), ("TypeScript", typescript)):
                a, b = one["first and second"]
                print(f"{name}: first {first} {a:.0f} ms, second {b:.0f} ms, ratio {a / b:.2f}")
            for name in SHAPES:
                a, b = statistics.median(python[name]), statistics.median(typescript[name])
                ratios[name].append(b / a)
                print(
                    f"{name}: Python {a:.0f} ms (best {min(python[name]):.0f}), TypeScript {b:.0f} ms "
                    f"(best {min(typescript[name]):.0f}), ratio {b / a:.2f}",
                    flush=True,
                )
    for name, all_of in ratios.items():
        print(
            f"{name}: ratio {statistics.median(all_of):.2f} ({min(all_of):.2f} to {max(all_of):.2f})"
        )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 4)
