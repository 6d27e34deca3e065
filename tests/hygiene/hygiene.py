#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Rules of the source tree that no compiler knows. Each check is a function from the tree's root to complaints.

  hygiene.py CHECK ROOT [COMPILER...]   runs one check; exit code 1 and a line each, if there are complaints
  hygiene.py --list                     the checks and what they say
"""
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys

import modules

# A folder uses only those before it.
ORDER = ["core", "packets", "stream", "queue", "dump", "sync", "draw", "trace", "engine", "kfd", "device", "schedule", "check", "doctor", "simulate", "search"]
MAY_USE = {folder: set(ORDER[: i + 1]) for i, folder in enumerate(ORDER)}
# Drawing does not know what is drawn.
MAY_USE["draw"] = {"core", "draw"}
# A diagnosis reads what is there, and a prediction does not: neither uses the other.
MAY_USE["simulate"].discard("doctor")
MAY_USE["search"].discard("doctor")
# A program of its own, beside the folders that build on devices: nobody includes it.
# Its modules use those before them.
MAY_USE["emulator"] = MAY_USE["device"] | {"emulator"}
MAY_USE["emulator/model"] = MAY_USE["emulator"] | {"emulator/model"}
MAY_USE["emulator/queues"] = MAY_USE["emulator"] | {"emulator/queues"}
MAY_USE["emulator/node"] = MAY_USE["emulator/queues"] | {"emulator/node"}
MAY_USE["emulator/preload"] = MAY_USE["emulator/node"] | {"emulator/preload"}
# Programs on devices, for clients: no folder includes them.
MAY_USE["litmus"] = MAY_USE["device"] | {"litmus"}
MAY_USE["standalone"] = {"standalone"}  # of fmt and the C library alone
# Precompiled for all, included by nobody.
MAY_USE["pch"] = MAY_USE["packets"]
# Clients: they may use every module, and of each other what is named here. No module uses them.
CLIENTS = {
    "share/sdma/kernels": (),
    "collectives": (),
    "integration/client": ("collectives",),
    "integration/runtime": (),
    "tools/json": (),
    "tools/msccl": (),
    "tools": ("tools/json", "tools/msccl"),
    "tools/contact": ("tools", "tools/json", "litmus", "share/sdma/kernels"),
    "tools/fetch": ("tools", "tools/json", "collectives"),
    "tools/perf": ("tools", "tools/json", "collectives"),
    "tools/verbs": ("tools", "tools/contact", "tools/fetch", "tools/json", "tools/msccl", "tools/perf", "collectives"),
    "playground": ("tools",),
    "python": ("tools/json", "tools/msccl", "collectives"),
    "examples": (),
    "examples/kernels": ("examples", "share/sdma/kernels"),
    "bench": ("collectives",),
}
MAY_USE |= {room: {room, *ORDER, *others} for room, others in CLIENTS.items()}
# These are written as anyone's clients are: of the modules, they include what is installed.
PUBLIC_ALONE = {"share/sdma/kernels", "collectives", "integration/client", "integration/runtime", "examples"}

# What the header-only library consists of: a fork that cannot link ours uses these, without exceptions and RTTI.
HEADER_ONLY = re.compile(r"(core|packets|sync)/\w+|stream/(writer|reader)|queue/(order|ring|queue|reset|wave)|sdma|forward")
NOT_HEADER_ONLY = {"core/file", "core/number", "sync/describe"}
# Of what is not a C++ header: the fences of the processor and, in one place that has a standard branch too, POSIX.
INTRINSICS = {"immintrin.h", "emmintrin.h", "intrin.h", "x86intrin.h"}
POSIX = {"core/deadline": {"sched.h", "time.h"}}

# For clients in C: a part of what implements it.
C_FACE = pathlib.PurePath("include/sdma/client.h")
# The room of each header that lies in none. What forward.hpp declares, every module may pass on; sdma.hpp is for clients alone.
FACES = {
    C_FACE: "integration/client",
    pathlib.PurePath("include/sdma/forward.hpp"): "core",
    pathlib.PurePath("include/sdma/sdma.hpp"): "sync",
}

SOURCES = (".hpp", ".cpp", ".h", ".c")
# Where a compiler searches for "...", after the folder of the source.
SEARCHED = [pathlib.PurePath(folder) for folder in ("include", "lib", ".", "tools", "share/sdma/kernels")]
WARNINGS = ["-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror"]
MAX_LINES = 500


def files(root, *folders, suffixes=SOURCES):
    """Files below these folders, as paths relative to the root, sorted."""
    found = []
    for folder in folders:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in suffixes and path.is_file():
                found.append(path.relative_to(root))
    return found


def read(root, path):
    return (root / path).read_text(encoding="utf-8")


def code_lines(text):
    """(number, line) without comments and without the contents of strings: what the compiler acts on."""
    blank = lambda match: '""' if match.group()[0] == '"' else re.sub(r"[^\n]", " ", match.group())
    text = re.sub(r'"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/', blank, text, flags=re.S)
    return list(enumerate(text.split("\n"), 1))


def header_only(name):
    """`name` is "folder/file" without suffix."""
    return bool(HEADER_ONLY.fullmatch(name)) and name not in NOT_HEADER_ONLY


def public_name(path):
    """include/sdma/queue/ring.hpp -> queue/ring, or None where the file is no public header."""
    parts = path.with_suffix("").parts
    return "/".join(parts[2:]) if parts[:2] == ("include", "sdma") else None


def room_of(path):
    """Of include/sdma/X/... and lib/X/...: X, or emulator/X for the emulator's modules. Else the innermost of CLIENTS, or the folder."""
    parts = path.parts
    if parts[:2] == ("include", "sdma") and len(parts) > 3:
        return parts[2]
    if parts[0] == "lib" and len(parts) > 2:
        return "/".join(parts[1:3]) if parts[1] == "emulator" and len(parts) > 3 else parts[1]
    if path in FACES:
        return FACES[path]
    return next((str(folder) for folder in path.parents if str(folder) in CLIENTS), str(path.parent))


# --- The checks -------------------------------------------------------------------------------------------------------


def includes(root):
    """no folder includes one after it, clients include what CLIENTS names, and the header-only set only itself and the standard library"""
    bad = []
    for path in files(root, "include", "lib", *sorted({room.split("/")[0] for room in CLIENTS})):
        room, name = room_of(path), public_name(path)
        alone = name is not None and header_only(name)
        if room not in MAY_USE:
            bad.append(f"{path}:1: lies in no folder that the design names")
            continue
        for number, line in enumerate(read(root, path).split("\n"), 1):
            match = re.match(r'\s*#\s*include\s*([<"])([^>"]+)[>"]', line)
            if not match:
                continue
            kind, target = match.groups()
            where = f"{path}:{number}"
            if kind == "<":
                if target.startswith("sdma/"):
                    bad.append(f"{where}: <{target}>: our own headers are included in quotes")
                elif alone and ("/" in target or target.endswith((".h", ".hpp"))) and target not in INTRINSICS | POSIX.get(name, set()):
                    bad.append(f"{where}: <{target}> in a header-only file: nothing but the standard library there")
                continue
            candidates = [pathlib.PurePath(os.path.normpath(folder / target)) for folder in (path.parent, *SEARCHED)]
            # What Meson makes of X.hpp.in lies where that lies.
            there = next((c for c in candidates if any((root / f"{c}{end}").is_file() for end in ("", ".in"))), None)
            if there is None:
                bad.append(f'{where}: "{target}" is no file of this tree')
                continue
            if room_of(there) not in MAY_USE[room]:
                bad.append(f'{where}: "{target}": {room} may not use {room_of(there)}')
            elif room in PUBLIC_ALONE and there.parts[0] == "lib":
                bad.append(f'{where}: "{target}": {room} may use no header that is not installed')
            elif name is not None and public_name(there) is None:
                bad.append(f'{where}: "{target}": a public header includes one that is not installed')
            elif alone and not header_only(public_name(there)):
                bad.append(f'{where}: "{target}" needs the compiled library; {name} is header-only')
    return bad


def has_library(compiler, *flags):
    """Is there a C++ standard library for these flags?"""
    command = [compiler, *flags, "-std=c++20", "-fsyntax-only", "-x", "c++", "-"]
    return subprocess.run(command, input="#include <string>\n", capture_output=True, text=True).returncode == 0


# Members of a template are compiled where they are used: here, all of them.
INSTANCES = {"queue/ring": "namespace sdma { template class Ring<Producers::one>; template class Ring<Producers::many>; }\n"}


def alone(root, *compilers):
    """each public header compiles as the only include, as C++20 and C++23, the header-only ones without exceptions and RTTI"""
    headers = files(root, "include", suffixes=(".hpp",))
    bare = [path for path in headers if header_only(public_name(path))]
    if not headers or not compilers:
        return ["nothing to compile: no compiler, or no header"]
    # Whether a header includes what it uses is the same question for every compiler that has the same standard library: the
    # newest clang answers it for all headers in one run. If it cannot, or finds something, each header is compiled by itself.
    clangs = [compiler for compiler in compilers if "clang" in pathlib.PurePath(compiler).name]
    own = {str(path.relative_to("include")): root / path for path in headers}
    used = set().union(*(standard_headers(root, path, set()) for path in headers))
    flags = [*WARNINGS, f"-I{root / 'include'}"]
    jobs = [[(compilers[0], [path], "c++20") for path in headers]]
    if clangs and modules.complete(clangs[-1], flags, own, used):
        jobs = []
    # Every compiler compiles all of them in two units, the second in reverse order.
    units = [unit for unit in (bare, headers[::-1]) if unit and (unit is bare or unit != bare)]
    jobs.append([(compiler, unit, "c++20") for compiler in compilers for unit in units])
    # The newer standard, and with it a compiler of which sdma/core/compiler.hpp knows nothing.
    more = [(compiler, headers[::-1], "c++2b") for compiler in compilers]
    more += [(compiler, bare, "c++2b", "-DSDMA_STANDARD_ONLY") for compiler in compilers if bare]
    # Another standard library, and a std::size_t of 32 bits, where they are installed.
    for target in (["clang++", "-stdlib=libc++"], ["g++", "-m32"]):
        found = [c for c in compilers if pathlib.PurePath(c).name == target[0]]
        if not found or not has_library(found[0], *target[1:]):
            print(f"skipped: {' '.join(target)} is not installed")
            continue
        more.append((found[0], headers[::-1], "c++20", *target[1:]))
    jobs.append(more)

    def compile_one(job):
        compiler, paths, standard, *define = job
        extra = ["-fno-exceptions", "-fno-rtti"] if all(header_only(public_name(p)) for p in paths) else []
        extra += define
        command = [compiler, f"-std={standard}", "-fsyntax-only", *flags, *extra, "-x", "c++", "-"]
        text = "".join(f'#include "{path.relative_to("include")}"\n' for path in paths)
        text += "".join(INSTANCES.get(public_name(path), "") for path in paths)
        done = subprocess.run(command, input=text, capture_output=True, text=True)
        what = "alone" if len(paths) == 1 else f"with {len(paths) - 1} others"
        return "" if done.returncode == 0 else f"{paths[0]}:1: {what}, by {' '.join(command)}:\n{done.stderr}"

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for some in jobs:
            bad = [complaint for complaint in pool.map(compile_one, some) if complaint]
            if bad:
                return bad
    return []


# Every warning that clang 14 to 22 have, but for those that docs/embedding.md gives a reason for. An older clang does not know all of them.
EVERYTHING = [
    "-Weverything", "-Wno-c++98-compat", "-Wno-c++98-compat-pedantic", "-Wno-c++20-compat", "-Wno-padded", "-Wno-unknown-warning-option",
    "-Wno-unsafe-buffer-usage", "-Wno-switch-default", "-Wno-nrvo",
]
EVERYTHING_PAGE = pathlib.PurePath("docs/embedding.md")


def everything(root, *compilers):
    """clang compiles all public headers without a warning under -Weverything, with the flags that docs/embedding.md gives"""
    headers = files(root, "include", suffixes=(".hpp",))
    if not (root / EVERYTHING_PAGE).is_file() or " ".join(EVERYTHING) not in " ".join(read(root, EVERYTHING_PAGE).split()):
        return [f"{EVERYTHING_PAGE}:1: does not give these flags: {' '.join(EVERYTHING)}"]
    bad = []
    for compiler in compilers:
        if "clang" not in pathlib.PurePath(compiler).name:
            continue
        command = [compiler, "-std=c++20", "-fsyntax-only", *EVERYTHING, f"-I{root / 'include'}", "-x", "c++", "-"]
        text = "".join(f'#include "{path.relative_to("include")}"\n' for path in headers)
        done = subprocess.run(command, input=text, capture_output=True, text=True)
        found = re.findall(rf"^{re.escape(str(root))}/(\S+?): (?:warning|error): (.*)$", done.stderr, flags=re.M)
        bad += [f"{where}: {message}" for where, message in found]
        if done.returncode != 0 and not found:
            bad.append(f"include: {done.stderr}")
    return bad


STANDARD = pathlib.PurePath("include/sdma/core/standard.hpp")
OLDER = "sdma needs C++20"


def first_include(root, path):
    """The first file that this header includes: (kind, target), or None."""
    match = re.search(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', read(root, path), flags=re.M)
    return match.groups() if match else None


def standard(root, *compilers):
    """an older standard than C++20 gets one sentence: each public header includes core/standard.hpp before anything else"""
    headers = files(root, "include", suffixes=(".hpp",))
    bad = []
    for path in headers:
        at, seen = path, set()
        while at != STANDARD and at not in seen:
            seen.add(at)
            kind, target = first_include(root, at) or ("", "")
            following = pathlib.PurePath("include", target)
            before = [line.strip() for _, line in code_lines(read(root, at).partition("#include")[0])]
            if kind != '"' or not (root / following).is_file() or any(line not in ("", "#pragma once") for line in before):
                bad.append(f"{path}:1: {at} does not begin with {STANDARD.relative_to('include')} or a header that does")
                break
            at = following

    def complaint(compiler):
        # One unit is enough, because all headers begin in the same way.
        command = [compiler, "-std=c++17", "-fsyntax-only", f"-I{root / 'include'}", "-x", "c++", "-"]
        text = "".join(f'#include "{path.relative_to("include")}"\n' for path in headers)
        done = subprocess.run(command, input=text, capture_output=True, text=True)
        errors = [line for line in done.stderr.split("\n") if re.search(r"\berror: ", line)]
        if errors and OLDER in errors[0] and len(errors) <= 2:
            return ""
        return f"{STANDARD}:1: as C++17, by {compiler}: {len(errors)} errors, the first is {errors[0] if errors else 'none'}"

    return bad or [said for said in map(complaint, compilers) if said]


COMPILER = pathlib.PurePath("include/sdma/core/compiler.hpp")
OWN_WORDS = re.compile(r"\bgnu::|\b__attribute__|\b__atomic_|\b__builtin_|\b__extension__|\basm\b|\bno_unique_address\b|\bmsvc::|\b__declspec\b|\b_mm_")
# Where a compiler's word has no other form.
OWN_WORDS_IN = {
    pathlib.PurePath("include/sdma/core/atomic_ref.hpp"): "the accesses that make up a std::atomic_ref",
}


def attributes(root):
    """no public header uses an attribute, a builtin or assembly of one compiler, except core/compiler.hpp"""
    return [
        f"{path}:{number}: {match.group()}: give it a macro in {COMPILER}"
        for path in files(root, "include", suffixes=(".hpp",))
        if path != COMPILER and path not in OWN_WORDS_IN
        for number, line in code_lines(read(root, path))
        if (match := OWN_WORDS.search(line))
    ]


RANGES = re.compile(r"\bstd::(ranges|views)::")


def ranges(root):
    """the library uses nothing of std::ranges: the libc++ of some clients has no algorithms there"""
    return [
        f"{path}:{number}: {match.group()}: use the algorithm that takes iterators"
        for path in files(root, "include", "lib")
        for number, line in code_lines(read(root, path))
        if (match := RANGES.search(line))
    ]


# Megabytes that GCC allocates for a header, less those for the standard headers that it includes. They do not depend on the
# machine or its load, and follow the time: 20 MB take about 0.1 s.
WEIGHTS = {
    "queue/ring": 20, "stream/writer": 36, "packets/lengths": 11, "packets/registry": 82, "sync/wait": 32, "sync/hsa": 54,
    "sync/submission": 50,
}


def standard_headers(root, path, seen):
    """The standard headers that this one and those below it include, without those that a condition includes."""
    found = set()
    if path in seen:
        return found
    seen.add(path)
    depth = 0
    for word, kind, target in re.findall(r'^\s*#\s*(if|endif|include)\w*(?:\s*([<"])([^>"]+)[>"])?', read(root, path), flags=re.M):
        depth += (word == "if") - (word == "endif")
        if word != "include" or depth != 0:
            continue
        below = pathlib.PurePath("include", target)
        if kind == '"' and (root / below).is_file():
            found |= standard_headers(root, below, seen)
        elif re.fullmatch(r"\w+", target):
            found.add(target)
    return found


def allocated(compiler, root, text):
    """Megabytes, or None if this compiler does not report them."""
    command = [compiler, "-std=c++20", "-fsyntax-only", "-ftime-report", f"-I{root / 'include'}", "-x", "c++", "-"]
    report = subprocess.run(command, input=text, capture_output=True, text=True).stderr
    match = re.search(r"^ TOTAL .*?(\d+)([kMG])$", report, flags=re.M)
    return int(match[1]) * {"k": 1 / 1024, "M": 1, "G": 1024}[match[2]] if match else None


def weight(root, *compilers):
    """the headers that a runtime includes in many files stay light to compile"""
    bad = []
    for name, most in WEIGHTS.items():
        path = pathlib.PurePath("include/sdma", f"{name}.hpp")
        if not (root / path).is_file():
            continue
        base = "".join(f"#include <{target}>\n" for target in sorted(standard_headers(root, path, set())))
        for compiler in compilers:
            whole, part = (allocated(compiler, root, text) for text in (f'#include "sdma/{name}.hpp"\n', base))
            if whole is not None and part is not None and whole - part > most:
                bad.append(f"{path}:1: {compiler} allocates {whole - part:.0f} MB for it; {most} at most")
    return bad


# It has 64 bits, so it is no part of a dword.
SIZE = re.compile(r"\b((uint64_t|size_t)\{\d+\}|\d+ull) << \d+")
WIRE = [
    (re.compile(r"(<<|>>)=?\s*(8|16|24|27|28|29|30|31)[uUlL]*\b"), "a shift by a packet's bit number"),
    (re.compile(r"(?<![&|])[&|]=?\s*~?\s*0[xX][0-9a-fA-F']+|\b0[xX][0-9a-fA-F']+[uUlL]*\s*[&|](?![&|])"), "a mask"),
    (re.compile(r"\b(d|dw|dwords?|head|raw|packet)\s*(\(\))?\[\s*\d+[uU]?\s*\]"), "the index of a dword"),
]


def allowed(root):
    """tests/hygiene/wire_allow.txt: [(number, path, fragment, reason)]. No file: nothing is allowed."""
    path = root / "tests/hygiene/wire_allow.txt"
    entries = []
    if path.exists():
        for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
            if line.strip() and not line.startswith("#"):
                parts = re.split(r"\s+::(?:\s+|$)", line.strip())
                entries.append((number, *(parts + ["", ""])[:3]))
    return entries


def wire(root):
    """no shift, mask or dword index of a packet outside packets/, except what wire_allow.txt gives a reason for"""
    entries, used, bad = allowed(root), set(), []
    for path in files(root, "include", "lib", "tools"):
        if "packets" in path.parts:
            continue
        original = read(root, path).split("\n")
        for number, line in code_lines(read(root, path)):
            for pattern, what in WIRE:
                if not pattern.search(SIZE.sub("", line)):
                    continue
                excuses = {e[0] for e in entries if e[1] == str(path) and e[2] and e[2] in original[number - 1]}
                used |= excuses
                if not excuses:
                    bad.append(f"{path}:{number}: {what}: {original[number - 1].strip()}")
    for number, path, fragment, reason in entries:
        where = f"tests/hygiene/wire_allow.txt:{number}"
        if len(reason.split()) < 3:
            bad.append(f"{where}: gives no reason")
        if number not in used:
            bad.append(f"{where}: allows what is no longer there: {path} :: {fragment}")
    return bad


def length(root):
    """no file of include/, lib/, collectives/ and tools/ has more than 500 lines"""
    bad = []
    for path in files(root, "include", "lib", "collectives", "tools"):
        lines = len(read(root, path).splitlines())
        if lines > MAX_LINES:
            bad.append(f"{path}:{lines}: {lines} lines; {MAX_LINES} at most")
    return bad


COLUMNS, PAGE_COLUMNS = 120, 140
WRAPPED = ("include", "lib", "collectives", "tools", "examples", "bench", "tests", "integration", "playground", "python")
# A program writes it, from the words of tests/museum.
WRITTEN = pathlib.PurePath("docs/museum.md")
# Comments and characters are here so that no literal begins in them.
LITERAL = re.compile(r'''//[^\n]*|/\*.*?\*/|'(?:\\[^\n]+?|[^'\\\n])'|R"(\w*)\(.*?\)\1"\w*|"(?:\\.|[^"\\\n])*"\w*''', flags=re.S)


def long_code(text):
    """(number, line) of a source that are too long, and have no reason to be."""
    # In the copy, each character of a string is a NUL.
    hidden = lambda m: re.sub(r"[^\n]", "\0", m[0]) if m[0].startswith(('"', 'R"')) else m[0]
    copy = LITERAL.sub(hidden, text).split("\n")
    by_hand = False
    for number, line in enumerate(text.split("\n"), 1):
        shown = copy[number - 1]
        if marker := re.match(r"\s*// clang-format (on|off)\b", shown):
            by_hand = marker[1] == "off"
        if len(line) <= COLUMNS or (by_hand and not shown.lstrip().startswith("//")):
            continue
        # A literal that begins in time, and nothing but punctuation after it.
        if not re.fullmatch(rf"[^\n]{{0,{COLUMNS - 1}}}\0+[^\w\0]*", shown):
            yield number, line


def long_prose(text):
    """(number, line) of a page that are too long: not those of tables, code blocks, and with nothing but a link."""
    for number, line in prose_of_page(text):
        link = re.fullmatch(r"\s*(?:[-*] )?\S*\[[^\]]*\]\(\S+\)\S*", line)
        if len(line) > PAGE_COLUMNS and not link and not line.lstrip().startswith("|"):
            yield number, line


def prose_of_page(text):
    code = False
    for number, line in enumerate(text.split("\n"), 1):
        fence = line.lstrip().startswith("```")
        code ^= fence
        if not code and not fence:
            yield number, line


def columns(root):
    """a line of C++ ends at column 120 and one of Markdown at 140, but for literals, tables by hand, links and output"""
    bad = []
    for path in files(root, *WRAPPED):
        bad += [f"{path}:{number}: {len(line)} columns; {COLUMNS} at most" for number, line in long_code(read(root, path))]
    pages = [path.relative_to(root) for path in sorted(root.glob("*.md"))] + files(root, *SPDX_FOLDERS, suffixes=(".md",))
    for path in pages:
        if path != WRITTEN:
            bad += [f"{path}:{number}: {len(line)} columns; {PAGE_COLUMNS} at most" for number, line in long_prose(read(root, path))]
    return bad


# In pieces, so that this file does not find itself.
LEFT_OPEN = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X)\b")
OWN_MACHINE = re.compile(r"(?<![\w./$}])/(home/[a-z]|Users/[A-Za-z]|root/|work/|farm/)")

# Where prose follows CONTRIBUTING.md, section Words: files, and folders with all that they contain. To bring a folder under
# the rules (include, lib, collectives, tools, examples), clean it and add it here.
PROSE = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "docs", "collectives", "tools", "examples", "bench", "python", "lib/emulator"]
PROSE += [f"include/sdma/{room}" for room in ("core", "packets", "stream", "queue", "sync", "engine", "device")]
PROSE += [f"lib/{room}" for room in ("core", "stream", "queue", "sync", "engine", "device", "kfd")]
PROSE += [f"{root}/{room}" for root in ("include/sdma", "lib") for room in ("check", "draw", "schedule", "simulate", "trace")]
PROSE_RULES = [
    (re.compile(pattern, re.I), advice)
    for pattern, advice in (
        (r"(?<!there )\b(is|are|was|were) no (?!longer\b|(more|less|fewer) than\b)[a-z]", "'is not a', 'has no'"),
        (r"(?<![-\w])behind\b(?!-)", "'after'"),
        (r"\bunless (given|set|told|asked|named)\b", "'by default'"),
        (r"\blook(s|ed|ing)? at\b", "'read', 'check' or 'examine'"),
        (r"\bsa(y|ys|id) of\b|\b(is|are|be|was) told\b", "'report' or 'notify'"),
        (r"\b(whoever|somebody|nobody|anybody|everybody)\b", "the name of the queue, thread or caller"),
        (r"\bstands? (at|before|in front|there|still|where)\b", "'is' or 'stalls'"),
        (r"\b(all that|what) is (earlier|later)\b", "'earlier packets', 'later packets'"),
        (r"(?:^|[.:;|*] +)(?-i:Of) (?!course\b)[a-z]", "the subject first"),
        (r", for (it|they|there|we)\b", "'because'"),
        (r"\b(one|once|each|\d+) an? (batch|engine|gpu|line|link|packet|queue|round|run|thread|word)\b", "'per'"),
    )
]


def prose_lines(path, text):
    """(number, line) with the prose alone: Markdown without code and link targets, a source's comments and strings."""
    blank = lambda match: re.sub(r"[^\n]", " ", match.group())
    if path.suffix == ".md":
        span, target = r"`[^`\n]*(\n[^`\n]*)?`", r"(?<=\])\([^)\n]*\)"
        for code in (r"(?ms)^```.*?^```", r"(?m)^    .*$", span, target):
            text = re.sub(code, blank, text)
    else:
        kept = re.finditer(r'"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/|\n', text, flags=re.S)
        text = "".join(match.group() for match in kept)
    return list(enumerate(text.split("\n"), 1))


def wording(root):
    """Complaints about the prose of PROSE; part of `words`."""
    bad = []
    paths = [pathlib.PurePath(p) for p in PROSE if (root / p).is_file()]
    paths += files(root, *(p for p in PROSE if (root / p).is_dir()), suffixes=(".md", *SOURCES))
    for path in paths:
        text = read(root, path)
        original = text.split("\n")
        for number, line in prose_lines(path, text):
            for pattern, advice in PROSE_RULES:
                match = pattern.search(line)
                if not match:
                    continue
                found = match.group().strip()
                bad.append(f"{path}:{number}: '{found}': write {advice}: {original[number - 1].strip()}")
    return bad


def words(root):
    """nothing is left open, no path of somebody's machine, and no wording that CONTRIBUTING.md rules out"""
    bad = wording(root)
    for folder, folders, names in os.walk(root):
        # Build folders hold the machine's paths by their nature; hidden ones are not ours, except .ci.
        folders[:] = sorted(
            f for f in folders if f == ".ci" or not (f.startswith(("build", "__", ".")) or f == "subprojects")
        )
        for name in sorted(names):
            path = pathlib.Path(folder, name)
            # .git is a file in a worktree, with a path of the machine.
            if path.is_symlink() or not path.is_file() or name == ".git":
                continue
            try:
                text = path.read_text(encoding="utf-8")
            except UnicodeDecodeError:
                continue  # a ring dump, a corpus
            for number, line in enumerate(text.split("\n"), 1):
                # The other lines of a patch are those of what it patches.
                if path.suffix == ".patch" and not line.startswith("+"):
                    continue
                for pattern in (LEFT_OPEN, OWN_MACHINE):
                    if match := pattern.search(line):
                        bad.append(f"{path.relative_to(root)}:{number}: {match.group().strip()}: {line.strip()}")
    return bad


OVERLAY = [
    (re.compile(r"\breinterpret_cast\b"), "reinterpret_cast: dwords become packets through their layout"),
    (
        re.compile(r"^\s*(?:std::)?u?(?:int|unsigned|bool|char|short|long)\w*\s+\w*\s*:\s*\d+"),
        "a bit-field: its order is the compiler's",
    ),
]


def overlay(root):
    """no packet is laid over memory: no reinterpret_cast and no bit-field in include/sdma/packets"""
    return [
        f"{path}:{number}: {what}"
        for path in files(root, "include/sdma/packets")
        for number, line in code_lines(read(root, path))
        for pattern, what in OVERLAY
        if pattern.search(line)
    ]


def paragraph(root):
    """each public header begins with a comment that says what it is"""
    bad = []
    for path in files(root, "include", suffixes=(".hpp",)):
        lines = [line.strip() for line in read(root, path).split("\n")]
        lines = [line for line in lines if line != "#pragma once" and SPDX not in line]
        while lines and not lines[0]:
            lines.pop(0)
        said = []
        while lines and lines[0].startswith("//"):
            said += lines.pop(0).lstrip("/!").split()
        if len(said) < 6:
            bad.append(f"{path}:1: begins with no paragraph that says what it is")
    return bad


# A wait that ends at a figure of our own, and not at the caller's Deadline: the figure, as the manual of what waits says it,
# and that manual. None: a nap, after which the wait goes on.
OWN_BOUND = re.compile(r"(?<!deadline = )Deadline::in\(((?:std::chrono::|share::)?(?:[a-z]+\(\d+\)|k[A-Z]\w*|\d+[a-z]+))\)")
OWN_BOUNDS = {
    ("collectives/run.cpp", "kPublish"): ("10 s", "collectives/run.hpp"),
    ("lib/device/cuda/issue.cpp", "kAnswer"): ("10 s", "include/sdma/device/cuda.hpp"),
    ("lib/device/cuda/cuda_memory.hpp", "kLong"): ("60 s", "include/sdma/device/cuda.hpp"),
    ("lib/device/cuda/cuda_node.hpp", "kAnswer"): ("10 s", "include/sdma/device/cuda.hpp"),
    ("lib/device/cuda/cuda_node.hpp", "std::chrono::hours(1)"): None,
    ("lib/device/cuda/cuda_queue.cpp", "kLongest"): ("10 s", "include/sdma/device/cuda.hpp"),
    ("lib/device/shared_node.hpp", "share::kAnswer"): ("ten seconds", "include/sdma/device/memory.hpp"),
    ("lib/device/soft_engine.cpp", "1h"): None,
    ("lib/device/soft_queues.cpp", "1h"): None,
    ("lib/emulator/queues/crew.hpp", "std::chrono::milliseconds(1)"): ("1 ms", "lib/emulator/queues/crew.hpp"),
    ("lib/emulator/queues/crew.hpp", "std::chrono::seconds(1)"): ("1 s", "lib/emulator/queues/crew.hpp"),
    ("lib/emulator/model/model.cpp", "std::chrono::seconds(60)"): ("60 s", "lib/emulator/model/model.hpp"),
    ("lib/emulator/node/memory_objects.hpp", "std::chrono::seconds(60)"): ("60 s", "lib/emulator/node/memory_objects.hpp"),
    ("lib/engine/conductor.cpp", "kLook"): None,
    ("lib/engine/worker.hpp", "std::chrono::milliseconds(1)"): None,
    ("lib/litmus/device.cpp", "kLongest"): ("two seconds", "lib/litmus/device.hpp"),
    ("lib/schedule/host_threads.cpp", "kLook"): None,
    ("lib/schedule/network_thread.cpp", "kLeave"): ("two seconds", "include/sdma/schedule/bind.hpp"),
    ("lib/schedule/ranks.cpp", "std::chrono::seconds(1)"): ("a second", "include/sdma/schedule/exchange.hpp"),
}
TIMEOUT = re.compile(r"nanoseconds [a-z_]*timeout\b")


def waits(root):
    """a wait ends at the caller's Deadline, or at a figure that its manual names; no public option is called a timeout"""
    bad, seen = [], set()
    for path in files(root, "include", "lib", "collectives"):
        for number, line in code_lines(read(root, path)):
            for bound in OWN_BOUND.findall(line):
                seen.add((str(path), bound))
                if (str(path), bound) not in OWN_BOUNDS:
                    bad.append(f"{path}:{number}: ends at {bound}: take a Deadline, or name the figure in a manual and list it in OWN_BOUNDS")
            if path.parts[0] == "include" and TIMEOUT.search(line):
                bad.append(f"{path}:{number}: a timeout: take a Deadline, or call it the limit of what it limits")
    for (path, bound), named in OWN_BOUNDS.items():
        if not (root / path).is_file():
            continue
        if (path, bound) not in seen:
            bad.append(f"{path}:1: does not end at {bound}: it need not be listed in OWN_BOUNDS")
        elif named and named[0] not in read(root, named[1]):
            bad.append(f"{named[1]}:1: does not say that {path} waits for {named[0]}")
    return bad


# Forms that have comments, where the first line is ours to write. .reuse/dep5 speaks for all others.
COMMENTED = SOURCES + (".hpp.in", ".py", ".pyi", ".js", ".css", ".html", ".sh", ".toml", ".map", "meson.build", "meson_options.txt", "CMakeLists.txt")
SPDX_FOLDERS = ("bench", "collectives", "docs", "examples", "findings", "include", "integration", "lib", "playground", "python", "scripts", "share", "site", "tests", "tools")
SPDX = "SPDX-License-Identifier: MIT"


def licence(root):
    """every source names its licence in its first lines, and the licence lies in the folder of headers, with which it is copied"""
    bad = []
    for path in sorted(p for folder in SPDX_FOLDERS for p in (root / folder).rglob("*") if p.is_file()):
        text = path.read_bytes()[:200]
        if (path.name.endswith(COMMENTED) or text.startswith(b"#!")) and SPDX.encode() not in text:
            bad.append(f"{path.relative_to(root)}:1: has no line {SPDX}")
    texts = [root / "LICENSE", root / "include/sdma/LICENSE"]
    if len({path.read_text(encoding="utf-8") if path.is_file() else path for path in texts}) != 1:
        bad.append("include/sdma/LICENSE:1: differs from LICENSE")
    return bad


# Where the version is written. The compiler compares the first two, too.
VERSIONS = {
    "meson.build": r"(?m)^  version: '([\d.]+)'",
    "include/sdma/core/version.hpp": r'SDMA_VERSION_STRING "([\d.]+)"',
    "CHANGELOG.md": r"(?m)^## \[([\d.]+)\]",
    "debian/changelog": r"\Asdma \(([\d.]+)(?:~dev)?\)",
    "CITATION.cff": r"(?m)^version: ([\d.]+)$",
    "share/ci/github.yml": r"(?m)^  SDMA_TAG: v([\d.]+)$",
}
# Whether that version is released.
RELEASED = {
    "meson.build": r"(?m)^released = true$",
    "CHANGELOG.md": r"\A(?:(?!^## ).*\n)*## \[[\d.]+\] - \d{4}-\d\d-\d\d$",
    "debian/changelog": r"\Asdma \([\d.]+\)",
}
# What the last release promised.
LAST_RELEASE = {"tests/stability/names.txt": r"(?m)^# of ([\d.]+)$", "tests/stability/layouts.txt": r"(?m)^# of ([\d.]+),"}


def version(root):
    """the build, headers, changelogs, pages and lists of the last release have one version, and agree whether it is released"""
    found = {path: re.search(pattern, read(root, path)) if (root / path).is_file() else None for path, pattern in VERSIONS.items()}
    bad = [f"{path}:1: has no version" for path, match in found.items() if not match]
    numbers = {path: match[1] for path, match in found.items() if match}
    first = next(iter(numbers.values()), "")
    released = {path: bool(re.search(pattern, read(root, path), re.M)) for path, pattern in RELEASED.items() if path in numbers}
    lists = {path: re.search(pattern, read(root, path)) for path, pattern in LAST_RELEASE.items() if (root / path).is_file()}
    released |= {path: bool(match and match[1] == first) for path, match in lists.items()}
    bad += [f"{path}:1: says that {first} is {'' if yes else 'not '}released; meson.build says otherwise"
            for path, yes in released.items() if yes != released.get("meson.build")]  # fmt: skip
    return bad + [f"{path}:1: version {number}, but meson.build has {first}" for path, number in numbers.items() if number != first]


# What the build requires, by each of its names.
REQUIRED = {"fmt": "fmt", "libfmt-dev": "fmt", "meson": "Meson", "meson_version": "Meson", "nlohmann-json": "nlohmann-json",
            "nlohmann-json3-dev": "nlohmann-json", "nlohmann_json": "nlohmann-json", "pybind11": "pybind11", "pybind11-dev": "pybind11",
            "sqlite3": "SQLite", "libsqlite3-dev": "SQLite"}  # fmt: skip
# dependency('a', version: '>=1'), a (>= 1), "a>=1", find_dependency(a 1), "a 1" in a sentence.
REQUIREMENT = re.compile(rf"(?<![\w-])({'|'.join(map(re.escape, REQUIRED))})(?:', version|)(?:: '>=| \(>= |>=| >= | )(\d+(?:\.\d+)*)")


def requirements(root):
    """everything that names a version of what the build requires names the same: Meson, Debian's packages, the wheel, CMake, README"""
    places = [root / name for name in ("debian/control", "pyproject.toml", "share/cmake/sdmaConfig.cmake.in", "README.md")]
    places += sorted(path for path in root.rglob("meson.build") if not path.relative_to(root).parts[0].startswith("build"))
    bad, first = [], {}
    for path in filter(pathlib.Path.is_file, places):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            for name, version in REQUIREMENT.findall(line):
                where = f"{path.relative_to(root)}:{number}"
                other, place = first.setdefault(REQUIRED[name], (version, where))
                if other != version:
                    bad.append(f"{where}: {REQUIRED[name]} {version}, but {place} has {other}")
    return bad + [f"debian/control:1: no version of {name} was found" for name in sorted({*REQUIRED.values()} - first.keys())]


DRIVER_LINES = ("- Tests: ", "- Driver: ", "- Run: ")


def drivers(root):
    """each folder of tests/ says in three items of its README.md what it tests, what drives it and how to run it"""
    bad = []
    for folder in sorted(path for path in (root / "tests").iterdir() if path.is_dir()):
        if not any(files(root, folder, suffixes=(".cpp", ".py", ".test"))):
            continue
        path = folder / "README.md"
        where = path.relative_to(root)
        if not path.exists():
            bad.append(f"{where}: missing: three lines, {', '.join(DRIVER_LINES)}")
            continue
        lines = path.read_text(encoding="utf-8").replace("\n  ", " ").splitlines()
        if len(lines) != 3 or not all(map(str.startswith, lines, DRIVER_LINES)):
            bad.append(f"{where}:1: has other lines than {', '.join(DRIVER_LINES)}")
            continue
        for name in re.findall(r"`([\w/.*]+\.\w+)`", lines[0] + lines[1]):
            if not any(root.glob(name)) and not any(folder.glob(name)):
                bad.append(f"{where}: `{name}` is gone")
        built = folder / "meson.build"
        suites = {folder.name} | set(re.findall(r"'(\w+)'", built.read_text(encoding="utf-8") if built.exists() else ""))
        for suite in re.findall(r"--suite (\w+)", lines[2]):
            if suite not in suites:
                bad.append(f"{where}:3: there is no suite {suite}")
    return bad


# Where pages that name files lie. CHANGELOG.md tells the past, and may name what is gone.
PAGES = ["README.md", "CONTRIBUTING.md"]
PATH = re.compile(r"(?:bench|collectives|docs|examples|include|lib|scripts|share|tests|tools)/[\w./{},*-]*")


def spellings(path):
    """`a/{b,c}.hpp` is two paths; an upper-case word is a placeholder (tools/VERB.cpp) where no file has that name."""
    if match := re.match(r"(.*?)\{([^{}]*)\}(.*)", path):
        return [p for word in match[2].split(",") for p in spellings(match[1] + word + match[3])]
    return [path.rstrip("/.,")]


def exists(root, path):
    if (root / path).exists():
        return True
    pattern = re.sub(r"(?<![A-Za-z])[A-Z]{3,}(?![A-Za-z])", "*", path)
    return "*" in pattern and any(True for _ in root.glob(pattern))


def paths(root):
    """every file that a page names in a code span or links to exists"""
    bad = []
    for page in [pathlib.PurePath(p) for p in PAGES if (root / p).is_file()] + files(root, "docs", suffixes=(".md",)):
        text = re.sub(r"(?ms)^```.*?^```", lambda match: re.sub(r"[^\n]", " ", match.group()), read(root, page))
        for number, line in enumerate(text.split("\n"), 1):
            named = [p for span in re.findall(r"`([^`]+)`", line) if (m := PATH.match(span)) for p in spellings(m.group())]
            linked = re.findall(r"\]\(([^)\s#:]+)(?:#[^)]*)?\)", line)
            wrong = [p for p in named if not exists(root, p)]
            wrong += [p for p in linked if not (root / page.parent / p).exists()]
            bad += [f"{page}:{number}: {p}: there is no such file" for p in wrong]
    return bad


INDEX = pathlib.PurePath("docs/README.md")
# A page of the index, and what it is for.
INDEXED = re.compile(r"(?m)^- \[[^\]]+\]\(([^)#]+)\): \S")


def index(root):
    """docs/README.md lists each page of docs in an item of its own, with what it is for"""
    listed = set(INDEXED.findall(read(root, INDEX))) if (root / INDEX).is_file() else set()
    pages = [path.relative_to("docs") for path in files(root, "docs", suffixes=(".md",)) if path != INDEX]
    return [f"{INDEX}:1: does not list docs/{page}: add '- [TITLE]({page}): WHAT IT IS FOR'" for page in pages if str(page) not in listed]


def history(root):
    """CHANGELOG.md has one paragraph for each release before the last one: their details are in git"""
    sections = re.split(r"(?m)^## ", read(root, pathlib.PurePath("CHANGELOG.md")))[1:]
    released = [section.strip() for section in sections if " - unreleased" not in section.split("\n")[0]]
    return [f"CHANGELOG.md: {section.split(chr(10))[0]}: more than one paragraph, and not the last release: cut it to what the release was"
            for section in released[1:] if section.count("\n\n") > 1]  # fmt: skip


# Clients that tests/consume/consume.py builds outside of this tree.
BUILT_ELSEWHERE = pathlib.PurePath("tests/consume")


def sources(root):
    """every source is named in a meson.build of its folder or of one above"""
    builds = {}
    bad = []
    for path in files(root, "lib", "collectives", "tools", "examples", "tests", "bench", suffixes=(".cpp",)):
        if BUILT_ELSEWHERE in path.parents:
            continue
        for folder in path.parents:
            if folder not in builds:
                build = root / folder / "meson.build"
                builds[folder] = build.read_text(encoding="utf-8") if build.is_file() else ""
        if not any(re.search(rf"['/]{re.escape(path.stem)}(\.cpp)?'", builds[folder]) for folder in path.parents):
            bad.append(f"{path}:1: no meson.build names it, so nothing compiles it")
    return bad


# Where sources have the names that others give them.
NAMED_BY_OTHERS = {
    "tools/verbs": "a source is called as its verb is: tools/meson.build lists them",
}
MOST_OF_A_NAME = 2


def names(root):
    """at most two private sources of the library and its clients have the same name; what implements a public header has that of the header"""
    folders = {}
    for path in files(root, "lib", "tools", "collectives", "integration", "python", "bench"):
        public = root / "include/sdma" / pathlib.PurePath(*path.parts[1:]).with_suffix(".hpp")
        if str(path.parent) not in NAMED_BY_OTHERS and not (path.parts[0] == "lib" and public.is_file()):
            folders.setdefault(path.stem, set()).add(str(path.parent))
    return [
        f"{sorted(all)[-1]}: {name} is also the name of a source in {', '.join(sorted(all)[:-1])}: call it by what differs"
        for name, all in sorted(folders.items())
        if len(all) > MOST_OF_A_NAME
    ]


# Of these a reader of tags sees nothing: macros, includes, another library's sources.
WITHOUT_TAGS = {"include/sdma/core/standard.hpp", "include/sdma/sdma.hpp", "lib/pch/runtime.hpp", "lib/standalone/fmt.cpp"}


def tags(root, ctags):
    """Universal Ctags, which editors and code search use, reads what each source of the library declares"""
    sources = [str(path) for path in files(root, "include", "lib") if path.suffix in (".hpp", ".cpp")]
    command = [ctags, "--options=NONE", "-f-", "--sort=no", "--language-force=C++", "-L-"]
    listed = subprocess.run(command, input="\n".join(sources), capture_output=True, text=True, cwd=root, check=True).stdout
    # A nameless namespace has a name of its own making: that is no tag.
    read = {line.split("\t")[1] for line in listed.splitlines() if not line.startswith(("!_", "__anon"))}
    unread = [path for path in sources if path not in read and path not in WITHOUT_TAGS]
    bad = [f"{path}: Universal Ctags finds no name in it; write 'namespace sdma {{ inline namespace v0_3 {{'" for path in unread]
    return bad + [f"{path}: has tags: it need not be listed in WITHOUT_TAGS" for path in sorted(WITHOUT_TAGS & read)]


def exports(root, *libraries):
    """the library defines no symbol outside the namespace sdma, but for instances of templates"""
    bad = []
    for library in libraries:
        command = ["nm", "--dynamic", "--defined-only", "--format=posix", library]
        symbols = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\n")
        strong = [line.split()[0] for line in symbols if line and line.split()[1] in "ABCDGRSTi"]
        if not strong:
            bad.append(f"{library}: no symbol")
        bad += [f"{library}: it defines {name}, which is not in sdma" for name in strong if "4sdma" not in name]
    return bad


CHECKS = {
    check.__name__: check
    for check in (includes, alone, everything, standard, attributes, ranges, weight, wire, length, columns, words, overlay, paragraph, waits, licence, version, requirements, drivers, paths, index, history, sources, names, tags, exports)
}


def main(arguments):
    if arguments == ["--list"]:
        for name, check in CHECKS.items():
            print(f"{name:10} {check.__doc__}")
        return 0
    if len(arguments) < 2 or arguments[0] not in CHECKS:
        print(__doc__, file=sys.stderr)
        return 2
    if not pathlib.Path(arguments[1]).is_dir():
        sys.exit(f"hygiene.py: {arguments[1]}: there is no such folder")
    check = CHECKS[arguments[0]]
    complaints = check(pathlib.Path(arguments[1]).resolve(), *arguments[2:])
    if complaints:
        print(*complaints, sep="\n")
        print(f"{len(complaints)} against the rule: {check.__doc__}")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
