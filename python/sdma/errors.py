# SPDX-License-Identifier: MIT
"""What is wrong, where, and what to do."""


class Error(Exception):
    """`str` is what the program prints. `diagnostics`: each error of a text, as a dict; the other attributes are those of the first."""

    def __init__(self, text, diagnostics):
        super().__init__(text)
        self.diagnostics = diagnostics
        first = diagnostics[0] if diagnostics else {}
        self.message = first.get("message", text)
        self.rule = first.get("rule", "")
        self.where = first.get("where", "")
        self.hint = first.get("hint", "")
        self.file = first.get("file")
        self.line = first.get("line")
        self.column = first.get("column")

    def __reduce__(self):
        return (type(self), (self.args[0], self.diagnostics))
