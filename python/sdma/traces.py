# SPDX-License-Identifier: MIT
"""Recordings of runs and simulations; _sdma.pyi is the manual of their class."""
import os

from . import arguments, manual
from ._sdma import Trace
from .files import contents

_FORMS = {".html": "html", ".jsonl": "jsonl"}


def _read(path):
    return Trace.parse(contents(path), os.fspath(path))


def _save(trace, path):
    path = os.fspath(path)
    text = trace.to_string(_FORMS.get(os.path.splitext(path)[1], "perfetto"))
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


manual.add(Trace, "read", _read, static=True)
manual.add(Trace, "save", _save)
Trace._repr_svg_ = lambda trace: trace.to_svg(trace.name)
Trace.__repr__ = lambda trace: f"<Trace {trace.name}: {len(trace)} events>"
arguments.explain_methods(Trace, "to_svg")
