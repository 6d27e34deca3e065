# SPDX-License-Identifier: MIT
"""What is wrong, where, and what to do."""
from __future__ import annotations

from typing import Any


class Error(Exception):
    """What is wrong, where, and what to do. `str` is what the program prints. `diagnostics`: each error of a text, as a dict; the other
    attributes are those of the first."""

    def __init__(self, text: str, diagnostics: list[dict[str, Any]]):
        super().__init__(text)
        self.diagnostics = diagnostics
        first = diagnostics[0] if diagnostics else {}
        self.message: str = first.get("message", text)
        self.rule: str = first.get("rule", "")
        self.where: str = first.get("where", "")
        self.hint: str = first.get("hint", "")
        self.file: str | None = first.get("file")
        self.line: int | None = first.get("line")
        self.column: int | None = first.get("column")

    def __reduce__(self):
        return (type(self), (self.args[0], self.diagnostics))
