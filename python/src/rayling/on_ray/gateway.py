"""What a TypeScript driver may ask of a Ray cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any

from rayling.errors import RaylingError
from rayling.on_ray.agents import Agents
from rayling.on_ray.cluster import Cluster, Node
from rayling.on_ray.foreign import Foreign
from rayling.on_ray.reservations import RefusedError, Reservations

__all__ = ["Gateway"]


class Gateway:
    """The reservations, agents and Python actors of one driver."""

    def __init__(self, tell: Callable[[Mapping[str, Any]], None]) -> None:
        """Has nothing yet.

        Args:
            tell: sends an event to the driver.
        """
        self._tell = tell
        self._living: set[str] = set()
        self._losing: set[asyncio.Task[None]] = set()
        self._cluster = Cluster(self._changed)
        self._agents = Agents(self._agent_gone)
        self._reservations = Reservations(self._cluster, self._group_placed)
        self._foreign = Foreign()
        self._ops: Mapping[str, Callable[[Mapping[str, Any]], Awaitable[Any]]] = {
            "reserve": self._reserve,
            "reserve_group": self._reserve_group,
            "release": self._release,
            "agent": self._agent,
            "agent_key": self._agent_key,
            "look": self._look,
            "ping": self._ping,
            "python_create": self._foreign.create,
            "python_make": self._foreign.make,
            "python_find": self._foreign.find,
            "python_list": self._foreign.list,
            "python_call": self._foreign.call,
            "python_cancel": self._foreign.cancel,
            "python_kill": self._foreign.kill,
        }

    async def open(self) -> None:
        """Looks at the cluster, which the driver is told of."""
        await self._cluster.look()

    def watching(self) -> list[Coroutine[Any, Any, None]]:
        """Returns what runs beside the requests; it ends only by an error."""
        return [self._cluster.watch(), self._reservations.watch()]

    async def do(self, op: str, given: Mapping[str, Any]) -> Any:
        """Does one request of the driver.

        Raises:
            RaylingError: there is no such operation, or it failed.
        """
        work = self._ops.get(op)
        if work is None:
            raise RaylingError(f"this gateway has no operation {op!r}")
        return await work(given)

    async def close(self) -> None:
        """Ends agents and reservations before Ray does, which takes it some seconds."""
        self._agents.end_all()
        await self._reservations.release_all()

    async def _reserve(self, given: Mapping[str, Any]) -> dict[str, Any]:
        try:
            node = await self._reservations.reserve(given["reservation"], given["demand"])
        except RefusedError as refused:
            return {"refused": str(refused)}
        gpus = await self._reservations.gpus(given["reservation"], given["demand"])
        return {"node": node, "gpus": gpus}

    async def _reserve_group(self, given: Mapping[str, Any]) -> None:
        await self._reservations.reserve_group(given["reservation"], given)

    async def _release(self, given: Mapping[str, Any]) -> None:
        await self._reservations.release(given["reservation"])

    async def _agent(self, given: Mapping[str, Any]) -> dict[str, Any]:
        return await self._agents.start(await self._node(given["node"]), given["options"])

    async def _agent_key(self, given: Mapping[str, Any]) -> dict[str, Any]:
        return await self._agents.key(await self._node(given["node"]))

    async def _node(self, node_id: str) -> Node:
        node = self._cluster.find(node_id)
        if node is None:
            # It may have joined since the last look.
            await self._cluster.look()
            node = self._cluster.find(node_id)
        if node is None:
            raise RaylingError(f"Ray has no living node {node_id}")
        return node

    async def _look(self, _: Mapping[str, Any]) -> None:
        # A change is told before the answer.
        await self._cluster.look()

    async def _ping(self, _: Mapping[str, Any]) -> None:
        # The driver asks whether this process runs.
        return None

    def _changed(self, nodes: list[Node]) -> None:
        self._tell({"event": "nodes", "nodes": [node.as_json() for node in nodes]})
        living = {node.id for node in nodes if node.is_alive}
        for gone in self._living - living:
            self._agents.end(gone)
            reasons = [node.death_reason for node in nodes if node.id == gone]
            reason = next(filter(None, reasons), "Ray reports that it is dead")
            self._tell({"event": "node-gone", "node": gone, "reason": reason})
            task = asyncio.create_task(self._reservations.lose_node(gone))
            self._losing.add(task)
            task.add_done_callback(self._losing.discard)
        self._living = living

    def _group_placed(self, group: str, nodes: list[str]) -> None:
        self._tell({"event": "group-placed", "group": group, "nodes": nodes})

    def _agent_gone(self, node: str, reason: str) -> None:
        self._tell({"event": "agent-gone", "node": node, "reason": reason})
