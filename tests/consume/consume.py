#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The library as its users take it: each way builds a small client from nothing, and runs it.

  consume.py subproject|installed|copied|wheel SOURCE BUILD VERSION COMPILER...

BUILD is a finished build folder of SOURCE, which is installed, and of which the wheel is made; the other ways build what they need.
"""
import concurrent.futures
import errno
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import tomllib
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))
import prebuilt
import release

STRICT = ["-std=c++20", "-fno-exceptions", "-fno-rtti", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror"]
# What is under test is the packaging, not the optimiser.
FAST = ["-Dbuildtype=plain", "-Doptimization=0"]


def run(*command, **options):
    """Prints the command, so that a failure can be repeated by hand, and ends the test if it fails."""
    command = [str(part) for part in command]
    print("+", shlex.join(command), flush=True)
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    print(done.stdout, end="", flush=True)
    if done.returncode:
        sys.exit(f"exit code {done.returncode}")
    return done.stdout


def client(work, name):
    """A fresh copy of the client's project."""
    path = work / name
    shutil.copytree(HERE / "project", path)
    for program in ("headers.cpp", "runtime.cpp", "device.cpp"):
        shutil.copy(HERE / program, path)
    return path


def accepts(compiler, flag):
    """Is the standard library that the flag asks for installed?"""
    command = [compiler, flag, "-std=c++20", "-fsyntax-only", "-x", "c++", "-"]
    return subprocess.run(command, input="#include <string>\n", text=True, capture_output=True).returncode == 0


def targets(build):
    # What Meson has to say goes to the same stream as its warnings; the file holds the answer alone.
    return {target["name"] for target in json.loads((build / "meson-info" / "intro-targets.json").read_text())}


def subproject(source, build, version, work, compilers):
    """(a) In subprojects/ of a Meson project, through a wrap file: only headers and library are built there, or only headers."""
    path = client(work, "client")
    # The archive and the wrap file, as a release has them: dependencies are found in any order.
    files = path / "subprojects" / "packagefiles"
    files.mkdir(parents=True)
    run(source / "scripts" / "release", "--worktree", "--source", files)
    (files / "sdma.wrap").rename(path / "subprojects" / "sdma.wrap")
    # In the GCC build, the last compiler is clang, which needs less time for unoptimised code. Where libc++ is installed, the client
    # and the library use it. Debian's libfmt is built with libstdc++, so fmt is headers alone then. Sources are grouped, as
    # scripts/test groups them: each one by itself would compile for four times as long.
    environment, options = os.environ | {"CXX": compilers[-1]}, []
    if accepts(compilers[-1], "-stdlib=libc++"):
        environment["CXX"] += " -stdlib=libc++"
        options = ["-Dcpp_args=-DFMT_HEADER_ONLY"]
    library = {"device", "runtime", "sdma-runtime", "sdma-device", "sdma-curves"}
    library |= {f"sdma-{part}-objects" for part in ("device", "opening", "simulation")}
    ways = [
        ("whole", [*options, "-Dsdma:grouped=true"], {"headers"} | library),
        ("headers-only", ["-Dwith_runtime=disabled", "-Dsdma:runtime=disabled"], {"headers"}),
    ]
    for name, options, expected in ways:
        built = work / name
        run("meson", "setup", *FAST, f"-Dexpected_version={version}", *options, built, path, env=environment)
        if targets(built) != expected:
            sys.exit(f"built {sorted(targets(built))}, expected {sorted(expected)}")
        clients = sorted(expected & {"headers", "device"})
        run("ninja", "-C", built, *clients)
        run("meson", "test", "-C", built, "--no-rebuild", "--print-errorlogs", *clients)
        if name == "whole":
            examined(built)


def examined(built):
    """The compiler accepts the sources of libsdma-runtime. It writes no code for them, which would take four times as long."""
    commands = json.loads((built / "compile_commands.json").read_text())
    sources = [c for c in commands if "libsdma-runtime" in c["output"] and c["output"].endswith(".o")]
    if not sources:
        sys.exit("there is no source of libsdma-runtime")
    folders = {pathlib.Path(c["output"]).parent for c in sources}
    run("ninja", "-C", built, *(f"{folder}/runtime.hpp.pch" for folder in folders))
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda c: run(*shlex.split(c["command"]), "-fsyntax-only", cwd=built), sources))


def options_of(build):
    """{name: value} of a build folder's options."""
    known = json.loads((build / "meson-info" / "intro-buildoptions.json").read_text())
    return {option["name"]: option["value"] for option in known}


def installed(source, build, version, work, compilers):
    """(b) Through pkg-config after an installation that was moved: headers and library, shared and static; (d) the same with CMake."""
    # The installation is staged, as for a package: the folder `stage` stands for the root of the file system.
    stage, options = work / "stage", options_of(build)
    install = ("meson", "install", "-C", build, "--no-rebuild", "--destdir", stage)
    run(*install)
    # One line removes what was installed.
    run("ninja", "-C", build, "uninstall")
    if left := [path for path in stage.rglob("*") if not path.is_dir() or path.is_symlink()]:
        sys.exit(f"not removed: {left}")
    run(*install)
    # pkg-config and CMake find everything from the places of their files.
    prefix = work / "moved"
    (stage / options["prefix"].lstrip("/")).rename(prefix)
    library = prefix / options["libdir"]
    # A library that looked for others in the build folder would work here, and nowhere else.
    if str(build) in run("readelf", "-d", *library.glob("lib*.so")):
        sys.exit(f"an installed library has a run path into {build}")
    programs_work(prefix, options, version)

    headers = {path.relative_to(source / "include") for path in (source / "include").rglob("*.hpp")}
    found = {path.relative_to(prefix / "include") for path in (prefix / "include").rglob("*.hpp")}
    if headers != found:
        sys.exit(f"installed headers differ: {sorted(map(str, headers ^ found))}")

    environment = os.environ | {
        "PKG_CONFIG_PATH": f"{library}/pkgconfig:{prefix}/share/pkgconfig",
        "LD_LIBRARY_PATH": str(library),
    }

    def flags(*arguments):
        return shlex.split(run("pkg-config", *arguments, env=environment))

    define = f'-DSDMA_EXPECTED_VERSION="{flags("--modversion", "sdma")[0]}"'
    if define != f'-DSDMA_EXPECTED_VERSION="{version}"':
        sys.exit(f"pkg-config says {define}, the project {version}")
    if libraries := [flag for flag in flags("--libs", "sdma") if flag.startswith("-l")]:
        sys.exit(f"the header-only package links {libraries}")
    for compiler in compilers:
        out = work / "program"
        run(compiler, *STRICT, define, HERE / "headers.cpp", *flags("--cflags", "--libs", "sdma"), "-o", out)
        run(out)
        for name, text in {"sdma-runtime": "runtime.cpp", "sdma-device": "device.cpp"}.items():
            run(compiler, "-std=c++20", define, HERE / text, *flags("--cflags", "--libs", name), "-o", out)
            run(out, env=environment)
            static = [library / f"lib{name}.a" if flag == f"-l{name}" else flag for flag in flags("--static", "--libs", name)]
            run(compiler, "-std=c++20", define, HERE / text, *flags("--cflags", name), *static, "-o", out)
            run(out)  # without the library's path: it is inside

    if (library / "libsdma-client.so").exists() and shutil.which("cc"):
        number = sum(int(part) * size for part, size in zip(version.split("."), (10000, 100, 1)))
        out, text = work / "client-c", HERE.parent / "client" / "client.c"
        run("cc", "-std=c11", define, f"-DSDMA_EXPECTED_NUMBER={number}", text, *flags("--cflags", "--libs", "sdma-client"), "-pthread", "-o", out)
        run(out, env=environment)

    path = client(work, "client")
    for way, options in {"config": [f"-DCMAKE_PREFIX_PATH={prefix}", f"-DASKED={version}"], "pkg-config": ["-DPKG_CONFIG=ON"]}.items():
        run("cmake", "-G", "Ninja", "-S", path, "-B", work / way, f"-DCMAKE_CXX_COMPILER={compilers[0]}", *options, env=environment)
        run("cmake", "--build", work / way)
        for program in ("headers", "runtime", "runtime_static", "device"):
            run(work / way / program, env=environment)
    # Versions that this one does not serve, and what it does not have, are refused with a reason.
    major, minor, patch = map(int, version.split("."))
    for asked in (f"{major}.{minor}", f"{major}.{minor}.{patch} EXACT", str(major)):
        found_by_cmake(work, prefix, asked, "")
    for asked, why in {
        f"{major}.{minor + 1}": "version",
        f"{major}.{minor}.{patch + 1}": "version",
        f"{major + 1}": "version",
        f"{major}.{minor} COMPONENTS nothing": "there is no component 'nothing'",
    }.items():
        found_by_cmake(work, prefix, asked, why)


def found_by_cmake(work, prefix, asked, why):
    """find_package(sdma ASKED) succeeds, or fails with a message that contains `why`."""
    path = work / "asked"
    path.mkdir(exist_ok=True)
    text = f"cmake_minimum_required(VERSION 3.20)\nproject(asked CXX)\nfind_package(sdma {asked} REQUIRED)\n"
    (path / "CMakeLists.txt").write_text(text)
    command = ["cmake", "-S", path, "-B", path / "built", "--fresh", f"-DCMAKE_PREFIX_PATH={prefix}"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    said = " ".join(done.stdout.split())
    if (done.returncode == 0) == bool(why) or why not in said:
        sys.exit(f"find_package(sdma {asked}): exit code {done.returncode}, expected {why or 'success'}:\n{done.stdout}")


def programs_work(prefix, options, version):
    """The installed programs and the package for Python find the library, wherever the installation is."""
    alone = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "LD_LIBRARY_PATH")}
    programs = prefix / options["bindir"]
    if not re.match(rf"sdma {re.escape(version)}(-dev(\+[0-9a-f]{{8}})?)?\n", run(programs / "sdma", "--version", env=alone)):
        sys.exit(f"the moved program is not of version {version}")
    schedules = prefix / "share/sdma/examples/schedules"
    run(programs / "sdma", "check", schedules / "2_allgather_b2b.sdma", env=alone)
    run(programs / "sdma", "plan", "all_gather", "-g", "4", env=alone)
    run(programs / "sdma", "perf", "--device=simulate", "-e", "4K", env=alone)
    run(programs / "sdma", "fetch", "--help", env=alone)
    emulated = run(programs / "sdma", "emulate", "--gpus=3", "--", programs / "sdma", "topology", "--device=kfd", env=alone)
    if "3 GPUs" not in emulated and emulated.count("MI300X") < 3:
        sys.exit("the moved program does not find the software node's library")
    for package in prefix.glob("lib/python3*/*-packages"):
        run(sys.executable, "-c", "import sdma; print(sdma.dis([0]))", env=alone | {"PYTHONPATH": str(package)})
    # Each program has a man page and completion, which those that only start a verb of sdma do without.
    for program in programs.iterdir():
        files = [prefix / "share/man/man1" / f"{program.name}.1"]
        if not program.read_bytes().startswith(b"#!/bin/sh"):
            files.append(prefix / "share/bash-completion/completions" / program.name)
        for file in files:
            if not file.is_file():
                sys.exit(f"{file} is missing")


def run_32(program):
    """Runs a program of 32 bits: by the kernel, or by QEMU where the kernel has 64 bits alone."""
    try:
        run(program)
    except OSError as refused:
        if refused.errno != errno.ENOEXEC:
            raise
        run("qemu-i386", program)


def copied(source, build, version, work, compilers):
    """(c) Only include/sdma, copied into somebody else's tree: strict warnings, no exceptions, no RTTI, nothing linked."""
    shutil.copytree(source / "include" / "sdma", work / "vendor" / "sdma")
    for compiler in compilers:
        for optimise in ("-O0", "-O2"):
            run(compiler, *STRICT, optimise, f"-I{work / 'vendor'}", f'-DSDMA_EXPECTED_VERSION="{version}"',
                HERE / "headers.cpp", "-o", work / "program")  # fmt: skip
            run(work / "program")
    # Another standard library, and a std::size_t of 32 bits. Their Debian packages: libc++-dev with libc++abi-dev, g++-multilib.
    for name, flag in (("clang++", "-stdlib=libc++"), ("g++", "-m32")):
        found = [compiler for compiler in compilers if pathlib.PurePath(compiler).name == name]
        if found and accepts(found[0], flag):
            run(found[0], flag, *STRICT, f"-I{work / 'vendor'}", f'-DSDMA_EXPECTED_VERSION="{version}"', HERE / "headers.cpp", "-o",
                work / "program")  # fmt: skip
            run_32(work / "program") if flag == "-m32" else run(work / "program")


def wheel(source, build, version, work, compilers):
    """(e) The package for Python: a wheel of what BUILD has compiled, in an empty virtual environment."""
    options = [f"-Dprefix={sys.base_prefix}", *tomllib.loads((source / "pyproject.toml").read_text())["tool"]["meson-python"]["args"]["setup"],
               "-Ddefault_library=both"]  # fmt: skip
    with prebuilt.reconfigured(source, build, "wheel", *options) as folder:
        settings = [f"builddir={folder}", "setup-args=-Ddefault_library=both"]
        run(sys.executable, "-m", "pip", "wheel", "--no-index", "--no-deps", "--no-build-isolation", "--check-build-dependencies",
            "--wheel-dir", work, *(f"--config-settings={setting}" for setting in settings), source)  # fmt: skip
    (package,) = work.glob("*.whl")
    if not package.name.startswith(f"sdma-{version}-"):
        sys.exit(f"{package.name} is not of version {version}")
    names = zipfile.ZipFile(package).namelist()
    if wrong := [name for name in names if not name.startswith(("sdma/", f"sdma-{version}.dist-info/"))]:
        sys.exit(f"the wheel contains what is not of the package: {wrong}")
    if not any(name.startswith(f"sdma-{version}.dist-info/") and name.endswith("/LICENSE") for name in names):
        sys.exit(f"the wheel lacks its licence: {names}")
    if missing := {path.name for path in (source / "python/sdma").iterdir() if path.name != "meson.build"} - {
        name.removeprefix("sdma/") for name in names
    }:
        sys.exit(f"the wheel lacks {sorted(missing)}")
    python = work / "venv" / "bin" / "python"
    run(sys.executable, "-m", "venv", work / "venv")
    run(python, "-m", "pip", "install", "--no-index", package)
    # Outside of the tree, and with nothing else on the path.
    alone = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "LD_LIBRARY_PATH")}
    run(python, "-I", HERE / "package.py", source / "examples/schedules/2_allgather_b2b.sdma", cwd=work, env=alone)


WAYS = {way.__name__: way for way in (subproject, installed, copied, wheel)}


def main(arguments):
    if len(arguments) < 5 or arguments[0] not in WAYS:
        sys.exit(__doc__)
    # The caller's flags are not the client's.
    for name in ("CXXFLAGS", "CPPFLAGS", "LDFLAGS", "DESTDIR"):
        os.environ.pop(name, None)
    with tempfile.TemporaryDirectory() as work:
        way, source, build, version, *compilers = arguments
        WAYS[way](pathlib.Path(source).resolve(), pathlib.Path(build).resolve(), version, pathlib.Path(work).resolve(), compilers)


if __name__ == "__main__":
    main(sys.argv[1:])
