"""Agents of the JavaScript runtime on the nodes of Ray: each is the child process of an actor."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from rayling.actors.child import Child
from rayling.errors import RaylingError
from rayling.on_ray.cluster import Node

__all__ = ["Agents"]


#: Seconds between two looks at the raylet.
_WATCH_SECONDS = 0.5


class Agent:
    """The agent of one node. It ends with this actor, and this actor ends with it."""

    def __init__(self) -> None:
        """Starts the process of the agent, which waits for its order."""
        self._child = Child("python/agent-main", is_captured=False)
        self._answers = self._child.socket.makefile("r", encoding="utf-8")

    def key(self) -> dict[str, Any]:
        """Returns the public half of the machine's key, for a certificate.

        Raises:
            RaylingError: the agent has ended.
        """
        return self._ask("key")

    def open(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Lets the agent listen.

        Args:
            options: of `startAgent` in TypeScript, and the certificate of the machine.

        Returns:
            Its address for drivers.

        Raises:
            RaylingError: it does not start.
        """
        started = self._ask(options)
        for watch in (self._watch, _watch_raylet):
            threading.Thread(target=watch, name="rayling-watch", daemon=True).start()
        return started

    def _ask(self, order: Any) -> dict[str, Any]:
        try:
            self._child.socket.sendall(f"{json.dumps(order)}\n".encode())
            said = self._answers.readline()
        except (BrokenPipeError, ConnectionResetError):
            said = ""
        if said == "":
            code = self._child.wait()
            raise RaylingError(
                f"the agent ended with code {code} as it started; Ray's logs of its worker on that "
                "node say why (`ray logs`, or the job's log in the dashboard)"
            )
        answer: dict[str, Any] = json.loads(said)
        if "error" in answer:
            raise RaylingError(answer["error"])
        return answer

    def wait(self) -> None:
        """Never returns: the call fails when this actor ends."""
        threading.Event().wait()

    def _watch(self) -> None:
        self._child.wait()
        os._exit(1)


def _watch_raylet() -> None:
    """Ends this process with the raylet that started it.

    Ray lets a worker live on whose raylet was killed, as long as a call is under way.
    """
    raylet = os.getppid()
    while os.getppid() == raylet:
        time.sleep(_WATCH_SECONDS)
    os._exit(1)


class Agents:
    """The agents of the driver, by the node that they are on."""

    def __init__(self, on_gone: Callable[[str, str], None]) -> None:
        """Has no agents yet.

        Args:
            on_gone: gets the node of an agent that has ended, and why.
        """
        self._on_gone = on_gone
        self._actors: dict[str, Any] = {}
        # Two calls at a time: one of them waits for the end.
        self._class = ray.remote(num_cpus=0, max_restarts=0, max_concurrency=2)(Agent)

    async def key(self, node: Node) -> dict[str, Any]:
        """Starts the process of an agent on a node, in place of an earlier one.

        Returns:
            The public half of its key.

        Raises:
            RaylingError: it does not start.
        """
        actor = self._make(node)
        return await self._asked(node, actor, actor.key.remote())

    async def start(self, node: Node, options: Mapping[str, Any]) -> dict[str, Any]:
        """Starts an agent on a node, in place of an earlier one: that which has given its key.

        Returns:
            Its address for the driver.

        Raises:
            RaylingError: it does not start.
        """
        is_known = "certified" in options and node.id in self._actors
        actor = self._actors[node.id] if is_known else self._make(node)
        order = {**_offer(node), **options}
        started = await self._asked(node, actor, actor.open.remote(order))
        self._watch(node.id, actor, actor.wait.remote().future())
        return started

    def _make(self, node: Node) -> Any:
        self.end(node.id)
        there = NodeAffinitySchedulingStrategy(node.id, soft=False)
        actor = self._class.options(scheduling_strategy=there).remote()
        self._actors[node.id] = actor
        return actor

    async def _asked(self, node: Node, actor: Any, asked: Any) -> dict[str, Any]:
        try:
            answer: dict[str, Any] = await asked
        except ray.exceptions.RayError as error:
            if self._actors.get(node.id) is actor:
                self.end(node.id)
            raise RaylingError(f"no agent starts on node {node.name}: {_reason(error)}") from error
        return answer

    def end(self, node_id: str) -> None:
        """Ends the agent of a node. Idempotent."""
        actor = self._actors.pop(node_id, None)
        if actor is not None:
            ray.kill(actor)

    def end_all(self) -> None:
        """Ends all agents."""
        for node_id in list(self._actors):
            self.end(node_id)

    def _watch(self, node_id: str, actor: Any, ended: Any) -> None:
        loop = asyncio.get_running_loop()

        def over() -> None:
            if self._actors.get(node_id) is not actor:
                return
            self._actors.pop(node_id)
            self._on_gone(node_id, f"has ended, because {_reason(ended.exception())}")

        def tell(_: object) -> None:
            # The gateway ends its agents last, and does not wait for them.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(over)

        ended.add_done_callback(tell)


def _offer(node: Node) -> dict[str, Any]:
    own = {
        name: amount
        for name, amount in node.resources.items()
        if name not in ("CPU", "object_store_memory") and not name.startswith("node:")
    }
    return {
        "nodeName": node.name,
        "numCpus": node.resources.get("CPU", 0),
        "resources": own,
        "labels": dict(node.labels),
    }


def _reason(error: BaseException | None) -> str:
    """Returns the line of an error that says why, without the traceback of Ray's own frames."""
    cause = getattr(error, "cause", None) or error
    text = str(cause).strip()
    if isinstance(cause, ray.exceptions.RayActorError) and "creation task" not in text:
        return "its process was ended"
    return text.splitlines()[-1] if text else type(cause).__name__
