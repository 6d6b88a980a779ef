"""The nodes of the Ray cluster, as the driver sees them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import ray

from rayling.errors import RaylingError

__all__ = ["Cluster", "Node", "meets"]

#: Seconds between two looks at the cluster.
_LOOK_SECONDS = 0.5

#: Seconds that Ray has to answer; by itself it may wait for ever.
_RAY_SECONDS = 120.0

#: Names that a placement group adds to the resources of its node.
_OF_GROUP = re.compile(r"_group_(\d+_)?[0-9a-f]{32,}$")

Conditions = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Node:
    """One node of Ray, living or dead."""

    id: str
    is_alive: bool
    name: str
    hostname: str
    address: str
    resources: Mapping[str, float]
    available: Mapping[str, float]
    labels: Mapping[str, str]
    death_reason: str

    def holds(self, amounts: Mapping[str, float]) -> bool:
        """Whether the node has as much when nobody uses it."""
        return all(self.resources.get(name, 0) >= amount for name, amount in amounts.items())

    def has_room(self, amounts: Mapping[str, float]) -> bool:
        """Whether as much is free, as Ray reported last."""
        return all(self.available.get(name, 0) >= amount for name, amount in amounts.items())

    def as_json(self) -> dict[str, Any]:
        """The node as the driver gets it."""
        return {
            "id": self.id,
            "alive": self.is_alive,
            "name": self.name,
            "hostname": self.hostname,
            "address": self.address,
            "resources": dict(self.resources),
            "available": dict(self.available),
            "labels": dict(self.labels),
            "deathReason": self.death_reason,
        }


class Cluster:
    """The nodes, looked at twice a second and when somebody asks."""

    def __init__(self, on_change: Callable[[list[Node]], None]) -> None:
        """Knows no nodes yet.

        Args:
            on_change: gets all nodes after each look that found a difference.
        """
        self.nodes: list[Node] = []
        self._on_change = on_change
        self._looking: asyncio.Task[None] | None = None

    def living(self) -> list[Node]:
        """Returns the living nodes, in the order of Ray."""
        return [node for node in self.nodes if node.is_alive]

    def find(self, node_id: str) -> Node | None:
        """Returns a living node."""
        return next((node for node in self.living() if node.id == node_id), None)

    def is_dead(self, node_id: str) -> bool:
        """Whether that node was there and is gone."""
        return any(node.id == node_id and not node.is_alive for node in self.nodes)

    async def look(self) -> None:
        """Asks Ray. Callers at the same time share one question that begins after them."""
        running = self._looking
        if running is not None and not running.done():
            await asyncio.wait([running])
        if self._looking is running:
            self._looking = asyncio.create_task(self._look())
        if self._looking is not None:
            await asyncio.shield(self._looking)

    async def watch(self) -> None:
        """Looks again and again."""
        while True:
            await self.look()
            await asyncio.sleep(_LOOK_SECONDS)

    async def _look(self) -> None:
        try:
            found = await asyncio.wait_for(asyncio.to_thread(_nodes), _RAY_SECONDS)
        except asyncio.TimeoutError:
            message = f"Ray has not said within {_RAY_SECONDS:g} s which nodes it has"
            raise RaylingError(message) from None
        if found != self.nodes:
            self.nodes = found
            self._on_change(found)


def _nodes() -> list[Node]:
    from ray._private import state

    available = state.available_resources_per_node()
    return [
        Node(
            id=node["NodeID"],
            is_alive=node["Alive"],
            name=node.get("NodeName") or node["NodeID"],
            hostname=node["NodeManagerHostname"],
            address=node["NodeManagerAddress"],
            resources=_own(node["Resources"]),
            available=_own(available.get(node["NodeID"], {})),
            labels=node.get("Labels") or {},
            death_reason=node.get("DeathReasonMessage") or "",
        )
        for node in ray.nodes()
    ]


def _own(amounts: Mapping[str, float]) -> dict[str, float]:
    return {name: amount for name, amount in amounts.items() if not _OF_GROUP.search(name)}


def meets(node: Node, conditions: Conditions) -> bool:
    """Whether the labels of the node meet all conditions."""
    return all(_holds(node.labels.get(name), one) for name, one in conditions.items())


def _holds(label: str | None, condition: Mapping[str, Any]) -> bool:
    if "in" in condition:
        return label in condition["in"]
    if "notIn" in condition:
        return label not in condition["notIn"]
    return (label is not None) == ("exists" in condition)


def selector(conditions: Conditions, nodes: Iterable[Node]) -> dict[str, str]:
    """Returns Ray's label selector for the conditions.

    Ray has no selector for a label that only exists, or does not: these name the nodes.
    """
    found: dict[str, str] = {}
    is_named = False
    for name, condition in conditions.items():
        if "in" in condition:
            found[name] = _any_of(condition["in"])
        elif "notIn" in condition:
            found[name] = f"!{_any_of(condition['notIn'])}"
        else:
            is_named = True
    if is_named:
        found["ray.io/node-id"] = _any_of([n.id for n in nodes if meets(n, conditions)] or ["none"])
    return found


def _any_of(values: list[str]) -> str:
    return values[0] if len(values) == 1 else f"in({','.join(values)})"
