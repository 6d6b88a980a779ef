"""Training steps of verl on a CPU: its data, its reward loop, its advantages and its policy loss.

verl's trainer has no engine for rollouts on a CPU. A tiny model of transformers generates in its place.
Skipped where verl and Ray are not installed.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import unittest
from pathlib import Path
from typing import Any

import_problem = next(
    (f"{name} is not installed" for name in ("verl", "ray") if not importlib.util.find_spec(name)),
    None,
)

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "python/src"), str(ROOT / "python/tests")]
os.environ.setdefault("RAYLING_NODE", str(ROOT / "node_modules/.bin/node"))

FUNCTION = str(ROOT / "python/src/rayling/verl/reward_function.py")
GRADE = str(ROOT / "python/tests/graders/grade.ts")

GROUPS = 8
GROUP = 8
LENGTH = 6
STEPS = 8

if import_problem is None:
    import numpy as np
    import torch
    from transformers import Qwen2Config, Qwen2ForCausalLM
    from verl import DataProto
    from verl.trainer.ppo.core_algos import AdvantageEstimator, compute_policy_loss_vanilla
    from verl.trainer.ppo.ray_trainer import compute_advantage
    from verl.utils.torch_functional import logprobs_from_logits
    from verl.workers.config import ActorConfig
    from verl_rewards import WORDS, config, manager, ray_session


def tiny_policy() -> Any:
    torch.manual_seed(7)
    return Qwen2ForCausalLM(
        Qwen2Config(
            vocab_size=WORDS + 2,
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=1,
            num_attention_heads=2,
            num_key_value_heads=2,
            bos_token_id=1,
            eos_token_id=1,
            pad_token_id=0,
        )
    )


def rollout(policy: Any) -> DataProto:
    """A group of responses to each prompt. Token 0 and 1 are no words, and are not drawn."""
    prompts = (torch.arange(GROUPS) % WORDS + 2).repeat_interleave(GROUP)[:, None]
    tokens = prompts
    with torch.no_grad():
        for _ in range(LENGTH):
            logits = policy(tokens).logits[:, -1]
            logits[:, :2] = -torch.inf
            tokens = torch.cat([tokens, torch.multinomial(logits.softmax(-1), 1)], dim=1)
    rows = len(tokens)
    return DataProto.from_dict(
        tensors={
            "prompts": prompts,
            "responses": tokens[:, 1:],
            "input_ids": tokens,
            "attention_mask": torch.ones_like(tokens),
            "response_mask": torch.ones((rows, LENGTH), dtype=torch.int64),
        },
        non_tensors={
            "uid": np.array([str(row // GROUP) for row in range(rows)], dtype=object),
            "data_source": np.array(["words"] * rows, dtype=object),
            "reward_model": np.array([{"ground_truth": 9}] * rows, dtype=object),
            "extra_info": np.array([{} for _ in range(rows)], dtype=object),
        },
    )


def log_probs(policy: Any, data: DataProto) -> Any:
    logits = policy(data.batch["input_ids"]).logits[:, :-1]
    logits[:, :, :2] = -torch.inf
    return logprobs_from_logits(logits, data.batch["responses"])


@unittest.skipIf(import_problem is not None, import_problem or "")
class StepTest(unittest.TestCase):
    def test_a_policy_learns_from_rewards_in_typescript(self) -> None:
        policy = tiny_policy()
        optimizer = torch.optim.Adam(policy.parameters(), lr=0.01)
        actor = ActorConfig(
            strategy="fsdp", rollout_n=GROUP, ppo_micro_batch_size_per_gpu=1, use_dynamic_bsz=True
        )
        means = []
        kwargs = {"options": {"reward": GRADE}}
        with ray_session() as tokenizer, manager(config(tokenizer, FUNCTION, kwargs)) as rewards:
            for _ in range(STEPS):
                data = rollout(policy)
                data = data.union(rewards.compute_rm_score(data))
                data.batch["token_level_rewards"] = data.batch["rm_scores"]
                data = compute_advantage(data, AdvantageEstimator.GRPO)
                with torch.no_grad():
                    old = log_probs(policy, data)
                loss, _ = compute_policy_loss_vanilla(
                    old,
                    log_probs(policy, data),
                    data.batch["advantages"],
                    data.batch["response_mask"],
                    config=actor,
                )
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                means.append(data.batch["rm_scores"].sum(dim=1).mean().item())
        # A response of random words is worth 6 * 24.5 * 0.1 / 9.3 on average.
        self.assertAlmostEqual(means[0], 1.58, delta=0.2)
        self.assertGreater(means[-1], means[0] * 1.1)


if __name__ == "__main__":
    unittest.main()
