"""Who may import whom: design rules that a reader can rely on, checked on the source."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "degrade"

# Rooms of the house, by the longest matching prefix of a module's name, and the rooms that each may import (besides itself).
BASE = {"severity"}
OPERATOR_SIDE = {"operators", "kernels", "draws", "operator"}
ALLOWED = {
    "": {"functional", "operators", "severity", "transforms"},
    "severity": set(),
    "draws": set(),
    "record": BASE,
    "kernels": set(),
    "operator": {"draws", "kernels"},
    "operators": {"operator", "draws", "kernels"},
    "mixture": {"operators", "record", "draws"},
    "functional": {*OPERATOR_SIDE, *BASE, "record"},
    "transforms": {*OPERATOR_SIDE, *BASE, "record", "functional", "mixture"},
    "suites": set(),
    "data": {"suites"},
    "scoring": {"suites", "data"},
    "config": {"suites"},
    "progress": set(),
}
TOP = {*ALLOWED, "build", "builder", "preview", "engines"}
ALLOWED |= {room: TOP - {room} for room in ("build", "builder", "preview", "engines")}
ALLOWED["cli"] = TOP
ALLOWED["__main__"] = {"cli"}


def room_of(module: str) -> str:
    """``degrade.data.sources.tsv`` is in the room ``data``; ``degrade`` itself is ``""``."""
    return module.removeprefix("degrade").lstrip(".").split(".")[0]


def imports(source: str, module: str, is_package: bool) -> Iterator[str]:
    """The absolute names of all modules that ``source`` imports, wherever the import stands."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = module.split(".")
                parents = parents if is_package else parents[:-1]
                base = ".".join([*parents[: len(parents) - node.level + 1], *filter(None, [node.module])])
            yield from (f"{base}.{alias.name}" if base == "degrade" else base for alias in node.names)


def violations(source: str, module: str, is_package: bool = False) -> list[str]:
    room = room_of(module)
    found = []
    for name in imports(source, module, is_package):
        top = name.split(".")[0]
        if top == "hydra" and room != "cli":
            found.append(f"{module} imports {name}: only cli may")
        if top == "cv2":
            found.append(f"{module} imports {name}: OpenCV is the tests' oracle")
        if top != "degrade":
            continue
        target = room_of(name)
        if target.startswith("_") or target == room or target in ALLOWED.get(room, set()):
            continue
        found.append(f"{module} imports {name}")
    return found


def modules() -> list[tuple[Path, str, bool]]:
    result = []
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = ["degrade", *path.relative_to(PACKAGE).with_suffix("").parts]
        is_package = parts[-1] == "__init__"
        result.append((path, ".".join(parts[:-1] if is_package else parts), is_package))
    return result


@pytest.mark.parametrize(("path", "module", "is_package"), modules(), ids=lambda v: v if isinstance(v, str) else "")
def test_import_directions(path: Path, module: str, is_package: bool) -> None:
    assert not violations(path.read_text(encoding="utf-8"), module, is_package)


def test_every_room_has_a_rule() -> None:
    rooms = {room_of(module) for _, module, _ in modules()}
    assert rooms <= set(ALLOWED), f"no rule for {rooms - set(ALLOWED)}"


@pytest.mark.parametrize(
    ("source", "module"),
    [
        ("from degrade.operators import OPERATORS", "degrade.data.images"),
        ("import degrade.operator", "degrade.kernels.filter"),
        ("def f():\n    from degrade import cli", "degrade.build"),
        ("import hydra", "degrade.config"),
        ("from ..operators import capture", "degrade.kernels.filter"),
        ("from degrade import apply", "degrade.scoring.drops"),
        ("import cv2", "degrade.kernels.jpeg"),
    ],
)
def test_a_wrong_import_is_found(source: str, module: str) -> None:
    assert violations(source, module)
