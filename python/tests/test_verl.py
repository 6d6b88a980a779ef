"""`rayling.verl` in verl's own RewardLoopManager. Skipped where verl and Ray are not installed."""

from __future__ import annotations

import importlib.util
import os
import signal
import sys
import time
import unittest
from pathlib import Path
from typing import Any, ClassVar

import_problem = next(
    (f"{name} is not installed" for name in ("verl", "ray") if not importlib.util.find_spec(name)),
    None,
)
try:
    import pytest

    pytestmark = pytest.mark.verl
except ImportError:
    pass

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "python/src"), str(ROOT / "python/tests")]
os.environ.setdefault("RAYLING_NODE", str(ROOT / "node_modules/.bin/node"))

FUNCTION = str(ROOT / "python/src/rayling/verl/reward_function.py")
GRADERS = ROOT / "python/tests/graders"
GRADE = str(GRADERS / "grade.ts")

if import_problem is None:
    from judge_server import judge_server
    from processes import wait_for
    from verl_rewards import batch, config, hosts, manager, ray_session


@unittest.skipIf(import_problem is not None, import_problem or "")
class VerlTest(unittest.TestCase):
    """Each with two workers of its own."""

    session: ClassVar[Any]
    tokenizer: ClassVar[str]

    @classmethod
    def setUpClass(cls) -> None:
        cls.session = ray_session()
        cls.tokenizer = cls.session.__enter__()

    @classmethod
    def tearDownClass(cls) -> None:
        cls.session.__exit__(None, None, None)

    def scored(self, data: Any, path: str, kwargs: dict[str, Any], **more: Any) -> Any:
        with manager(config(self.tokenizer, path, kwargs, **more)) as rewards:
            return rewards.compute_rm_score(data)

    def test_rewards_of_naive_and_dapo_are_those_of_the_same_grader_in_python(self) -> None:
        buffer = {"enable": True, "len": 3, "penalty_factor": 0.7, "log": True}
        for name, more in (
            ("naive", {}),
            ("dapo", {"reward_kwargs": {"overlong_buffer_cfg": buffer, "max_resp_len": 8}}),
        ):
            rows: list[dict[str, Any]] = [{"ms": n % 3} for n in range(1000)]
            python = self.scored(batch(rows), str(GRADERS / "grade.py"), {}, manager=name, **more)
            typescript = self.scored(
                batch(rows), FUNCTION, {"options": {"reward": GRADE}}, manager=name, **more
            )
            ours, theirs = typescript.batch["rm_scores"], python.batch["rm_scores"]
            self.assertEqual(ours.numpy().tobytes(), theirs.numpy().tobytes())
            columns, others = typescript.non_tensor_batch, python.non_tensor_batch
            self.assertEqual(columns.keys(), others.keys())
            for key in columns:
                self.assertEqual(columns[key].dtype, others[key].dtype)
                self.assertEqual(columns[key].tobytes(), others[key].tobytes())

    def test_what_cannot_be_scored_is_as_configured(self) -> None:
        ways = {"throw": "SCORE_THREW", "hang": "SCORE_TIMEOUT", "garbage": "INVALID_SCORE"}
        wanted: list[str | None] = [list(ways)[n % 3] if n % 50 == 7 else None for n in range(1000)]
        rows = [{} if does is None else {"does": does} for does in wanted]
        kwargs = {"options": {"reward": GRADE, "timeoutMs": 2000}, "invalid": -2}
        found = self.scored(batch(rows), FUNCTION, kwargs)
        python = self.scored(batch([{} for _ in rows]), str(GRADERS / "grade.py"), {})
        scores, others = (one.batch["rm_scores"].sum(dim=1).tolist() for one in (found, python))
        for row, does in enumerate(wanted):
            self.assertEqual(scores[row], others[row] if does is None else -2.0)
        errors = found.non_tensor_batch["reward_error"].tolist()
        self.assertEqual(errors, [None if does is None else ways[does] for does in wanted])
        words = found.non_tensor_batch["words"].tolist()
        self.assertEqual([one is None for one in words], [does is not None for does in wanted])

    def test_an_invalid_sample_ends_its_batch_by_default(self) -> None:
        with self.assertRaisesRegex(Exception, "SCORE_THREW: this one throws"):
            rows: list[dict[str, Any]] = [{}, {"does": "throw"}]
            self.scored(batch(rows), FUNCTION, {"options": {"reward": GRADE}})

    def test_two_workers_keep_one_limit_as_the_judge_counts(self) -> None:
        with judge_server(0.05) as (url, counts):
            limits = {"endpoint": "judge", "requestsPerMinute": 60, "concurrency": 5}
            reward = {"path": str(GRADERS / "judge.ts"), "rewardKwargs": {"url": url}}
            kwargs = {"options": {"reward": reward, "limits": limits}}
            found = self.scored(batch([{} for _ in range(70)]), FUNCTION, kwargs)
            self.assertEqual(len(set(found.non_tensor_batch["pid"].tolist())), 1)
            self.assertEqual(len(counts.arrivals), 70)
            self.assertLessEqual(counts.most_at_once, 5)
            self.assertLessEqual(counts.most_within(60), 60)

    def test_each_worker_has_a_loop_of_its_own_where_that_is_wanted(self) -> None:
        with judge_server(0) as (url, _):
            reward = {"path": str(GRADERS / "judge.ts"), "rewardKwargs": {"url": url}}
            kwargs = {"options": {"reward": reward}, "share": "process"}
            found = self.scored(batch([{} for _ in range(8)]), FUNCTION, kwargs)
        self.assertEqual(len(set(found.non_tensor_batch["pid"].tolist())), 2)
        wait_for(lambda: not hosts())

    def test_the_loop_starts_when_verl_imports_the_function(self) -> None:
        kwargs = {"options": {"reward": GRADE, "name": "started-at-import"}}
        with manager(config(self.tokenizer, FUNCTION, kwargs)):
            wait_for(lambda: len(hosts()) == 1)
        wait_for(lambda: not hosts())

    def test_a_worker_that_is_killed_leaves_nothing(self) -> None:
        import ray

        settings = config(self.tokenizer, FUNCTION, {"options": {"reward": GRADE}})
        with manager(settings) as rewards:
            rewards.compute_rm_score(batch([{} for _ in range(8)]))
            [host] = hosts()
            workers = rewards.reward_loop_workers
            pid_of = [one.__ray_call__.remote(lambda _: os.getpid()) for one in workers]
            first, second = ray.get(pid_of)
            os.kill(first, signal.SIGKILL)
            time.sleep(1)
            self.assertEqual(hosts(), [host])
            os.kill(second, signal.SIGKILL)
            wait_for(lambda: not hosts())


if __name__ == "__main__":
    unittest.main()
