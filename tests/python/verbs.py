#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Each verb of the program has a function in the package for Python, and in its manual. Nothing is imported, so any tree can be examined.

  verbs.py SDMA ROOT    exit code 1 and a line each, if a function is missing
"""
import ast
import pathlib
import re
import subprocess
import sys

NAMES = {"as": "as_"}  # a word of the language


def bound(body):
    """name -> the module that it is imported from, or None if it is defined here."""
    found = {}
    for node in body:
        if isinstance(node, ast.FunctionDef):
            found[node.name] = None
        elif isinstance(node, ast.ImportFrom):
            found.update({a.asname or a.name: node.module for a in node.names})
        elif isinstance(node, ast.Assign):
            found.update({t.id: None for t in node.targets if isinstance(t, ast.Name)})
    return found


def main(program, root):
    package = pathlib.Path(root) / "python/sdma"
    names = lambda file: bound(ast.parse((package / file).read_text(encoding="utf-8")).body)
    text = subprocess.run([program, "--help"], capture_output=True, text=True, check=True).stdout
    verbs = re.findall(r"^  (\w+) {3,}", text.split("Subcommands:")[1].split("Exit codes:")[0], flags=re.M)
    manual, module, missing = names("__init__.pyi"), names("__init__.py"), []
    for verb in verbs:
        name = NAMES.get(verb, verb)
        if manual.get(name, "") is not None:
            missing.append(f"__init__.pyi: there is no function {name}")
        if name not in module:
            missing.append(f"__init__.py: there is no {name}")
        elif module[name] and name not in names(f"{module[name]}.py"):
            missing.append(f"{module[name]}.py: there is no function {name}")
    print("".join(f"python/sdma/{line}\n" for line in missing), end="")
    return 1 if missing or len(verbs) < 13 else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
