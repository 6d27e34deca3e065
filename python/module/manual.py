#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The docstrings of the extension, as rows of a table of C++: from the manual of its classes, _sdma.pyi.

  manual.py PYI FORM OUT    writes OUT: FORM with the rows in it; exit code 1 and a line each, if a class, a method or a property has no docstring

A method of the extension begins with its signature, in the form in which CPython keeps that of its own (`inspect.signature` and
help() read it there). Properties, and methods that Python adds (sdma/manual.py), have none: they are read without one.
"""
import ast
import json
import pathlib
import sys

IN_PYTHON = {"Schedule.parse", "Schedule.read", "Queue.put", "Trace.read", "Trace.save", "Machine.read"}


def signature(node, static):
    given = node.args
    for argument in [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]:
        if argument:
            argument.annotation = None
    words = ast.unparse(given)
    return f"{node.name}({words})" if static else f"{node.name}(${words})"


def rows(text):
    """(name, docstring) of each class and of what it has; None where there is no docstring."""
    for described in ast.parse(text).body:
        if isinstance(described, ast.FunctionDef) and described.name == "fmt":
            yield "fmt", ast.get_docstring(described) and f"{signature(described, True)}\n--\n\n{ast.get_docstring(described)}"
        if not isinstance(described, ast.ClassDef):
            continue
        yield described.name, ast.get_docstring(described)
        for node in described.body:
            if not isinstance(node, ast.FunctionDef):
                continue
            name, doc = f"{described.name}.{node.name}", ast.get_docstring(node)
            words = {getattr(d, "id", "") for d in node.decorator_list}
            if node.name.startswith("__") or (doc and ("property" in words or name in IN_PYTHON)):
                yield name, doc or ""
            else:
                yield name, doc and f"{signature(node, 'staticmethod' in words)}\n--\n\n{doc}"


def main(pyi, form, out):
    all = sorted(rows(pathlib.Path(pyi).read_text(encoding="utf-8")))
    missing = [name for name, doc in all if doc is None]
    for name in missing:
        print(f"{pyi}: {name} has no docstring", file=sys.stderr)
    # A string of JSON is one of C++, too, as long as it is ASCII.
    lines = [f"    {{{json.dumps(name)}, {json.dumps(doc)}}},\n" for name, doc in all if doc]
    text = pathlib.Path(form).read_text(encoding="utf-8")
    pathlib.Path(out).write_text(text.replace("@rows@", "".join(lines)), encoding="utf-8")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
