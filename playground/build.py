#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Builds the tool as WebAssembly, in a build folder of its own, and the page with it.

  build.py SOURCE FOLDER OUTPUT URL EM++ COMPILER...     FOLDER: what is built; OUTPUT: the page; URL: of the site, or empty

Emscripten's libraries come from its package and are not built, so nothing is written outside FOLDER. COMPILER, the native one,
says where the headers of fmt, nlohmann-json and CLI11 lie.
"""
import os
import pathlib
import shutil
import subprocess
import sys

import assemble

# Exceptions of WebAssembly: with those of -fexceptions, each call that could throw goes through JavaScript.
EXCEPTIONS = "-fwasm-exceptions"
LINK = [EXCEPTIONS, "-sMODULARIZE=1", "-sEXPORT_NAME=sdmaProgram", "-sINVOKE_RUN=0", "-sEXIT_RUNTIME=1", "-sALLOW_MEMORY_GROWTH=1",
        "-sMAXIMUM_MEMORY=2GB", "-sENVIRONMENT=worker", "-sEXPORTED_RUNTIME_METHODS=FS,callMain", "-sFORCE_FILESYSTEM=1"]  # fmt: skip
HEADERS = {"fmt": "fmt/format.h", "nlohmann_json": "nlohmann/json.hpp", "CLI11": "CLI/CLI.hpp"}


def written(path, text):
    """Writes a file that differs, so that nothing is built again without a reason."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.is_file() or path.read_text() != text:
        path.write_text(text)


def find(compiler, header):
    """The folder that contains this header."""
    unit = f"#include <{header}>\n"
    deps = subprocess.run([*compiler, "-std=c++20", "-M", "-x", "c++", "-"], input=unit, capture_output=True, text=True, check=True).stdout
    return pathlib.Path(next(word for word in deps.split() if word.endswith("/" + header))[: -len(header)])


def dependencies(folder, compiler):
    """A folder with these headers alone, because Emscripten has its own C and C++ headers, and packages that name it."""
    for name, header in HEADERS.items():
        place = folder / "include" / header.split("/")[0]
        place.parent.mkdir(parents=True, exist_ok=True)
        target = find(compiler, header) / header.split("/")[0]
        if not place.is_symlink() or place.readlink() != target:
            place.unlink(missing_ok=True)
            place.symlink_to(target)
        flags = f"-isystem{folder / 'include'} -DFMT_HEADER_ONLY"
        version = subprocess.run(["pkg-config", "--modversion", name], capture_output=True, text=True).stdout.strip() or "99"
        written(folder / "packages" / f"{name}.pc", f"Name: {name}\nDescription: headers\nVersion: {version}\nCflags: {flags}\n")


def configuration(folder, emxx):
    root = pathlib.Path(emxx).resolve().parent
    if not (root / "emcc.py").is_file():
        root = pathlib.Path("/usr/share/emscripten")
    own = next((p for p in (root / ".emscripten", pathlib.Path("/etc/emscripten")) if p.is_file()), None)
    text = own.read_text() if own else ""
    written(folder / "emscripten.py", text + f"\nCACHE = {str(root / 'cache')!r}\nFROZEN_CACHE = True\n")
    return {**os.environ, "EM_CONFIG": str(folder / "emscripten.py"), "NODE_PATH": os.environ.get("NODE_PATH", "/usr/share/nodejs"),
            "CCACHE_DISABLE": "1"}  # fmt: skip


def main(source, folder, output, url, emxx, *compiler):
    folder = pathlib.Path(folder).resolve()
    dependencies(folder, compiler)
    environment = configuration(folder, emxx)
    for name in ("CXX", "CC", "CXX_LD", "CXXFLAGS", "LDFLAGS"):
        environment.pop(name, None)
    quote = lambda words: "[" + ", ".join(f"'{word}'" for word in words) + "]"
    cross = f"""[binaries]
cpp = '{emxx}'
ar = '{pathlib.Path(emxx).parent / 'emar'}'
pkgconfig = 'pkg-config'
[properties]
pkg_config_libdir = ['{folder / 'packages'}']
[host_machine]
system = 'emscripten'
cpu_family = 'wasm32'
cpu = 'wasm32'
endian = 'little'
[built-in options]
cpp_args = {quote([EXCEPTIONS, '-Wshorten-64-to-32'])}
cpp_link_args = {quote(LINK)}
"""  # fmt: skip
    build = folder / "build"
    setup = ["meson", "setup", "--cross-file", folder / "cross.ini", "-Ddefault_library=static", "-Dgrouped=true", "-Doptimization=2",
             "-Db_pch=false", "-Dtools=enabled", "-Dtests=disabled", "-Dexamples=disabled", "-Dbench=disabled", "-Dkfd=disabled",
             "-Demulator=disabled", build, source]  # fmt: skip
    # Meson reads these only once: a folder that was set up differently begins anew.
    ini, words = folder / "cross.ini", folder / "setup"
    told = " ".join(map(str, setup)) + "\n"
    if not (words.is_file() and words.read_text() == told and ini.read_text() == cross and (build / "build.ninja").is_file()):
        shutil.rmtree(build, ignore_errors=True)
        written(ini, cross)
        subprocess.run(setup, env=environment, check=True)
        written(words, told)
    subprocess.run(["ninja", "-C", build, "tools/sdma.js"], env=environment, check=True)
    assemble.main(source, build / "tools", output, url and url + "playground/")


if __name__ == "__main__":
    main(*sys.argv[1:])
