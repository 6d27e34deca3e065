#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Files that a compiler must refuse, and for the reason that they name.

  nocompile.py INCLUDE FILE COMPILER...

A file's second line, below its licence, is `// must not compile: TEXT`: its compilation must fail and TEXT must stand in one of its messages;
where lines end with `// refused`, in a message about each of them, and about no other. A second line `// with: FLAGS` adds
flags. A file without such a line must compile, without a warning.
"""
import os
import re
import subprocess
import sys


def expectation(path):
    """(the text of the refusal or None, flags)"""
    with open(path, encoding="utf-8") as source:
        _licence, first, second = source.readline(), source.readline(), source.readline()
    refusal = re.fullmatch(r"// must not compile: (.+)\n", first)
    flags = re.fullmatch(r"// with: (.+)\n", second)
    return refusal and refusal[1], flags[1].split() if flags else []


def refused_lines(path):
    with open(path, encoding="utf-8") as source:
        return {number for number, line in enumerate(source, 1) if line.rstrip().endswith("// refused")}


def said(output):
    """What the compiler says of its own, without the source that it quotes, where the text may stand as well."""
    return [line for line in output.splitlines() if re.search(r"(^|\s)(error|note): ", line)]


def complaint(compiler, include, path):
    """What is wrong, or an empty string."""
    text, flags = expectation(path)
    if text is None:
        flags = ["-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror"]
    command = [compiler, "-std=c++20", "-fsyntax-only", f"-I{include}", f"-I{include}/../lib", *flags, path]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"})
    if text is None:
        return "" if done.returncode == 0 else f"does not compile:\n{done.stderr}"
    if done.returncode == 0:
        return f"compiles, and must not: {text}"
    told = [line for line in said(done.stderr) if text in line]
    if not told:
        return f"is refused, but no message says: {text}\n{done.stderr}"
    marked = refused_lines(path)
    places = (re.match(rf"{re.escape(path)}:(\d+):", line) for line in told)
    found = {int(place[1]) for place in places if place}
    if marked and marked != found:
        return f"'{text}' is said of lines {sorted(found)}, and must be of {sorted(marked)}\n{done.stderr}"
    return ""


def main(arguments):
    if len(arguments) < 3:
        sys.exit(__doc__)
    include, path, *compilers = arguments
    bad = [f"{path}: {compiler}: {why}" for compiler in compilers if (why := complaint(compiler, include, path))]
    print("\n".join(bad) or f"{', '.join(compilers)}: as expected")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
