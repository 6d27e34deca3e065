#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Each source compiles by itself, and all sources of a library compile as one file: whatever groups a build makes of them.

  units.py ROOT BUILD COMPILER...

BUILD is a build folder of ROOT with -Dgrouped=true. It says which sources each library has, and their flags. A source may use what
another one of its group includes, which a build without groups refuses. Two sources may define the same name in an unnamed namespace as
long as they are in different groups, and each new source moves the later ones.

A new clang reads the public headers and those of other libraries as modules, once for all sources, which halves the time. What it refuses
is compiled again without modules: that alone decides.
"""
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import hygiene
import modules

FOLDERS = ("lib", "tools", "collectives", "python")
# Headers of others that many sources include, and that take long to read.
OTHERS = {"fmt": ("fmt/format.h", "fmt/ranges.h", "fmt/chrono.h"), "json": ("nlohmann/json.hpp",), "command_line": ("CLI/CLI.hpp",)}


def libraries(root, build):
    """(flags, sources, grouped) of each library or program that BUILD makes of our folders."""
    found = []
    for target in json.loads((build / "meson-info" / "intro-targets.json").read_text(encoding="utf-8")):
        for language in target["target_sources"]:
            names = language.get("sources", [])
            groups = [name for name in language.get("generated_sources", []) if re.search(r"-unity\d+\.cpp$", name)]
            for group in groups:
                names = names + re.findall(r"#include\s*<(.*)>", pathlib.Path(group).read_text(encoding="utf-8"))
            own = [pathlib.Path(os.path.normpath(name)) for name in names if name.endswith(".cpp")]
            own = [path for path in own if path.is_relative_to(root) and path.relative_to(root).parts[0] in FOLDERS]
            # The others say how to optimise and what to warn of.
            flags = [flag for flag in language.get("parameters", []) if re.match(r"-(I|isystem|D|U|std=)", flag)]
            if own:
                found.append((flags, own, bool(groups)))
    return found


def standard_headers(root):
    """Names of the standard headers that our sources include."""
    files = hygiene.files(root, "include", *FOLDERS)
    return {name for path in files for name in re.findall(r"^\s*#\s*include\s*<(\w+)>", hygiene.read(root, path), flags=re.M)}


def module_flags(compiler, root, folder, macros):
    """Flags with which this compiler reads headers as modules; [] if it cannot."""
    paths = modules.search_path(compiler)
    existing = lambda name: next((path / name for path in paths if (path / name).is_file()), None)
    named = lambda names: {name: path for name in sorted(names) if (path := existing(name)) and name not in modules.TEXTUAL}
    own = {str(path.relative_to("include")): root / path for path in hygiene.files(root, "include", suffixes=(".hpp",))}
    text = modules.module("library", named(standard_headers(root)), "[system]")
    text += "".join(modules.module(name, named(headers), "[system]") for name, headers in OTHERS.items())
    (folder / "map").write_text(text + modules.module("headers", own), encoding="utf-8")
    flags = ["-fmodules", "-fno-implicit-module-maps", f"-fmodule-map-file={folder / 'map'}", f"-fmodules-cache-path={folder}",
             "-Xclang", "-fmodules-local-submodule-visibility", "-DFMT_CONSTEVAL=",
             *(f"-fmodules-ignore-macro={name}" for name in sorted({*macros, "_FILE_OFFSET_BITS"}))]  # fmt: skip
    first = next(iter(own), None)
    command = [compiler, "-std=c++20", "-fsyntax-only", f"-I{root / 'include'}", *flags, "-x", "c++", "-"]
    done = first and subprocess.run(command, input=f'#include "{first}"\n', capture_output=True, text=True).returncode == 0
    return flags if done else []


def complaint(compiler, flags, how, sources):
    """What the compiler says of these sources, as one file; "" if it accepts them."""
    text = "".join(f'#include "{path}"\n' for path in sources)
    for more in [how, []] if how else [[]]:
        command = [compiler, "-fsyntax-only", "-w", *flags, *more, "-x", "c++", "-"]
        done = subprocess.run(command, input=text, capture_output=True, text=True)
        if done.returncode == 0:
            return ""
    return done.stderr


def units(root, build, *compilers):
    """each source compiles by itself, and all of a library as one file: groups of sources may change"""
    root = root.resolve()
    found = libraries(root, build.resolve())
    if not compilers or not any(grouped for _, _, grouped in found):
        return ["nothing to compile: no compiler, or no sources in groups"]
    macros = {flag[2:].split("=")[0] for flags, _, _ in found for flag in flags if flag.startswith("-DSDMA_")}
    with tempfile.TemporaryDirectory() as folder:
        compiler, how = compilers[0], []
        if "clang" in pathlib.PurePath(compilers[-1]).name and (how := module_flags(compilers[-1], root, pathlib.Path(folder), macros)):
            compiler = compilers[-1]

        def refused(job):
            flags, sources = job
            what = "alone" if len(sources) == 1 else f"with {len(sources) - 1} others of its library"
            # What functions do is not needed to find names that recur.
            short = ["-Xclang", "-skip-function-bodies"] if how and len(sources) > 1 else []
            said = complaint(compiler, flags, how + short, sources)
            return said and f"{sources[0].relative_to(root)}:1: {what}:\n{said}"

        jobs = [(flags, sources) for flags, sources, grouped in found if grouped]
        jobs += [(flags, [source]) for flags, sources, _ in found for source in sources]
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            return [said for said in pool.map(refused, jobs) if said]


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    bad = units(*map(pathlib.Path, sys.argv[1:3]), *sys.argv[3:])
    print("\n".join(bad))
    sys.exit(bool(bad))
