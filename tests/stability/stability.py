#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What the last release promised is still there: each public name with its declaration, and each symbol of the library.

  stability.py names INCLUDE LIST [--accept|--release VERSION]
  stability.py symbols LIBRARY LIST [--accept|--release VERSION]
  stability.py exports ARCHIVE MAP [--accept]
  stability.py page INCLUDE PAGE

`names` reads the headers below INCLUDE with doxygen; LIST is names.txt. `symbols` reads LIBRARY with nm; LIST is a symbols file of
Debian. What is new is not a complaint. Exit code 1, with a line for each thing that is gone or differs. `exports` compares MAP, which tells
the linker what the shared libraries export, with what ARCHIVE defines of the public names. `page` looks up the names that the last section
of PAGE says a version has added, each in the header of its row.

  --accept             removes from LIST what is gone or differs, and adds what replaced it: the break is a decision. Add a line to CHANGELOG.md
  --release VERSION    replaces LIST by what there is
"""
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "site"))
import doxygen  # noqa: E402

INCLUDE = pathlib.Path(__file__).resolve().parents[2] / "include"
# What these contain is nobody's interface; doxygen's @ names have no name.
NOT_PUBLIC = re.compile(r"(^|::)(detail|@\d+)(::|$)")


def text_of(element, *path):
    for name in path:
        element = element.find(name) if element is not None else None
    return " ".join("".join(element.itertext()).split()) if element is not None else ""


def parameters(member):
    """Of a template: "<class T, int N>", without the names of defaults, or ""."""
    found = member.find("templateparamlist")
    if found is None:
        return ""
    return "template<" + ", ".join(text_of(p, "type") for p in found.iter("param")) + "> "


def declaration(member, scope):
    name = f"{scope}::{text_of(member, 'name')}" if scope else text_of(member, "name")
    kind = member.get("kind")
    if kind == "enum":
        return f"enum {name} : {text_of(member, 'type')}".rstrip(" :")
    if kind == "define":
        return f"#define {name}"
    if kind == "function":
        # Names and defaults of parameters are not promised; what follows the parameters is: const, noexcept, =delete.
        types = ", ".join(text_of(p, "type") for p in member.findall("param"))
        after = text_of(member, "argsstring").rpartition(")")[2]
        return f"{parameters(member)}{text_of(member, 'type')} {name}({types}){after}".strip()
    return f"{parameters(member)}{kind} {text_of(member, 'type')} {name}{text_of(member, 'argsstring')}".strip()


def names(include):
    """{declaration: header} of everything that is public."""
    found = {}

    def add(what, element):
        found[what] = element.find("location").get("file") if element.find("location") is not None else ""

    with tempfile.TemporaryDirectory() as work:
        compounds, complaint = doxygen.compounds(include, work)
        if complaint:
            sys.exit(complaint)
        for compound in compounds:
            if compound.get("prot") == "private":
                continue
            kind, scope = compound.get("kind"), text_of(compound, "compoundname")
            if NOT_PUBLIC.search(scope) or kind in ("dir", "page"):
                continue
            members = list(compound.iter("memberdef"))
            if kind == "file":
                members, scope = [m for m in members if m.get("kind") == "define"], ""
            elif kind != "namespace":
                bases = ", ".join(text_of(b) if b.text is None else b.text for b in compound.findall("basecompoundref") if b.get("prot") == "public")
                add(f"{parameters(compound)}{kind} {scope}{' : ' + bases if bases else ''}", compound)
            for member in members:
                if member.get("prot") != "public" or NOT_PUBLIC.search(text_of(member, "name")) or member.get("kind") == "friend":
                    continue
                what = declaration(member, scope)
                if NOT_PUBLIC.search(what.split("(")[0]):
                    continue
                add(what, member)
                for value in member.findall("enumvalue"):
                    add(f"{scope}::{text_of(member, 'name')}::{text_of(value, 'name')} {text_of(value, 'initializer')}".strip(), member)
    return found


class Names:
    def __init__(self, include):
        self.now = {f"{header}: {what}" for what, header in names(pathlib.Path(include).resolve()).items()}

    @staticmethod
    def read(text):
        return {line for line in text.split("\n") if line and not line.startswith("#")}

    def written(self, lines, text, version):
        version = version or re.search(r"(?m)^# of (\S+)$", text)[1]
        head = "# SPDX-License-Identifier: MIT\n# Each public name, with its declaration, as doxygen reads the headers. Written by stability.py.\n"
        return f"{head}# of {version}\n" + "".join(f"{line}\n" for line in sorted(lines))


class Symbols:
    def __init__(self, library):
        command = ["nm", "--dynamic", "--defined-only", "--format=posix", library]
        symbols = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\n")
        # Instances of templates are weak: each client has its own. "detail" is nobody's interface. A is the name of a version.
        found = {line.split()[0] for line in symbols if line and line.split()[1] in "ABDRT" and "6detail" not in line}
        # "symbol@version", as Debian writes it: nm doubles the @, and writes nothing for a symbol without a version.
        self.now = {symbol.replace("@@", "@") if "@" in symbol else f"{symbol}@Base" for symbol in found}

    @staticmethod
    def read(text):
        return set(re.findall(r"(?m)^ (\S+@\S+) ", text))

    def written(self, lines, text, version):
        # A symbol that remains keeps the version in which it appeared.
        since = dict(re.findall(r"(?m)^ (\S+@\S+) (\S+)$", text))
        latest = version or max(since.values(), key=lambda v: [int(n) for n in v.rstrip("~").split(".")])
        head = "".join(line + "\n" for line in text.split("\n") if line and not line.startswith(" "))
        return head + "".join(f" {symbol} {since.get(symbol, latest)}\n" for symbol in sorted(lines))


class Exports:
    """Patterns for what the archive defines, and the headers declare. A class is one pattern, whatever its members are."""

    HEAD = """# SPDX-License-Identifier: MIT
# What the shared libraries export: the public names that have code or data. Written by tests/stability/stability.py exports.
SDMA_0.3 {
global:
extern "C++" {
  typeinfo?for?sdma::v0_3::*;
  typeinfo?name?for?sdma::v0_3::*;
  vtable?for?sdma::v0_3::*;
"""

    def __init__(self, archive):
        functions, classes = set(), set()
        for what in names(INCLUDE):
            if found := re.match(r"(?:template<.*> )?(?:struct|class|union) ([\w:]+)", what):
                classes.add(found[1])
            elif found := re.search(r"\bsdma::[\w:]+(?=\(|$)", re.sub(r" ?[=\[{].*", "", what)):
                functions.add(found[0])
        command = ["nm", "--demangle", "--defined-only", "--format=posix", archive]
        symbols = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\n")
        self.now = set()
        for name in {found[1] for line in symbols if (found := re.match(r"(sdma::v0_3::[\w:~]+).* [BDRTuV] ", line))}:
            scope = name.rpartition("::")[0]
            if (outer := self.outermost(scope.replace("::v0_3", ""), classes)):
                self.now.add(f"{outer.replace('sdma', 'sdma::v0_3', 1)}::*")
            elif name.replace("::v0_3", "") in functions:
                self.now.add(f"{name}[!a-zA-Z0-9_]*")

    @staticmethod
    def outermost(scope, classes):
        parts = scope.split("::")
        return next((name for n in range(1, len(parts) + 1) if (name := "::".join(parts[:n])) in classes), "")

    @staticmethod
    def read(text):
        return set(re.findall(r"(?m)^  (sdma::\S+);$", text))

    def written(self, lines, text, version):
        return self.HEAD + "".join(f"  {line};\n" for line in sorted(lines)) + "};\nlocal: *;\n};\n"


def page(include, path):
    """What is wrong with the table "New names, by header" of a page about an upgrade: a header or a name that is not there."""
    declared = {}
    for what, header in names(include).items():
        # The types in a declaration have no scope: what has one is the name, or a base.
        own = what.partition(" : ")[0]
        declared.setdefault(header, set()).update(re.findall(r"(?:\bsdma::|#define )([\w:]+)", own))
    section = path.read_text(encoding="utf-8").partition("\n## New names, by header\n")[2]
    rows = [re.findall(r"`([^`]+)`", cell) for line in section.split("\n") if line.startswith("| `") for cell in line.split("|")[1:3]]
    if not rows:
        return [f"{path.name}: has no table of new names"]
    wrong = []
    for (header,), listed in zip(rows[::2], rows[1::2]):
        known = declared.get(f"sdma/{header}", set())
        wrong += [f"{path.name}: sdma/{header} has no name {name}" for name in listed if name not in known]
    return wrong


def main(arguments):
    if len(arguments) == 3 and arguments[0] == "page":
        wrong = page(pathlib.Path(arguments[1]).resolve(), pathlib.Path(arguments[2]))
        print(*wrong, f"{len(wrong)} wrong", sep="\n")
        return 1 if wrong else 0
    kinds = {"names": Names, "symbols": Symbols, "exports": Exports}
    if len(arguments) < 3 or arguments[0] not in kinds or arguments[3:4] not in ([], ["--accept"], ["--release"]):
        sys.exit(__doc__)
    what, listed = kinds[arguments[0]](arguments[1]), pathlib.Path(arguments[2])
    text = listed.read_text(encoding="utf-8") if listed.is_file() else ""
    before = what.read(text)
    gone = before - what.now
    if not what.now:
        sys.exit(f"{arguments[1]}: nothing is public there")
    if arguments[3:4] == ["--release"]:
        listed.write_text(what.written(what.now, text, arguments[4]), encoding="utf-8")
    elif arguments[3:4] == ["--accept"]:
        kept = what.now if arguments[0] == "exports" else before & what.now
        listed.write_text(what.written(kept, text, None), encoding="utf-8")
    elif arguments[0] == "exports":
        wrong = [f"not in the map: {line}" for line in sorted(what.now - before)] + [f"in the map alone: {line}" for line in sorted(gone)]
        print(*wrong, f"{len(what.now)} patterns, {len(wrong)} that differ. To accept this: stability.py exports {' '.join(arguments[1:3])} --accept", sep="\n")
        return 1 if wrong else 0
    elif not before:
        sys.exit(f"{listed}: lists nothing")
    elif gone:
        print(*(f"gone or changed: {line}" for line in sorted(gone)), sep="\n")
        print(f"{len(gone)} of {len(before)} that the last release had. If that is meant: stability.py {arguments[0]} .. --accept, and a line in CHANGELOG.md")
        return 1
    print(f"{len(what.now)} now, {len(before)} in the last release")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
