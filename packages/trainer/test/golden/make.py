"""What real Hydra makes of verl's own command lines, key by key: verl-compositions.json, beside this file.

    python3 -m venv /tmp/hydra && /tmp/hydra/bin/pip install hydra-core==1.3.2
    /tmp/hydra/bin/python packages/trainer/test/golden/make.py COMMAND_LINES 2026-01=CHECKOUT 2026-08=CHECKOUT

COMMAND_LINES is the folder with 2026-01.jsonl and 2026-08.jsonl; CHECKOUT a checkout of verl of that month (b178a3cd5, 1dda039b9). Only keys that presets/ppo_trainer.yaml has are kept, and of a command line
only those that are other than in its file.
"""

import json
import os
import sys
import warnings
from pathlib import Path

import yaml
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

warnings.filterwarnings("ignore")
here = Path(__file__).parent
ours = yaml.safe_load((here.parents[1] / "presets/ppo_trainer.yaml").read_text())
nothing = object()


def keys(tree, prefix=""):
    for key, value in tree.items():
        if isinstance(value, dict) and value:
            yield from keys(value, f"{prefix}{key}.")
        else:
            yield prefix + key


known = [key for key in keys(ours) if not key.startswith(("rayling.", "reward."))]


def values(config):
    found = {}
    for key in known:
        try:
            value = OmegaConf.select(config, key, default=nothing)
        except Exception:
            continue
        if value is nothing:
            continue
        found[key] = OmegaConf.to_container(value, resolve=True) if OmegaConf.is_config(value) else value
    return found


def composed(checkout, name, overrides):
    bare = name.removesuffix(".yaml")
    [file, *_] = sorted(checkout.rglob(f"{bare}.yaml"), key=lambda path: (path.parent != checkout / "verl/trainer/config", str(path)))
    os.chdir(checkout)
    with initialize_config_dir(str(file.parent), version_base=None):
        return values(compose(bare, overrides))


lines, *checkouts = sys.argv[1:]
golden = {"made": "by make.py, of hydra-core 1.3.2", "versions": {}}
for pair in checkouts:
    version, checkout = pair.split("=")
    checkout = Path(checkout)
    defaults = composed(checkout, "ppo_trainer", [])
    cases = {}
    for row in map(json.loads, Path(lines, f"{version}.jsonl").read_text().splitlines()):
        try:
            found = composed(checkout, row["configName"], row["overrides"])
            file = composed(checkout, row["configName"], [])
            cases[row["script"]] = {key: value for key, value in found.items() if file.get(key, nothing) != value}
        except Exception as error:
            cases[row["script"]] = {"refused": str(error).strip().splitlines()[0][:120]}
    golden["versions"][version] = {"defaults": defaults, "cases": cases}
    print(version, len(cases), "refused", [case["refused"] for case in cases.values() if "refused" in case])
(here / "verl-compositions.json").write_text(json.dumps(golden, indent=0) + "\n")
