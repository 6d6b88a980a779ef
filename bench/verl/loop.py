"""verl's side of the rewards benchmark: its own reward loop on Ray, one life after another, as it is told.

Of verl are the RewardLoopManager, its RewardLoopWorker actors, the reward manager, the loader of the score function and the
defaults (reward.yaml as installed). Of this file are the batch, a prompt and a response of one token each, a tokenizer of one
word, and the score function (judge.py).

Reads one JSON object per line from stdin, {"manager", "workers", "maxConcurrent", "steps": [[ms of each sample]]}, and answers
each with one line on stdout, {"ms": [of each step]} or {"error": text}. The first line it writes says which versions run and
verl's default of workers. It ends, and Ray with it, when stdin ends.
"""

import json
import os
import platform
import sys
import time

# Only answers may reach stdout: whatever Ray and verl print goes to stderr.
answers = os.fdopen(os.dup(1), "w", buffering=1)
os.dup2(2, 1)

FOLDER = sys.argv[1]
os.environ.update(HF_HOME=FOLDER, HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false")

import numpy as np  # noqa: E402
import ray  # noqa: E402
import torch  # noqa: E402
import verl  # noqa: E402
from omegaconf import OmegaConf  # noqa: E402
from tokenizers import Tokenizer, models  # noqa: E402
from transformers import PreTrainedTokenizerFast  # noqa: E402
from verl import DataProto  # noqa: E402
from verl.experimental.reward_loop import RewardLoopManager  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
DEFAULTS = os.path.join(os.path.dirname(verl.__file__), "trainer", "config", "reward", "reward.yaml")


def write_tokenizer():
    path = os.path.join(FOLDER, "tokenizer")
    words = Tokenizer(models.WordLevel({"<pad>": 0, "</s>": 1, "word": 2}, unk_token="<pad>"))
    PreTrainedTokenizerFast(tokenizer_object=words, pad_token="<pad>", eos_token="</s>").save_pretrained(path)
    return path


def config_of(order, tokenizer):
    reward = OmegaConf.load(DEFAULTS)
    reward.num_workers = order["workers"]
    reward.custom_reward_function.path = os.path.join(HERE, "judge.py")
    reward.reward_manager.name = order["manager"]
    if order.get("maxConcurrent") is not None:
        reward.max_concurrent = order["maxConcurrent"]
    model = {"path": tokenizer, "tokenizer_path": None}
    return OmegaConf.create({"reward": reward, "actor_rollout_ref": {"model": model}})


def batch_of(latencies):
    rows = len(latencies)
    word = torch.full((rows, 1), 2)
    return DataProto.from_dict(
        tensors={"prompts": word, "responses": word.clone(), "attention_mask": torch.ones((rows, 2), dtype=torch.int64)},
        non_tensors={
            "data_source": np.array(["bench"] * rows, dtype=object),
            "reward_model": np.array([{"ground_truth": ms} for ms in latencies], dtype=object),
            "extra_info": np.array([{} for _ in latencies], dtype=object),
        },
    )


def live(order, tokenizer):
    """A reward loop from its start to its end; its start is not timed, and over when every worker answers."""
    manager = RewardLoopManager(config_of(order, tokenizer))
    try:
        ray.get([worker.__ray_ready__.remote() for worker in manager.reward_loop_workers])
        return [step(manager, latencies) for latencies in order["steps"]]
    finally:
        for worker in manager.reward_loop_workers:
            ray.kill(worker)


def step(manager, latencies):
    batch = batch_of(latencies)
    start = time.perf_counter()
    scores = manager.compute_rm_score(batch).batch["rm_scores"]
    took = (time.perf_counter() - start) * 1000
    if not torch.allclose(scores[:, 0], torch.tensor(latencies, dtype=torch.float32) + 1):
        raise ValueError("a score arrived wrong")
    return took


def answer(value):
    answers.write(json.dumps(value) + "\n")


def main():
    # A cluster of its own, never one that is there already.
    ray.init(
        address="local", include_dashboard=False, log_to_driver=False, logging_level="ERROR", _temp_dir=FOLDER
    )
    try:
        tokenizer = write_tokenizer()
        versions = {
            "verl": verl.__version__,
            "ray": ray.__version__,
            "torch": torch.__version__,
            "python": platform.python_version(),
        }
        answer({"versions": versions, "workers": OmegaConf.load(DEFAULTS).num_workers})
        for line in sys.stdin:
            try:
                answer({"ms": live(json.loads(line), tokenizer)})
            except Exception as error:  # The other side decides what it means.
                answer({"error": f"{type(error).__name__}: {error}"})
    finally:
        ray.shutdown()


if __name__ == "__main__":
    main()
