#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Each verb of the program can be called from Python: by a function of the package that has a docstring, or, without one, by `__getattr__`,
which starts the program. Nothing is imported, so any tree can be examined; test_verbs.py calls them.

  verbs.py SDMA ROOT    exit code 1 and a line each, if a function or its docstring is missing
"""
import ast
import pathlib
import re
import subprocess
import sys

NAMES = {"as": "as_"}  # a word of the language


class Package:
    """What the modules of a package bind."""

    def __init__(self, folder):
        self.folder = folder

    def body(self, file):
        """What a file has outside of functions and classes."""
        all = []
        for node in ast.parse((self.folder / file).read_text(encoding="utf-8")).body:
            all += node.body if isinstance(node, ast.If) else [node]
        return all

    def defined(self, file):
        """The functions of a file, with their docstrings, and its variables, with their values."""
        found = {}
        for node in self.body(file):
            if isinstance(node, ast.FunctionDef):
                found[node.name] = ast.get_docstring(node)
            elif isinstance(node, ast.Assign):
                found.update({t.id: node.value for t in node.targets if isinstance(t, ast.Name)})
        return found

    def bound(self):
        """name -> the module that __init__.py imports it from, or None if it is defined there."""
        found = dict.fromkeys(self.defined("__init__.py"))
        for node in self.body("__init__.py"):
            if isinstance(node, ast.ImportFrom) and node.module and node.level:
                names = [a.asname or a.name for a in node.names]
                if names == ["*"]:
                    names = ast.literal_eval(self.defined(f"{node.module}.py")["__all__"])
                found.update(dict.fromkeys(names, node.module))
        return found


def main(program, root):
    package = Package(pathlib.Path(root) / "python/sdma")
    text = subprocess.run([program, "--help"], capture_output=True, text=True, check=True).stdout
    verbs = re.findall(r"^  (\w+) {3,}", text.split("Subcommands:")[1].split("Exit codes:")[0], flags=re.M)
    bound, missing = package.bound(), []
    for name in (NAMES.get(verb, verb) for verb in verbs):
        if name not in bound:
            if "tool" not in bound or "__getattr__" not in bound:
                missing.append(f"__init__.py: there is neither a function {name} nor a way to the program")
            continue
        file = f"{bound[name] or '__init__'}.py"
        found = package.defined(file)
        if name not in found:
            missing.append(f"{file}: there is no function {name}")
        elif not found[name]:
            missing.append(f"{file}: {name} has no docstring")
    print("".join(f"python/sdma/{line}\n" for line in missing), end="")
    return 1 if missing or len(verbs) < 13 else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
