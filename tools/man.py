#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes a man page of what a program prints with --help, so that the two cannot differ.

  man.py NAME VERSION OUT PROGRAM [VERB]       for sdma-check.1: man.py sdma-check 0.3.0 OUT build/tools/sdma check

What it knows of --help: the first line, or what follows the line "usage: ..", says what the program does; "Title:" alone on a line begins
a section; "  NAME   text" is an entry of a list; a line that is indented more continues it; the lines below "Examples:" are shown as they are;
everything else is text. Exit code 1, with the line, if a line fits nowhere.
"""
import os
import pathlib
import re
import subprocess
import sys

TITLES = {"Positionals": "ARGUMENTS", "Options": "OPTIONS", "Subcommands": "SUBCOMMANDS", "Exit codes": "EXIT STATUS", "Examples": "EXAMPLES"}


def escaped(text):
    """As troff reads it: hyphens that can be copied, no control characters at the beginning of a line."""
    text = text.replace("\\", r"\e").replace("-", r"\-").replace("'", r"\(aq").replace("`", r"\(ga").replace("^", r"\(ha").replace("~", r"\(ti")
    return re.sub(r"(?m)^([.])", r"\\&\1", text)


def sections(text):
    """[(title, lines)]; the first title is empty."""
    found = [("", [])]
    for line in text.split("\n"):
        if match := re.fullmatch(r"([A-Z][A-Za-z, ]*):", line):
            found.append((match[1], []))
        else:
            found[-1][1].append(line)
    return found


def entries(lines):
    """Lines of a section as ("entry", name, text), ("text", text) and ("shown", text)."""
    out = []
    for line, following in zip(lines, [*lines[1:], ""]):
        indent = len(line) - len(line.lstrip())
        match = re.fullmatch(r" {1,4}(\S.*?)(?: {2,}(\S.*))?", line)
        # "  --option=N text", where the name leaves no room for two spaces; a name that fills its line has its text below.
        tight = re.fullmatch(r" {1,4}((?:-\S+,? )*-\S+(?: \S*[|]\S*)?|[A-Z]+=\S+) (\S.*)", line)
        if not line.strip():
            out.append(("text", ""))
        elif indent > 4 and out and out[-1][0] == "entry":
            out[-1] = ("entry", out[-1][1], f"{out[-1][2]} {line.strip()}".strip())
        elif tight and not (match and match[2]) and not following.startswith(" " * 5):
            out.append(("entry", tight[1], tight[2]))
        elif match:
            out.append(("entry", match[1], match[2] or ""))
        else:
            out.append(("text", line.strip()))
    return out


def body(title, lines):
    if title == "Examples":
        return [".nf", escaped("\n".join(line.strip() for line in lines).strip("\n")), ".fi"]
    out, paragraph = [], False
    for kind, *parts in entries(lines):
        if kind == "entry":
            out += [".TP", f"\\fB{escaped(parts[0])}\\fR", escaped(parts[1]) or "\\&"]
            paragraph = True
        elif not parts[0]:
            paragraph = True
        else:
            out += [".PP"] * (paragraph and bool(out)) + [escaped(parts[0])]
            paragraph = False
    return out


def page(name, version, text):
    text = text.rstrip("\n")
    usage = re.search(r"(?im)^usage: (.*)$", text)
    if not usage:
        sys.exit(f"{name}: --help has no line 'Usage: ..'")
    text = text[: usage.start()] + text[usage.end() + 1 :]
    (_, about), *rest = sections(text)
    about = "\n".join(about).strip()
    summary = re.split(r"[.](?:\s|$)", about)[0].replace("\n", " ")
    # REUSE-IgnoreStart
    out = [f'.\\" Made from {name.replace("-", " ", 1)} --help. SPDX-License-Identifier: MIT']
    # REUSE-IgnoreEnd
    out += [f'.TH "{escaped(name.upper())}" 1 "" "sdma {version}" "User Commands"', ".SH NAME", f"{escaped(name)} \\- {escaped(summary)}"]
    out += [".SH SYNOPSIS", f"\\fB{escaped(usage[1])}\\fR", ".SH DESCRIPTION", *body("", about.split("\n"))]
    last = []
    for title, lines in rest:
        if title == "Exit codes":
            codes, _, more = "\n".join(lines).partition("\n\n")
            out += [f".SH {TITLES[title]}", *body(title, codes.split("\n"))]
            if more.strip():
                out += [".SH NOTES", *body("", more.strip().split("\n"))]
        elif title == "Examples":
            last = [".SH EXAMPLES", *body(title, lines)]
        else:
            out += [f".SH {escaped(TITLES.get(title, title.upper()))}", *body(title, lines)]
    out += last
    verbs = [parts[0] for title, lines in rest if title == "Subcommands" for kind, *parts in entries(lines) if kind == "entry"]
    see = [f"sdma-{verb}" for verb in verbs] if verbs else ["sdma"] if name != "sdma" else []
    if see:
        out += [".SH SEE ALSO", ",\n".join(f"\\fB{escaped(s)}\\fR(1)" for s in see)]
    return "\n".join(out) + "\n"


def main(arguments):
    if len(arguments) < 4:
        sys.exit(__doc__)
    name, version, out, *command = arguments
    # Each entry on one line, however long.
    environment = os.environ | {"COLUMNS": "10000"}
    done = subprocess.run([*command, "--help"], env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)} --help: exit code {done.returncode}\n{done.stderr}")
    pathlib.Path(out).write_text(page(name, version, done.stdout), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
