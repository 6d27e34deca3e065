# SPDX-License-Identifier: MIT
"""Numbers in rows, from Python: nested lists, NumPy's arrays, PyTorch's tensors, whatever offers its bytes as numbers."""
from __future__ import annotations

import math
import operator
from typing import Any


def is_sequence(value: Any) -> bool:
    """Is this a list or an array, rather than one number or a text?"""
    return _rows(value) is not None


def _rows(value):
    """The elements of a list or of an array; None if it has none."""
    if isinstance(value, (list, tuple, range)):
        return list(value)
    if isinstance(value, (str, bytes, bytearray)):
        return None
    if hasattr(value, "tolist"):  # of arrays and tensors: numbers of Python, in lists
        found = value.tolist()
        return found if isinstance(found, list) else None
    try:
        return memoryview(value).tolist()
    except (TypeError, NotImplementedError):
        return None


def _cell(value, where):
    if isinstance(value, str):
        return value
    try:
        if not isinstance(value, bool):
            return str(operator.index(value))
    except TypeError:
        pass
    hint = ": convert it to integers first" if isinstance(value, float) and math.isfinite(value) else ""
    raise TypeError(f"{where}: pass a number or text such as '64K', not {value!r}{hint}")


def list_text(what: str, value: Any) -> str:
    """A list, or a list of rows, as the language writes it: "[1, 2]", "[[0, 64K], [1M, 0]]"."""
    rows = _rows(value)
    if rows and all(is_sequence(row) for row in rows):
        return f"[{', '.join('[' + ', '.join(row) + ']' for row in matrix(what, value))}]"
    return f"[{', '.join(_cell(cell, f'{what}, number {i}') for i, cell in enumerate(rows))}]"


def _counted(n, word):
    return f"{n} {word}" if n == 1 else f"{n} {word}s"


def sizes(what: str, value: Any) -> list[str]:
    """The bytes of a square matrix, row by row: as of `matrix`, and none is negative, or more than 2^63 - 1."""
    rows = matrix(what, value, square=True)
    for i, row in enumerate(rows):
        for j, cell in enumerate(row):
            if cell.startswith("-") or cell.isdecimal() and int(cell) >= 1 << 63:
                raise ValueError(f"{what}, row {i}, column {j}: {cell} is not a number of bytes")
    return [cell for row in rows for cell in row]


def matrix(what: str, value: Any, *, square: bool = False) -> list[list[str]]:
    """The rows of a matrix, each number as text. An error names the row and the column, from 0."""
    rows = _rows(value)
    if rows is None:
        raise TypeError(f"{what}: pass rows of numbers, as nested lists or as an array, not {type(value).__name__}")
    found = []
    for i, row in enumerate(rows):
        cells = _rows(row)
        if cells is None:
            raise TypeError(f"{what}, row {i}: pass a list of numbers, not {row!r}")
        found.append([_cell(cell, f"{what}, row {i}, column {j}") for j, cell in enumerate(cells)])
        width, other = (len(rows), f"the matrix has {_counted(len(rows), 'row')}") if square else (len(found[0]), f"row 0 has {len(found[0])}")
        if len(found[i]) != width:
            raise ValueError(f"{what}, row {i}: it has {_counted(len(found[i]), 'column')}, and {other}")
    return found
