# SPDX-License-Identifier: MIT
"""Whether each header compiles as the only include, decided in one run of clang.

Clang reads headers as the parts of a module: each part sees only what it includes itself. The standard headers are read once, as the
parts of another module. A compile per header reads them again each time, which takes ten times as long.
"""
import pathlib
import re
import subprocess
import tempfile

# Without a guard: each inclusion defines assert() again.
TEXTUAL = {"cassert"}


def search_path(compiler):
    """The folders in which this compiler searches for <...>."""
    command = [compiler, "-std=c++20", "-E", "-v", "-x", "c++", "/dev/null"]
    said = subprocess.run(command, capture_output=True, text=True).stderr
    listed = re.search(r"#include <\.\.\.> search starts here:\n(.*?)\nEnd of search list", said, flags=re.S)
    return [pathlib.Path(line.strip()) for line in listed[1].split("\n")] if listed else []


def module(name, headers, *attributes):
    parts = "".join(f'  module "{part}" {{ header "{path}" export * }}\n' for part, path in headers.items())
    return f"module {name} {' '.join(attributes)} {{\n{parts}}}\n"


def complete(compiler, flags, headers, standard):
    """True if each of the headers, {name: path}, includes all that it uses. `standard` names standard headers that they may include.

    False proves nothing: an older clang cannot read GCC's library in this way.
    """
    folders = search_path(compiler)
    found = {name: next((folder / name for folder in folders if (folder / name).is_file()), None) for name in standard}
    library = {name: path for name, path in sorted(found.items()) if path and name not in TEXTUAL}
    with tempfile.TemporaryDirectory() as folder:
        modules = pathlib.Path(folder, "modules")
        modules.write_text(module("library", library, "[system]") + module("headers", headers), encoding="utf-8")
        command = [compiler, "-std=c++20", "-fsyntax-only", *flags, "-fmodules", "-fno-implicit-module-maps", f"-fmodule-map-file={modules}",
                   f"-fmodules-cache-path={folder}", "-Xclang", "-fmodules-local-submodule-visibility", "-x", "c++", "-"]  # fmt: skip
        # The first header makes clang read all of them. The others prove that all parts of the module are there.
        text = "".join(f'#include "{path}"\n' for path in headers.values())
        return subprocess.run(command, input=text, capture_output=True, text=True).returncode == 0
