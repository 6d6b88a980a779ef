# python examples/python/trl_reward/main.py
"""A reward function in TypeScript for TRL: `rayling serve`, and the client of one file.

TRL is not needed to run this: the reward function is called the way `GRPOTrainer` calls it.
"""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rayling_client import reward_function

REWARD = Path(__file__).with_name("reward.ts")


@contextmanager
def served(reward: Path) -> Iterator[str]:
    """Serves a reward function on this machine, and yields the URL."""
    command = [sys.executable, "-m", "rayling", "serve", "--reward", str(reward)]
    with subprocess.Popen(
        [*command, "--listen", "127.0.0.1:0", "--no-request-log"], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().split()[-1]
        finally:
            process.terminate()


def main() -> None:
    """Scores one batch of completions."""
    with served(REWARD) as url:
        reward = reward_function(url, name="answer")
        # trainer = GRPOTrainer(model=..., train_dataset=..., reward_funcs=[reward])
        scores = reward(
            prompts=["What is 6 times 7?"] * 3 + ["What is 1 divided by 0?"],
            completions=["6 * 7 = 42\n#### 42", "#### 43", "I do not know.", "#### 1"],
            completion_ids=[[1], [2], [3], [4]],
            answer=["42", "42", "42", "undefined"],
            trainer_state=None,
        )
        print(reward.__name__, scores)


if __name__ == "__main__":
    main()
