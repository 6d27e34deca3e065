# SPDX-License-Identifier: MIT
"""Which argument is wrong, and what it takes, where the extension says only that its types do not fit."""
from __future__ import annotations

import difflib
import functools
import inspect
import re
from typing import Any, Callable, TypeVar

_Function = TypeVar("_Function", bound=Callable[..., Any])


def explained(function: _Function) -> _Function:
    """The function, whose TypeErrors name the argument."""
    return _explained(function, inspect.signature(function))


def explain_methods(of: type, *names: str) -> None:
    """The TypeErrors of these methods of a class of the extension name the argument."""
    for name in names:
        method = getattr(of, name)
        signature = inspect.signature(method)  # without the object
        object = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
        signature = signature.replace(parameters=[object, *signature.parameters.values()])
        setattr(of, name, _explained(method, signature))
        getattr(of, name).__qualname__ = f"{of.__name__}.{name}"


def _explained(function, signature):
    @functools.wraps(function)
    def call(*args, **named):
        try:
            return function(*args, **named)
        except TypeError as error:
            reason = _reason(function, signature, str(error), args, named)
            if reason is None:
                raise
            raise TypeError(f"{call.__qualname__}(): {reason}") from None

    call.__signature__ = signature
    return call


def _reason(function, signature, said, args, named):
    """None: it is no error of the arguments."""
    try:
        given = signature.bind(*args, **named).arguments
    except TypeError as error:
        return _unfit(signature, str(error), named)
    if "incompatible" not in said:
        return None
    types = _types(function, said)
    for name, value in given.items():
        if reason := _wrong(name, types.get(name, ""), value):
            return reason
    # How many bits an integer of the extension has is not known here: 2^40 may fit, and be right.
    maybe = [f"{name} is too large: {value}" for name, value in given.items() if types.get(name) == "int" and value >= 1 << 32]
    others = [name for name in given if types.get(name) not in ("int", "float", "str") and name != "self"]
    maybe += [f"{' or '.join(others)} has a type that this does not take"] if others else []
    return ", or ".join(maybe) or "an argument has a type that this does not take"


def _unfit(signature, said, named):
    takes = [name for name in signature.parameters if name != "self"]
    for name in named:
        if name not in takes:
            near = difflib.get_close_matches(name, takes, 1)
            return f"there is no argument '{name}'" + (f"; did you mean '{near[0]}'?" if near else f": pass some of {', '.join(takes)}")
    keywords = [f"{p.name}=" for p in signature.parameters.values() if p.kind is p.KEYWORD_ONLY]
    return said + (f": pass {', '.join(keywords)} with their names" if keywords and said.startswith("too many") else "")


def _types(function, said):
    """The types of its arguments: those of the annotations, or those of the first signature that the extension lists."""
    annotations = {name: text for name, text in getattr(function, "__annotations__", {}).items() if isinstance(text, str)}
    return annotations or dict(re.findall(r"(\w+): (\w+)", said.partition("1. ")[2].partition("\n")[0]))


def _wrong(name, type, value):
    types = set(type.split(" | "))
    if value is None and "None" in types:
        return None
    if "int" in types and "str" not in types:
        if not hasattr(value, "__index__"):
            return f"{name} is a whole number, not {value!r}"
        if value.__index__() < 0:
            return f"{name} cannot be negative: {value}"
    if "float" in types and not (hasattr(value, "__float__") or hasattr(value, "__index__")):
        return f"{name} is a number, not {value!r}"
    if types == {"str"} and not isinstance(value, str):
        return f"{name} is text, not {value!r}"
    return None
