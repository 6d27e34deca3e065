#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Sizes, offsets and enumerators of all public types are those of the last release, unless the inline namespace has moved.

  layouts.py check INCLUDE LIST COMPILER              compares; exit code 1, with a line for each difference
  layouts.py moves INCLUDE LIST COMPILER              that `check` would notice: the same headers with the namespace of LIST, and a member
                                                      more in RingMemory, must fail
  layouts.py release VERSION INCLUDE LIST COMPILER    replaces LIST by what there is
  layouts.py one ROOT [LIBRARY...]                    all places that name the binary interface name the same one

LIST is layouts.txt, a line for each type, member and enumerator:

  struct sdma::RingMemory 80
  sdma::RingMemory::rptr 16 8          the offset, and the member's size
  sdma::Errc::no_space 1

The compiler says it in the debug information of a file that includes all headers. What is new is not a complaint, and what is private
counts: two programs that share an object share its private members. Types in `detail` count only as parts of others.
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

# Templates have a layout once they are instantiated.
INSTANCES = ["Ring<Producers::one>", "Ring<Producers::many>", "Writer", "AnyWriter", "Result<Slot>", "Result<void>", "Result<std::uint64_t, StallReport>"]
TYPES = {"DW_TAG_structure_type": "struct", "DW_TAG_class_type": "struct", "DW_TAG_union_type": "union", "DW_TAG_enumeration_type": "enum"}
SCOPES = {*TYPES, "DW_TAG_namespace"}
# What a reference to a type passes through.
SAME_SIZE = {"DW_TAG_typedef", "DW_TAG_const_type", "DW_TAG_volatile_type", "DW_TAG_atomic_type"}
NOT_PUBLIC = re.compile(r"\bdetail::|\((?!sdma::)|<lambda|\{")  # in arguments of templates, "(sdma::Producers)0" is a value


class Entry:
    """A debug information entry: its tag, its attributes, those below it."""

    def __init__(self, tag):
        self.tag, self.attributes, self.below = tag, {}, []

    def number(self, name, default=None):
        found = re.match(r"-?(?:0x[0-9a-f]+|\d+)", self.attributes.get(name, ""))
        return int(found[0], 0) if found else default

    def type(self, by_number):
        found = re.match(r"<0x([0-9a-f]+)>", self.attributes.get("DW_AT_type", ""))
        return by_number.get(found[1]) if found else None

    @property
    def name(self):
        return self.attributes.get("DW_AT_name", "")


def entries(object_file):
    """The root of the tree that readelf prints, and each entry by its number."""
    command = ["readelf", "--debug-dump=info", object_file]
    root, by_number = Entry("root"), {}
    path = [root]
    for line in subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\n"):
        if begin := re.match(r" <([0-9a-f]+)><([0-9a-f]+)>: Abbrev Number: \d+ \((\w+)\)", line):
            depth, entry = int(begin[1], 16), Entry(begin[3])
            del path[depth + 1 :]
            path[-1].below.append(entry)
            path.append(entry)
            by_number[begin[2]] = entry
        elif attribute := re.match(r"    <[0-9a-f]+> +(DW_AT_\w+) *: (.*)", line):
            # "(indirect string, offset: 0x12): name"; newer ones write "(strp) (offset: 0x12): name".
            value = re.sub(r"^(?:\(\w+\) )?(?:\([\w ,]*offset: \w+\): )?", "", attribute[2])
            path[-1].attributes[attribute[1]] = value.strip()
    return root, by_number


def layouts(include, compiler):
    """{"struct sdma::Slot": "40", "sdma::Slot::begin": "16 8", ...}, without the inline namespace."""
    include = pathlib.Path(include)
    text = "".join(f'#include "{path.relative_to(include).as_posix()}"\n' for path in sorted(include.rglob("*.hpp")))
    text += "namespace sdma {\n" + "".join(f"static_assert(sizeof({name}) != 0);\n" for name in INSTANCES) + "}\n"
    with tempfile.TemporaryDirectory() as work:
        out = pathlib.Path(work) / "all.o"
        command = [compiler, "-std=c++20", "-g", "-gdwarf-4", "-fno-eliminate-unused-debug-types", f"-I{include}", "-x", "c++", "-c", "-o", out, "-"]
        subprocess.run(command, input=text, text=True, check=True)
        root, by_number = entries(out)
    inline = namespace(include)
    found = {}

    def size(entry):
        entry = entry.type(by_number)
        while entry and entry.tag in SAME_SIZE:
            entry = entry.type(by_number)
        if entry and entry.tag == "DW_TAG_array_type":
            count = 1
            for bound in entry.below:
                count *= bound.number("DW_AT_upper_bound", -1) + 1
            return count * size(entry)
        return entry.number("DW_AT_byte_size", 0) if entry else 0

    def add(entry, scope):
        for each in entry.below:
            if each.tag not in SCOPES or not each.name:
                continue
            name = f"{scope}::{each.name}".lstrip(":").replace(f"::{inline}", "")
            if each.tag == "DW_TAG_namespace":
                add(each, name)
            elif re.match(r"sdma\b", name) and not NOT_PUBLIC.search(name) and "DW_AT_declaration" not in each.attributes:
                found[f"{TYPES[each.tag]} {name}"] = str(each.number("DW_AT_byte_size"))
                for part in each.below:
                    if part.tag == "DW_TAG_enumerator":
                        found[f"{name}::{part.name}"] = str(part.number("DW_AT_const_value"))
                    elif part.tag == "DW_TAG_member" and "DW_AT_external" not in part.attributes:
                        found[f"{name}::{part.name or '(unnamed)'}"] = f"{part.number('DW_AT_data_member_location', 0)} {size(part)}"
                add(each, name)

    for unit in root.below:
        add(unit, "")
    return found


def namespace(include):
    names = {found for path in sorted(pathlib.Path(include).rglob("*.hpp")) for found in re.findall(r"\binline (?:namespace )?(v\w+) \{", path.read_text("utf-8"))}
    if len(names) != 1:
        sys.exit(f"{include}: the headers have the inline namespaces {sorted(names)}, and not one")
    return names.pop()


def listed(path):
    text = pathlib.Path(path).read_text(encoding="utf-8")
    head = re.search(r"(?m)^# of (\S+), inline namespace (\w+)$", text)
    rows = dict(re.match(r"((?:struct |union |enum )?.*?) (-?\d+(?: \d+)?)$", line).groups() for line in text.split("\n") if line and line[0] != "#")
    if not head or not rows:
        sys.exit(f"{path}: lists nothing")
    return head[1], head[2], rows


def different(before, now):
    return [f"{what}: {value}, now {now.get(what, 'gone')}" for what, value in sorted(before.items()) if now.get(what) != value]


def check(include, path, compiler):
    version, inline, before = listed(path)
    bad = different(before, layouts(include, compiler))
    if namespace(include) != inline:
        print(f"{len(bad)} of {len(before)} lines differ from {version}; the inline namespace was {inline} and is {namespace(include)}")
        return 0
    print(*bad, sep="\n")
    if bad:
        print(f"{len(bad)} of {len(before)} differ from {version}, and the inline namespace is still {inline}: two versions in one process would "
              "share these types. docs/stability.md says what to move.")  # fmt: skip
    return 1 if bad else 0


def moves(include, path, compiler):
    _, inline, _ = listed(path)
    with tempfile.TemporaryDirectory() as work:
        copy = pathlib.Path(work) / "include"
        shutil.copytree(include, copy)
        for header in copy.rglob("*.hpp"):
            text = re.sub(rf"\b{namespace(include)}\b", inline, header.read_text("utf-8")) if inline != namespace(include) else header.read_text("utf-8")
            if header.name == "ring.hpp":
                text = text.replace("struct RingMemory {", "struct RingMemory {\n  std::uint64_t one_more{};", 1)
            header.write_text(text, "utf-8")
        done = subprocess.run([sys.executable, __file__, "check", copy, path, compiler], capture_output=True, text=True)
    said = [line for line in done.stdout.split("\n") if line.startswith("sdma::RingMemory::rptr: ")]
    print(done.stdout, done.stderr)
    if done.returncode != 1 or not said:
        print("RingMemory has another layout, the inline namespace is the same, and check does not complain of RingMemory::rptr")
        return 1
    return 0


def one(root, *libraries):
    root = pathlib.Path(root)
    inline = namespace(root / "include")
    number = inline.removeprefix("v").replace("_", ".")
    parts = [int(n) for n in number.split(".")] + [0]
    abi = str(parts[0] * 10000 + parts[1] * 100)
    places = {
        "include/sdma/core/version.hpp": (r"(?m)^#define SDMA_ABI (\d+)$", abi),
        "meson.build": (r"(?m)^abi = '([\d.]+)'$", number),
        "lib/exports.map": (r"(?m)^SDMA_([\d.]+) \{$", number),
    }
    for name in ("runtime", "device"):
        places[f"debian/libsdma-{name}{number}.symbols"] = (rf"\Alibsdma-{name}\.so\.([\d.]+) ", number)
        places[f"debian/libsdma-{name}{number}.install"] = (rf"libsdma-{name}\.so(\.)", ".")
    # What did not change with it: a program runs with all later versions.
    places["debian/libsdma-client0.symbols"] = (r"\Alibsdma-client\.so\.(\d+) libsdma-client0 #MINVER#\n", "0")
    places["integration/client/meson.build"] = (r"\bsoversion: '(\d+)'", "0")
    bad = []
    for name, (pattern, wanted) in places.items():
        path = root / name
        found = re.search(pattern, path.read_text("utf-8")) if path.is_file() else None
        if not found or found[1] != wanted:
            bad.append(f"{name}: {found[1] if found else 'does not say it, or is not there'}, but the inline namespace is {inline}: {wanted}")
    for library in libraries:
        said = subprocess.run(["readelf", "--dynamic", "--wide", library], capture_output=True, text=True, check=True).stdout
        soname = re.search(r"\(SONAME\).*\[(.*)\]", said)
        name = pathlib.Path(library).name.partition(".so")[0]
        wanted = f"{name}.so.{0 if name == 'libsdma-client' else number}"
        if not soname or soname[1] != wanted:
            bad.append(f"{library}: its SONAME is {soname[1] if soname else 'missing'}, not {wanted}")
    print(*bad, f"{len(places) + len(libraries)} places, {len(bad)} that differ from {inline}", sep="\n")
    return 1 if bad else 0


def main(arguments):
    match arguments:
        case ["check", include, path, compiler]:
            return check(include, path, compiler)
        case ["moves", include, path, compiler]:
            return moves(include, path, compiler)
        case ["release", version, include, path, compiler]:
            rows = layouts(include, compiler)
            head = "# SPDX-License-Identifier: MIT\n# Sizes, offsets and enumerators of all public types on x86-64. Written by layouts.py.\n"
            lines = "".join(f"{what} {value}\n" for what, value in sorted(rows.items(), key=lambda row: row[0].partition(" ")[2] or row[0]))
            pathlib.Path(path).write_text(f"{head}# of {version}, inline namespace {namespace(include)}\n{lines}", "utf-8")
            return 0
        case ["one", root, *libraries]:
            return one(root, *libraries)
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
