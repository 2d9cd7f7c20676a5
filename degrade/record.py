"""What was done to one image, as plain data that survives JSON."""

from __future__ import annotations

import dataclasses
import difflib
import math
import types
import typing
from collections.abc import Mapping
from typing import Any, TypeVar

from degrade.severity import intensity_of

Record = dict[str, Any]  # {"operator": str, "intensity": float, "params": dict}
T = TypeVar("T")


def to_plain(value: object) -> Any:
    """Dataclasses as dicts and tuples as lists, recursively: what JSON can hold."""
    if isinstance(value, int | float):  # most of all there is
        return value
    if isinstance(value, tuple | list):
        return [to_plain(item) for item in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: to_plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    return value


def from_plain(kind: Any, value: object, where: str) -> Any:
    """The inverse of ``to_plain``: ``value`` as the type ``kind`` of a parameter.

    Raises:
        ValueError: names the place, what came and what is wanted.
    """
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        return _dataclass_from(kind, value, where)
    if origin in (types.UnionType, typing.Union):  # an optional part: None or the other kind
        if value is None:
            return None
        return from_plain(next(a for a in args if a is not type(None)), value, where)
    if origin is tuple:
        if not isinstance(value, list | tuple):
            raise ValueError(f"{where}: got {value!r}, want a list")
        if args[-1] is Ellipsis:
            return tuple(from_plain(args[0], item, f"{where}[{n}]") for n, item in enumerate(value))
        if len(value) != len(args):
            raise ValueError(f"{where}: got {len(value)} numbers ({value!r}), want {len(args)}")
        return tuple(from_plain(a, item, f"{where}[{n}]") for n, (a, item) in enumerate(zip(args, value, strict=True)))
    wanted: tuple[type, ...] = (int, float) if kind is float else (kind,)
    if not isinstance(value, wanted) or isinstance(value, bool):
        raise ValueError(f"{where}: got {value!r}, want {kind.__name__}")
    if kind is float and not math.isfinite(value):  # type: ignore[arg-type]  # a number, by the line above
        raise ValueError(f"{where}: got {value!r}, want a finite number")
    return float(value) if kind is float else value  # type: ignore[arg-type]  # checked two lines above


def _dataclass_from(kind: type[T], value: object, where: str) -> T:
    if not isinstance(value, Mapping):
        raise ValueError(f"{where}: got {value!r}, want a mapping")
    hints = typing.get_type_hints(kind)
    names = [field.name for field in dataclasses.fields(kind)]  # type: ignore[arg-type]  # a dataclass: its only caller has checked
    if unknown := sorted(set(value) - set(names)):
        raise ValueError(f"{where}: got {unknown[0]!r}, want {', '.join(names) or 'no parameters'}{did_you_mean(unknown[0], names)}")
    if missing := [name for name in names if name not in value]:
        raise ValueError(f"{where}: {missing[0]!r} is missing")
    return kind(**{name: from_plain(hints[name], value[name], f"{where}[{name!r}]") for name in names})


def did_you_mean(word: object, names: typing.Iterable[str]) -> str:
    near = difflib.get_close_matches(str(word), list(names), n=1, cutoff=0.5)
    return f"; did you mean {near[0]!r}?" if near else ""


def make(operator: str, intensity: float, params: object) -> Record:
    """The record of one degradation."""
    return {"operator": operator, "intensity": intensity, "params": to_plain(params)}


def parts(record: object, where: str) -> tuple[str, float, object]:
    """Operator, intensity and parameters of a record; ``ValueError`` where it is not one."""
    if not isinstance(record, Mapping):
        raise ValueError(f"{where}: got {record!r}, want a record, a list of records or None")
    if missing := [name for name in ("operator", "intensity", "params") if name not in record]:
        raise ValueError(f"{where}: {missing[0]!r} is missing from the record")
    return record["operator"], intensity_of(record["intensity"], f"{where}['intensity']"), record["params"]
