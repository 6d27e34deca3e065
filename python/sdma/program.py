# SPDX-License-Identifier: MIT
"""What starts the program `sdma`, which is not in the package."""
import functools
import json
import os
import re
import shutil
import subprocess

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
    """The verbs of the program in PATH; none without a program."""
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


def tool(verb, *words, **options):
    given = [word for name, value in options.items() for word in _option(name, value)]
    done = _run([verb, "--json", *given, *map(os.fspath, words)], capture_output=True, stdin=subprocess.DEVNULL)
    answer = _values(done.stdout.decode())
    if done.returncode not in ANSWERS or not answer:
        said = done.stderr.decode(errors="replace")
        messages = [m for m in _values(said) if m["severity"] == "error"] if said.startswith("{") else []
        text = "\n".join(map(_text, messages)) or said.strip()
        raise Error(text or f"sdma {verb} ended with exit code {done.returncode}, without an answer", messages)
    return answer[0] if len(answer) == 1 else answer


def emulate(command, *, gpus=None, **options):
    words = [f"--gpus={gpus}"] if gpus is not None else []
    return _run(["emulate", *words, "--", *map(os.fspath, command)], **options)


def contact(folder="contact", *, device="soft", **options):
    return _run(["contact", f"--device={device}", os.fspath(folder)], **options)
