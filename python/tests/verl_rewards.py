"""verl's own RewardLoopManager, over batches that are made here: no model, no GPU, no download."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
GRADERS = Path(__file__).resolve().parent / "graders"

os.environ.update(
    HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false", RAY_raylet_start_wait_time_s="150"
)

import numpy as np  # noqa: E402
import ray  # noqa: E402
import torch  # noqa: E402
import verl  # noqa: E402
from omegaconf import OmegaConf  # noqa: E402
from processes import wait_for  # noqa: E402
from tokenizers import Tokenizer, models, pre_tokenizers  # noqa: E402
from transformers import PreTrainedTokenizerFast  # noqa: E402
from verl import DataProto  # noqa: E402
from verl.experimental.reward_loop import RewardLoopManager  # noqa: E402

#: How many words a response has at most.
WIDTH = 8
WORDS = 50


@contextlib.contextmanager
def ray_session() -> Iterator[str]:
    """A local Ray, whose workers find the packages of this process. Gives the tokenizer's folder."""
    with tempfile.TemporaryDirectory() as folder:
        words = {"<pad>": 0, "</s>": 1, **{f"w{n}": n + 2 for n in range(WORDS)}}
        tokenizer = Tokenizer(models.WordLevel(words, unk_token="<pad>"))
        tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
        PreTrainedTokenizerFast(
            tokenizer_object=tokenizer, pad_token="<pad>", eos_token="</s>"
        ).save_pretrained(folder)
        path = os.pathsep.join([str(ROOT / "python/src"), *sys.path])
        ray.init(
            num_cpus=4,
            include_dashboard=False,
            logging_level="error",
            runtime_env={"env_vars": {"PYTHONPATH": path}},
        )
        try:
            yield folder
        finally:
            ray.shutdown()


def config(tokenizer: str, path: str, kwargs: dict[str, Any], **more: Any) -> Any:
    """verl's configuration of rewards. `more`: manager, workers, reward_kwargs."""
    defaults = Path(verl.__file__).parent / "trainer/config/reward/reward.yaml"
    reward = OmegaConf.load(defaults)
    reward.num_workers = more.get("workers", 2)
    reward.reward_manager.name = more.get("manager", "naive")
    reward.custom_reward_function.path = path
    reward.custom_reward_function.reward_kwargs = kwargs
    if "reward_kwargs" in more:
        reward.reward_kwargs = more["reward_kwargs"]
    model = {"path": tokenizer, "tokenizer_path": None}
    return OmegaConf.create({"reward": reward, "actor_rollout_ref": {"model": model}})


def batch(extra_infos: list[dict[str, Any]], seed: int = 0) -> DataProto:
    """Rows of random words, each with its extra info."""
    rows = len(extra_infos)
    made = torch.Generator().manual_seed(seed)
    responses = torch.randint(2, WORDS + 2, (rows, WIDTH), generator=made)
    lengths = torch.randint(1, WIDTH + 1, (rows, 1), generator=made)
    mask = (torch.arange(WIDTH)[None, :] < lengths).long()
    prompts = torch.full((rows, 1), 2)
    truths = [{"ground_truth": n % 10} for n in range(rows)]
    return DataProto.from_dict(
        tensors={
            "prompts": prompts,
            "responses": responses * mask,
            "attention_mask": torch.cat([torch.ones((rows, 1), dtype=torch.int64), mask], dim=1),
        },
        non_tensors={
            "data_source": np.array(["words"] * rows, dtype=object),
            "reward_model": np.array(truths, dtype=object),
            "extra_info": np.array(extra_infos, dtype=object),
        },
    )


@contextlib.contextmanager
def manager(settings: Any) -> Iterator[RewardLoopManager]:
    """A manager whose workers are ready; they are killed at the end, as verl never ends them."""
    made = RewardLoopManager(settings)
    try:
        ray.get([one.__ray_ready__.remote() for one in made.reward_loop_workers])
        yield made
    finally:
        for one in made.reward_loop_workers:
            ray.kill(one)
        wait_for(lambda: not _are_named(len(made.reward_loop_workers)))


def _are_named(count: int) -> bool:
    names = {f"reward_loop_worker_{n}" for n in range(count)}
    return not names.isdisjoint(ray.util.list_named_actors())


def hosts() -> list[int]:
    """Processes that run the score host of this checkout."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            line = (entry / "cmdline").read_bytes().decode().split("\0")
            if any(map(_is_score_host, line)) and "/bin/sh" not in line[0]:
                found.append(int(entry.name))
    return found


def _is_score_host(word: str) -> bool:
    return word.startswith(str(ROOT)) and "python/score-host." in word
