"""python examples/python/verl_judge/run.py

verl's own reward loop, two workers, with an LLM judge in TypeScript. The judge is the test server of this
repository, which takes its time, refuses and fails; a training has verl's trainer in place of this file.
"""

import json
import os
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import ray
import torch
import verl
from omegaconf import OmegaConf
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast
from verl import DataProto
from verl.experimental.reward_loop import RewardLoopManager

HERE = Path(__file__).resolve().parent
ROWS = 64

judge = {
    "latency": {"uniform": [20, 200]},
    "faults": {"error": 0.1, "refuse": 0.1},
    "limits": {"concurrency": 8},
}
server = subprocess.Popen(
    [
        os.environ.get("RAYLING_NODE", "node"),
        str(HERE.parents[2] / "test/servers/judge-server.ts"),
        json.dumps(judge),
    ],
    stdout=subprocess.PIPE,
)
assert server.stdout is not None
address = json.loads(server.stdout.readline())["address"]

# Answers 0 to 99, of which every second one is right, and a tokenizer that knows them.
folder = tempfile.mkdtemp()
words = {"<pad>": 0, "</s>": 1, **{str(n): n + 2 for n in range(100)}}
tokenizer = Tokenizer(models.WordLevel(words, unk_token="<pad>"))
tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
PreTrainedTokenizerFast(
    tokenizer_object=tokenizer, pad_token="<pad>", eos_token="</s>"
).save_pretrained(folder)
answers = torch.arange(ROWS)[:, None] % 100
data = DataProto.from_dict(
    tensors={
        "prompts": answers + 2,
        "responses": answers + 2,
        "attention_mask": torch.ones((ROWS, 2), dtype=torch.int64),
    },
    non_tensors={
        "data_source": np.array(["numbers"] * ROWS, dtype=object),
        "reward_model": np.array(
            [{"ground_truth": str(n + n % 2)} for n in range(ROWS)], dtype=object
        ),
        "extra_info": np.array([{} for _ in range(ROWS)], dtype=object),
    },
)

reward = OmegaConf.load(Path(verl.__file__).parent / "trainer/config/reward/reward.yaml")
reward.num_workers = 2
reward.custom_reward_function.path = "pkg://rayling.verl"
reward.custom_reward_function.reward_kwargs = {"config": str(HERE / "rewards.yaml"), "invalid": 0.0}
model = {"path": folder, "tokenizer_path": None}
config = OmegaConf.create({"reward": reward, "actor_rollout_ref": {"model": model}})

ray.init(runtime_env={"env_vars": {"JUDGE_URL": f"http://{address}/v1"}})
try:
    rewards = RewardLoopManager(config).compute_rm_score(data)
finally:
    ray.shutdown()
    server.terminate()

scores = rewards.batch["rm_scores"].sum(dim=1)
errors = [one for one in rewards.non_tensor_batch["reward_error"] if one is not None]
print(f"{ROWS} rollouts, {int(scores.sum())} right, {len(errors)} without a score {errors[:3]}")
