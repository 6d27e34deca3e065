#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compiles each C++ example of the documentation: examples.py SOURCE [COMPILER...]

Reads the ```cpp blocks of each page that the site shows, and the code in the manual with which a public header opens. The examples of one
file continue each other: a later one sees what an earlier one declares, and may declare it anew. One that begins with a class, a template
or a function stands outside of functions; one that has a `main` is a program of its own. `examples.toml` beside this file says what
examples take as given. In an example, ` ...` at the end of a line and `{ ... }` stand for statements that are left out, and a line
`EXPRESSION   what it means`, or `X  ==  Y`, without a semicolon, is an expression. Exit code 1, with the compiler's messages, which name the lines
of the documentation.
"""
import pathlib
import re
import subprocess
import sys
import tempfile
import tomllib

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "site"))
import blocks  # noqa: E402
import build  # noqa: E402
import filter as headers  # noqa: E402

OUTSIDE = re.compile(r"(//.*\n|using namespace .*\n|\n)*(class|struct|template|namespace|enum|int main|[\w:]+ \w+\([^;]*\) \{$)", flags=re.M)
INCLUDE = re.compile(r"(?m)^#include .*$")


def statements(code):
    """A line as statements: of `EXPRESSION   what it means` and `X  ==  Y   Z  ==  W`, the expressions."""
    code = re.sub(r"\{ ?\.\.\. ?\}", "{}", re.sub(r"(^|\s)\.\.\.\s*$", r"\1;", code.rstrip()))
    first, *others = re.split(r"\s{3,}", re.sub(r"\s+==\s+", " == ", code))
    whole = all(first.count(a) == first.count(b) for a, b in ("()", "{}", "[]"))
    if not whole or re.match(r"$|#|(if|for|while|do|template|case|int|struct|class)\b", first) or re.search(r"[=:,{]$|^\}|(^|[ )])\{\}$", first):
        return code
    parts = [first, *(other for other in others if other.endswith(";") or " == " in other)]
    return " ".join(part if part.endswith(";") else f"(void)({part});" for part in parts)


def completed(text):
    """The example with a statement in each place where one was left out."""
    lines = []
    for line in text.split("\n"):
        comment = re.search(r"(^|\s)//", line)
        code = line[: comment.start()] if comment else line
        lines.append(statements(code) if not code.startswith(" ") else re.sub(r"(^|\s)\.\.\.\s*$", r"\1;", code))
    return "\n".join(lines)


def examples(source):
    """{file: [block]} of all C++ examples."""
    found = {}
    for path in build.collected(source):
        found[str(path)] = [b for b in blocks.of_page((source / path).read_text(encoding="utf-8")) if b.kind == "cpp"]
    for path in sorted((source / "include/sdma").rglob("*.hpp")):
        text = path.read_text(encoding="utf-8")
        every = [*blocks.of_manual(headers.manual(text), 3), *blocks.of_comments(text)]
        found[str(path.relative_to(source))] = [b for b in every if b.kind == "cpp"]
    return {file: listed for file, listed in found.items() if listed}


def unit(source, number, file, listed, given):
    """C++ of all examples of a file; each line says where it comes from."""
    line = lambda block: f'#line {block.line} "{file}"\n{INCLUDE.sub("", completed(block.text))}\n'
    outside = [b for b in listed if OUTSIDE.match(INCLUDE.sub("", b.text).lstrip())]
    inside = [b for b in listed if b not in outside]
    everywhere = [b for b in outside if "template <> inline constexpr auto sdma::" in b.text]
    out = "".join(map(line, everywhere)) + f"namespace example {{ namespace n{number} {{\n"
    inner = re.search(r"inline namespace v0_3 \{ namespace (\w+) ", (source / file).read_text(encoding="utf-8")) if file.startswith("include/") else None
    out += f"using namespace sdma::{inner[1]};\n" if inner else ""
    out += f'#line 1 "given for {file}"\n{given}\n' + "".join(line(b) for b in outside if b not in everywhere)
    out += "[[maybe_unused]] inline Any function() {\n" + "".join("{\n" + line(b) for b in inside) + "}" * len(inside)
    return out + "\nreturn {};\n}\n}}\n"


def main(source, *compiler):
    source = pathlib.Path(source).resolve()
    given = tomllib.loads((HERE / "examples.toml").read_text(encoding="utf-8"))
    found = examples(source)
    unknown = sorted(set(given) - set(found) - {"all"})
    if unknown:
        sys.exit(f"examples.toml: without an example: {', '.join(unknown)}")
    drawings = {(file, first) for file, entry in given.items() for first in entry.get("drawings", ())}
    used = {(file, b.text.split("\n")[0].strip()) for file, listed in found.items() for b in listed}
    if drawings - used:
        sys.exit(f"examples.toml: no block begins so: {sorted(drawings - used)}")
    found = {file: [b for b in listed if (file, b.text.split("\n")[0].strip()) not in drawings] for file, listed in found.items()}
    everything = "".join(f'#include "{p.relative_to(source / "include")}"\n' for p in sorted((source / "include/sdma").rglob("*.hpp")))
    common = f"{given['all']['includes']}\n{everything}namespace example {{\n{given['all']['given']}\n}}\n"
    programs = [(file, b) for file, listed in found.items() for b in listed if INCLUDE.search(b.text) and re.search(r"(?m)^int main\(", b.text)]
    pieces = {file: [b for b in listed if (file, b) not in programs] for file, listed in found.items()}
    with tempfile.TemporaryDirectory() as folder:
        names = []
        for number, (file, block) in enumerate(programs):
            names.append(pathlib.Path(folder, f"program{number}.cpp"))
            names[-1].write_text(f'#line {block.line} "{file}"\n{completed(block.text)}', encoding="utf-8")
        names.append(pathlib.Path(folder, "fragments.cpp"))
        units = (unit(source, i, file, listed, given.get(file, {}).get("given", "")) for i, (file, listed) in enumerate(pieces.items()))
        names[-1].write_text(common + "".join(units), encoding="utf-8")
        command = [*(compiler or ["g++"]), "-std=c++20", "-fsyntax-only", "-w", f"-I{source / 'include'}", f"-I{source}"]
        failed = [subprocess.run([*command, name], cwd=folder).returncode != 0 for name in names]
    print(f"{sum(map(len, found.values()))} examples of {len(found)} files, {sum(failed)} of {len(names)} units do not compile")
    return any(failed)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
