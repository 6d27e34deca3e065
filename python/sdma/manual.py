# SPDX-License-Identifier: MIT
"""Adds functions of Python to the classes of the extension, with the names and the words that _sdma.pyi gives them."""
from __future__ import annotations

from typing import Any, Callable

from . import _sdma


def add(to: type, name: str, function: Callable[..., Any], *, static: bool = False) -> None:
    """The function becomes the method `name` of the class; its docstring is that of the manual, without the signature."""
    full = f"{to.__name__}.{name}"
    function.__name__, function.__qualname__, function.__module__, function.__doc__ = name, full, "sdma", _sdma.manual(full).rpartition("\n--\n\n")[2]
    setattr(to, name, staticmethod(function) if static else function)
