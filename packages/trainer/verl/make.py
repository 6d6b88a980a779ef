"""engine-keys.json: the keys of verl's own configurations that mean nothing here, with verl's defaults, which references may name.

    python3 packages/trainer/verl/make.py FOLDER...    # folders with verl's _generated_*.yaml, the newest version first

Made of the versions of 2026-08 (0.9.1, from PyPI) and 2026-01 (b178a3cd5). What stands in presets/ppo_trainer.yaml is ours, and so are rewards.
"""

import json
import sys
from pathlib import Path

import yaml

here = Path(__file__).parent
rewards = {"reward", "reward_model", "reward_manager", "custom_reward_function", "sandbox_fusion", "rayling"}
ours = yaml.safe_load((here.parent / "presets/ppo_trainer.yaml").read_text())


def merged(older, newer):
    if not (isinstance(older, dict) and isinstance(newer, dict)):
        return newer
    return {key: merged(older[key], newer[key]) if key in older and key in newer else newer.get(key, older.get(key)) for key in {**older, **newer}}


def without(tree, known):
    """The keys that `known` lacks. A section that is left empty goes, one that was empty stays."""
    left = {}
    for key, value in tree.items():
        if key == "_target_":
            continue
        if isinstance(value, dict) and value:
            inside = without(value, known.get(key) or {}) if isinstance(known.get(key, {}), dict) else {}
            if inside:
                left[key] = inside
        elif key not in known:
            left[key] = None if value == "???" else value
    return left


files = [file for folder in sys.argv[1:] for file in sorted(Path(folder).glob("_generated_*.yaml"), key=lambda file: len(file.name))]
tree = {}
for file in reversed(files):
    tree = merged(tree, yaml.safe_load(file.read_text()))
tree = {key: value for key, value in tree.items() if key not in rewards}
# JSON, because each training reads it: YAML takes 50 ms.
(here / "engine-keys.json").write_text(json.dumps(without(tree, ours), sort_keys=True, indent=2, ensure_ascii=False) + "\n")
