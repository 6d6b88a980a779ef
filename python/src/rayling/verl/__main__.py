"""`python -m rayling.verl` prints the path for `reward.custom_reward_function.path`."""

from pathlib import Path

print(Path(__file__).with_name("reward_function.py"))
