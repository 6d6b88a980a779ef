"""Reservations of resources: each is a placement group of one bundle, which belongs to this job.

Ray decides where it is, shows it in `ray status` while it waits, and its autoscaler starts nodes for
it. Waiting groups are polled together: no thread waits for one.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import ray
from ray.util.placement_group import (
    PlacementGroup,
    placement_group,
    placement_group_table,
    remove_placement_group,
)
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from rayling.on_ray.cluster import Cluster, Node, meets, selector

__all__ = ["RefusedError", "Reservations"]

#: A group of this age, in seconds, is asked for at the interval beside it.
_INTERVALS = ((0.1, 0.003), (1.0, 0.02), (float("inf"), 0.2))

#: From this many groups on, the whole table costs less than each of them.
_MANY = 48

_NODE_LABEL = "ray.io/node-id"


class RefusedError(Exception):
    """Ray could never reserve it."""


@dataclass
class _Group:
    """One group, from the request to its end."""

    placed: asyncio.Future[str | None]
    group: PlacementGroup | None = None
    #: The node of each bundle; None while it waits.
    nodes: list[str] | None = None
    #: Whether the driver made it as a group, which Ray places again when it loses a node.
    is_users: bool = False
    asked_at: float = field(default_factory=time.monotonic)


@dataclass(frozen=True)
class _Place:
    """Where a group may be."""

    labels: Mapping[str, str] = field(default_factory=dict)
    #: The node that Ray should take if it has room.
    preferred: str | None = None


class Reservations:
    """All reservations of the driver, by the driver's names for them."""

    def __init__(self, cluster: Cluster, on_placed: Callable[[str, list[str]], None]) -> None:
        """Holds nothing yet.

        Args:
            cluster: where to reserve.
            on_placed: gets the name of a group of the driver, and the node of each bundle.
        """
        self._cluster = cluster
        self._on_placed = on_placed
        self._groups: dict[str, _Group] = {}
        self._has_waiting = asyncio.Event()
        self._last_spread = ""

    async def reserve(self, name: str, demand: Mapping[str, Any]) -> str | None:
        """Reserves what the demand holds.

        Returns:
            The id of the node, when Ray has room; None when it was released before that.

        Raises:
            RefusedError: it could never be reserved.
        """
        amounts = {key: amount for key, amount in demand["hold"].items() if amount > 0}
        made = _Group(asyncio.get_running_loop().create_future())
        self._groups[name] = made
        try:
            if not amounts:
                return await self._pick(name, demand)
            place = self._place(demand, amounts)
        except BaseException:
            self._groups.pop(name, None)
            raise
        await self._make(name, made, lambda: _create(amounts, place))
        return await made.placed

    async def gpus(self, name: str, demand: Mapping[str, Any]) -> str | None:
        """Returns the GPUs of a reservation as CUDA_VISIBLE_DEVICES names them.

        Ray says it to a task that runs on them, and the reservation keeps them.
        """
        amount = demand["hold"].get("GPU", 0)
        made = self._groups.get(name)
        if amount == 0 or made is None or made.group is None:
            return None
        there = PlacementGroupSchedulingStrategy(made.group, placement_group_bundle_index=0)
        asked = ray.remote(num_cpus=0, num_gpus=amount, scheduling_strategy=there)(_visible_gpus)
        return str(await asked.remote())

    async def reserve_group(self, name: str, given: Mapping[str, Any]) -> None:
        """Reserves a placement group of the driver, bundle for bundle."""
        made = _Group(asyncio.get_running_loop().create_future(), is_users=True)
        self._groups[name] = made
        nodes = self._cluster.living()
        labels = [selector(conditions, nodes) for conditions in given["selectors"]]
        await self._make(
            name,
            made,
            lambda: placement_group(
                given["bundles"],
                strategy=given["strategy"],
                bundle_label_selector=labels if any(labels) else None,
            ),
        )

    async def _make(self, name: str, made: _Group, make: Callable[[], PlacementGroup]) -> None:
        try:
            made.group = await asyncio.to_thread(make)
        except BaseException:
            self._groups.pop(name, None)
            raise
        if self._groups.get(name) is made:
            self._has_waiting.set()
        else:
            # Released meanwhile.
            await asyncio.to_thread(remove_placement_group, made.group)

    async def release(self, name: str) -> None:
        """Gives a reservation back, whether or not it was made. Idempotent."""
        made = self._groups.pop(name, None)
        if made is None:
            return
        if not made.placed.done():
            made.placed.set_result(None)
        if made.group is not None:
            await asyncio.to_thread(remove_placement_group, made.group)

    async def lose_node(self, node_id: str) -> None:
        """Removes what was reserved on a node that is gone: Ray would reserve it elsewhere."""
        lost = [name for name, made in self._groups.items() if node_id in (made.nodes or [])]
        for name in lost:
            made = self._groups[name]
            if made.is_users:
                made.nodes = None
                made.asked_at = time.monotonic()
                self._has_waiting.set()
        single = [name for name in lost if not self._groups[name].is_users]
        await asyncio.gather(*(self.release(name) for name in single))

    async def release_all(self) -> None:
        """Gives everything back."""
        await asyncio.gather(*(self.release(name) for name in list(self._groups)))

    async def watch(self) -> None:
        """Settles reservations as Ray places them."""
        while True:
            await self._has_waiting.wait()
            waiting = {
                name: made
                for name, made in self._groups.items()
                if made.group is not None and made.nodes is None
            }
            if not waiting:
                self._has_waiting.clear()
                continue
            found = await asyncio.to_thread(_nodes_of, [made.group for made in waiting.values()])
            for (name, made), nodes in zip(waiting.items(), found, strict=True):
                if nodes is not None and self._groups.get(name) is made:
                    self._settle(name, made, nodes)
            youngest = time.monotonic() - max(made.asked_at for made in waiting.values())
            await asyncio.sleep(next(pause for age, pause in _INTERVALS if youngest < age))

    def _settle(self, name: str, made: _Group, nodes: list[str]) -> None:
        if made.is_users:
            # Ray may not know yet that a node is gone.
            if any(self._cluster.is_dead(node) for node in nodes):
                return
            made.nodes = nodes
            self._on_placed(name, nodes)
        elif not made.placed.done():
            made.nodes = nodes
            made.placed.set_result(nodes[0])

    async def _pick(self, name: str, demand: Mapping[str, Any]) -> str | None:
        """Chooses a node for what holds nothing, one after the other."""
        while name in self._groups:
            place = self._place({**demand, "strategy": _spread(demand["strategy"])}, {})
            allowed = [node.id for node in self._allowed(demand, {})]
            chosen = place.preferred or next(iter(allowed), None)
            if chosen is not None:
                self._groups.pop(name)
                return chosen
            await asyncio.sleep(_INTERVALS[-1][1])
            await self._cluster.look()
        return None

    def _place(self, demand: Mapping[str, Any], amounts: Mapping[str, float]) -> _Place:
        nodes = self._cluster.living()
        strategy = demand["strategy"]
        if strategy["kind"] == "NODE_AFFINITY":
            node = self._cluster.find(strategy["nodeId"])
            if node is not None and node.holds(amounts):
                return _Place({_NODE_LABEL: node.id}, node.id)
            if not strategy["soft"]:
                raise RefusedError(_why_refused(strategy["nodeId"], node, amounts))
        conditions = self._conditions(demand, amounts)
        labels = selector(conditions, nodes)
        allowed = [node for node in nodes if meets(node, conditions)]
        if strategy["kind"] == "NODE_LABEL":
            liked = [node for node in allowed if meets(node, strategy["soft"])]
            fit = next((node for node in liked if node.has_room(amounts)), None)
            return _Place(labels, fit.id if fit is not None else None)
        if strategy["kind"] == "SPREAD":
            return _Place(labels, self._next(allowed, amounts))
        return _Place(labels)

    def _conditions(
        self, demand: Mapping[str, Any], amounts: Mapping[str, float]
    ) -> Mapping[str, Mapping[str, Any]]:
        """Returns the first alternative that a node meets, else the first of all."""
        if demand["strategy"]["kind"] == "NODE_LABEL":
            hard: Mapping[str, Mapping[str, Any]] = demand["strategy"]["hard"]
            return hard
        selectors: Sequence[Mapping[str, Mapping[str, Any]]] = demand["selectors"] or [{}]
        for conditions in selectors:
            for node in self._cluster.living():
                if meets(node, conditions) and node.holds(amounts):
                    return conditions
        return selectors[0]

    def _allowed(self, demand: Mapping[str, Any], amounts: Mapping[str, float]) -> list[Node]:
        strategy = demand["strategy"]
        if strategy["kind"] == "NODE_AFFINITY" and not strategy["soft"]:
            node = self._cluster.find(strategy["nodeId"])
            return [] if node is None else [node]
        conditions = self._conditions(demand, amounts)
        return [node for node in self._cluster.living() if meets(node, conditions)]

    def _next(self, nodes: Sequence[Node], amounts: Mapping[str, float]) -> str | None:
        """Returns the node with room that follows the last one."""
        ids = [node.id for node in nodes]
        first = ids.index(self._last_spread) + 1 if self._last_spread in ids else 0
        for node in [*nodes[first:], *nodes[:first]]:
            if node.has_room(amounts):
                self._last_spread = node.id
                return node.id
        return None


def _visible_gpus() -> str:
    return ",".join(str(gpu) for gpu in ray.get_gpu_ids())


def _spread(strategy: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"kind": "SPREAD"} if strategy["kind"] == "DEFAULT" else strategy


def _why_refused(node_id: str, node: Node | None, amounts: Mapping[str, float]) -> str:
    if node is None:
        return f"node {node_id}, which it must run on, is gone or never existed"
    lacks = ", ".join(
        f"{amount:g} {name} of {node.resources.get(name, 0):g}"
        for name, amount in amounts.items()
        if node.resources.get(name, 0) < amount
    )
    return f"node {node_id}, which it must run on, does not have the resources for it ({lacks})"


def _create(amounts: Mapping[str, float], place: _Place) -> PlacementGroup:
    labels = [dict(place.labels)] if place.labels else None
    if place.preferred is None:
        return placement_group([dict(amounts)], bundle_label_selector=labels)
    return placement_group(
        [dict(amounts)],
        strategy="STRICT_PACK",
        bundle_label_selector=labels,
        _soft_target_node_id=place.preferred,
    )


def _nodes_of(groups: Sequence[PlacementGroup | None]) -> list[list[str] | None]:
    """Returns the nodes of each group, bundle by bundle; None while it waits."""
    if len(groups) >= _MANY:
        table = placement_group_table()
        return [_nodes_in(table.get(group.id.hex(), {})) if group else None for group in groups]
    return [_nodes_in(placement_group_table(group)) if group else None for group in groups]


def _nodes_in(row: Mapping[str, Any]) -> list[str] | None:
    if row.get("state") != "CREATED":
        return None
    nodes: Mapping[int, str] = row["bundles_to_node_id"]
    return [nodes[index] for index in sorted(nodes)]
