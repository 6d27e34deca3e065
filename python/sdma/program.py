# SPDX-License-Identifier: MIT
"""What starts the program `sdma`, which is not in the package."""
from __future__ import annotations

import functools
import json
import os
import re
import shutil
import subprocess
from typing import Any, Sequence

from .errors import Error


# Exit codes with an answer, in which findings are.
ANSWERS = (0, 1, 4, 5)


def _run(words, **options):
    path = shutil.which("sdma")
    if path is None:
        raise FileNotFoundError("there is no program sdma in PATH: install the tools (the wheel has only this package)")
    return subprocess.run([path, *words], **options)


@functools.cache
def _verbs_of(path):
    text = subprocess.run([path, "--help"], capture_output=True, text=True, check=True).stdout
    return frozenset(re.findall(r"(?m)^  ([a-z]+) ", text.partition("Subcommands:\n")[2].partition("\n\n")[0]))


def verbs():
    """The subcommands of the program in PATH; none without a program."""
    path = shutil.which("sdma")
    return _verbs_of(path) if path else frozenset()


def _option(name, value):
    option = "--" + name.replace("_", "-")
    if value is None or value is False:
        return []
    if value is True:
        return [option]
    return [f"{option}={os.fspath(v) if isinstance(v, os.PathLike) else v}" for v in (value if isinstance(value, (list, tuple)) else [value])]


def _values(text):
    """The JSON values of a text, one after another."""
    found, at, decoder = [], 0, json.JSONDecoder()
    while (at := len(text) - len(text[at:].lstrip())) < len(text):
        value, at = decoder.raw_decode(text, at)
        found.append(value)
    return found


def _text(message):
    """As the program prints it."""
    lines = [f"{message['where']}: error: {message['message']}", message.get("excerpt", ""), f"  hint: {message['hint']}" if message["hint"] else ""]
    return "\n".join(filter(None, lines))


def tool(verb: str, *words: str | os.PathLike[str], **options: Any) -> Any:
    """What the program `sdma`, which must be in PATH, answers with --json: the object, or a list of objects if it prints several.

        tool("check", "ring.bin", ring_bytes="1M", kernel=True)     # sdma check --json --ring-bytes=1M --kernel ring.bin

    True gives an option without a value, a list repeats it, None and False leave it out. Findings (exit codes 1, 4 and 5) are an answer;
    any other failure is an Error.
    """
    given = [word for name, value in options.items() for word in _option(name, value)]
    done = _run([verb, "--json", *given, *map(os.fspath, words)], capture_output=True, stdin=subprocess.DEVNULL)
    answer = _values(done.stdout.decode())
    if done.returncode not in ANSWERS or not answer:
        said = done.stderr.decode(errors="replace")
        messages = [m for m in _values(said) if m["severity"] == "error"] if said.startswith("{") else []
        text = "\n".join(map(_text, messages)) or said.strip()
        raise Error(text or f"sdma {verb} ended with exit code {done.returncode}, without an answer", messages)
    return answer[0] if len(answer) == 1 else answer


def emulate(command: Sequence[str], *, gpus: int | None = None, **options: Any) -> subprocess.CompletedProcess[Any]:
    """Runs a program on a software node, by the program `sdma`, which must be in PATH. `options`: as of subprocess.run."""
    words = [f"--gpus={gpus}"] if gpus is not None else []
    return _run(["emulate", *words, "--", *map(os.fspath, command)], **options)


def contact(folder: str | os.PathLike[str] = "contact", *, device: str = "soft", **options: Any) -> subprocess.CompletedProcess[Any]:
    """Runs `sdma contact`, which needs the installed tools: the folder then has contact.tar.gz. Options are those of subprocess.run."""
    return _run(["contact", f"--device={device}", os.fspath(folder)], **options)
