"""Reward functions in TypeScript for verl.

    reward.custom_reward_function.path=$(python -m rayling.verl)
    +reward.custom_reward_function.reward_kwargs.options.reward=/abs/grade.ts

`path=pkg://rayling.verl` does the same. See `compute_score` for what may stand among `reward_kwargs`.
"""

from __future__ import annotations

import logging
import math
import os
import threading
from collections.abc import Mapping, Sequence
from typing import Any, Literal, cast

from rayling.errors import RaylingError
from rayling.plain import Plain
from rayling.score_host import Outcome, RewardLoopError, ScoreHost
from rayling.texts import well_formed
from rayling.verl.reward_kwargs import kwargs_in_sight

__all__ = ["RewardInvalidError", "RewardLoopError", "compute_score", "start"]

_logger = logging.getLogger(__name__)

Share = Literal["node", "process"]
#: What a sample without a score is: an error, verl's None, or that number.
Invalid = float | Literal["raise", "none"]


class RewardInvalidError(RaylingError):
    """A sample could not be scored, and `invalid` is `raise`."""

    def __init__(self, code: str, message: str) -> None:
        """Says why: `code` is a failure code of the reward loop, and `message` its words."""
        self.code = well_formed(code)
        self.message = well_formed(message)
        super().__init__(f"{self.code}: {self.message}")

    def __reduce__(self) -> tuple[type[RewardInvalidError], tuple[str, str]]:
        """Travels through Ray as it is."""
        return type(self), (self.code, self.message)


async def compute_score(
    data_source: str,
    solution_str: str,
    ground_truth: Any,
    extra_info: Mapping[str, Any] | None = None,
    *,
    options: Mapping[str, Any] | None = None,
    config: str | None = None,
    share: Share = "node",
    invalid: Invalid = "raise",
    columns: Sequence[str] | None = None,
    reward_router_address: str | None = None,
    reward_model_tokenizer: object = None,
) -> float | dict[str, Any]:
    """Scores one sample in a reward loop in Node. verl calls it; the first four arguments are verl's.

    Args:
        data_source: which data set the prompt is from.
        solution_str: the response.
        ground_truth: given to the TypeScript function as `groundTruth`.
        extra_info: given to it as `extraInfo`.
        options: options of the reward loop, by their names: `reward` (the module), `timeoutMs`,
            `limits`, `retry`, ...
        config: path of a YAML file with options of the loop; those of `options` win.
        share: `node`: all reward loop workers of a node have one loop together, so that its limits,
            its cache and what it spends are one. `process`: each has its own.
        invalid: what a sample without a score is. `raise`: an error, which ends the batch. A number:
            that score, with the reason in the column `reward_error`. `none`: no score (`None`), with
            the same column. Where the function returns a `reward_error` itself, it stays in the rows
            that have a score of the function's.
        columns: keys of the extra info that each row gets; by default those that earlier rows had.
        reward_router_address: verl's, where it has a reward model; given on as `rewardRouterAddress`.
        reward_model_tokenizer: verl's; it stays here, as it cannot be sent to Node.

    Returns:
        The score where that is all and `invalid` is `raise`; else a dictionary with it and the extra
        info.

    Raises:
        RewardInvalidError: the sample could not be scored, and `invalid` is `raise`.
        RewardLoopError: the loop cannot be opened.
        HostLostError: the Node process was lost, and another one that was started for it, too.
        RuntimeNotFoundError: Node or the JavaScript runtime is missing.
        RuntimeVersionError: the JavaScript runtime has another version than this package.
    """
    host = _hosts.get(options, config, share, invalid, columns, reward_router_address)
    info = {} if extra_info is None else extra_info
    outcome = await host.score(data_source, solution_str, ground_truth, info)
    if _raises(invalid):
        if outcome.code is not None:
            raise RewardInvalidError(outcome.code, outcome.message)
        return _as_returned(outcome)
    score = outcome.score if outcome.code is None else _value(invalid)
    row = outcome.info if outcome.info else {"acc": None}
    if "acc" in row and outcome.code is not None:
        row = {**row, "acc": score}
    # A key that the function returned itself stays what it said, where it has scored the sample.
    reason = row.get("reward_error") if outcome.code is None else outcome.code
    return {**row, "score": score, "reward_error": reason}


def start(
    *,
    options: Mapping[str, Any] | None = None,
    config: str | None = None,
    share: Share = "node",
    invalid: Invalid = "raise",
    columns: Sequence[str] | None = None,
    reward_router_address: str | None = None,
) -> None:
    """Starts the loop of these arguments of `compute_score`, so that the first sample finds it ready.

    verl's workers need no call: the module starts the loop when verl imports it.
    """
    _hosts.get(options, config, share, invalid, columns, reward_router_address)


def _as_returned(outcome: Outcome) -> float | dict[str, Any]:
    """Returns what the TypeScript function has: a number, or a record with `score`."""
    assert outcome.score is not None
    score = float(outcome.score)
    return score if outcome.info.keys() == {"acc"} else {**outcome.info, "score": score}


def _raises(invalid: Invalid) -> bool:
    # A number of numpy is equal to no text, and says so by a value that is none of Python's.
    return isinstance(invalid, str) and invalid == "raise"


def _value(invalid: Invalid) -> float | None:
    return None if isinstance(invalid, str) else float(invalid)


class _Hosts:
    """The loops of this process. verl calls with the same objects each time: the last ones are known by what they are."""

    def __init__(self) -> None:
        self._known: dict[str, ScoreHost] = {}
        self._last: tuple[tuple[Any, ...], ScoreHost] | None = None
        self.begin()

    def begin(self) -> None:
        """In the child of a fork nobody is left who would release the lock."""
        self._lock = threading.Lock()

    def get(self, *said: Any) -> ScoreHost:
        # Once: another thread may ask for another loop meanwhile.
        last = self._last
        if last is not None and all(map(_is, last[0], said)):
            return last[1]
        options, config, share, invalid, columns, address = said
        _check(options, config, share, invalid, columns)
        given = Plain().of(dict(options or {}), "options")
        if address is not None:
            given.setdefault("rewardRouterAddress", address)
        names = None if columns is None else [str(name) for name in columns]
        key = repr((given, config, share, _raises(invalid), names))
        with self._lock:
            host = self._known.get(key)
            if host is None:
                host = self._known[key] = ScoreHost(
                    given,
                    config=config,
                    share=share == "node",
                    columns=names,
                    raises=_raises(invalid),
                )
        self._last = (said, host)
        return host


def _is(one: object, other: object) -> bool:
    return one is other


def _check(
    options: object, config: object, share: object, invalid: object, columns: object
) -> None:
    if options is not None and not isinstance(options, Mapping):
        raise TypeError(f"options must be options by their names, not {options!r}")
    if config is not None and not isinstance(config, (str, os.PathLike)):
        raise TypeError(f"config must be the path of a YAML file, not {config!r}")
    if share not in ("node", "process"):
        raise ValueError(f"share must be node or process, not {share!r}")
    # A number of numpy becomes one of Python, which only some of them are.
    item = getattr(invalid, "item", None)
    number = item() if callable(item) else invalid
    is_number = isinstance(number, (int, float)) and not isinstance(number, bool)
    if not (is_number and math.isfinite(cast(float, number))) and number not in ("raise", "none"):
        raise ValueError(f"invalid must be raise, none or a finite number, not {invalid!r}")
    if columns is not None and (isinstance(columns, str) or not isinstance(columns, Sequence)):
        raise TypeError(f"columns must be a list of names, not {columns!r}")


_hosts = _Hosts()

os.register_at_fork(after_in_child=lambda: _hosts.begin())


def start_for_verl() -> None:
    """Starts the loop that the configuration on the stack asks for, where verl imports this module."""
    kwargs = kwargs_in_sight()
    if kwargs is None:
        return
    try:
        start(**kwargs)
    except Exception as error:
        # The first sample says it where it can be seen.
        _logger.warning("the reward loop could not be started ahead of the first batch: %s", error)


start_for_verl()
