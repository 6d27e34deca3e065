#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The man pages: `man` shows each without a warning, with every word of the program's --help; and each verb has one.

  man.py FOLDER NAME PROGRAM [VERB] [-- NAME PROGRAM [VERB]]...        FOLDER/NAME.1 is the page
"""
import os
import pathlib
import re
import subprocess
import sys


def words(text):
    """Without the titles and marks that a page writes in its own way. Titles are in upper case there, so case does not count."""
    text = re.sub(r"(?im)^(usage|positionals|options|subcommands|examples|exit codes):", " ", text)
    return re.findall(r"[\w./|=+:,%-]*\w", text)


def shown(page):
    """What man prints, on lines so long that no word is broken; and what it complains about."""
    environment = os.environ | {"LC_ALL": "C.UTF-8", "MANWIDTH": "4000", "MANPAGER": "cat", "MAN_KEEP_FORMATTING": "", "MANROFFOPT": "-rHY=0"}
    done = subprocess.run(["man", "--warnings", "--local-file", "--encoding=UTF-8", page], env=environment, capture_output=True, text=True)
    return done.stdout, done.stderr.strip() or ("" if done.returncode == 0 else f"exit code {done.returncode}")


def main(arguments):
    folder, *rest = arguments
    commands, wrong, verbs = [[]], [], None
    for word in rest:
        if word == "--":
            commands.append([])
        else:
            commands[-1].append(word)
    for name, *command in commands:
        page = pathlib.Path(folder, f"{name}.1")
        text, complaint = shown(page)
        if complaint:
            wrong.append(f"{page}: man says: {complaint}")
        said = subprocess.run([*command, "--help"], capture_output=True, text=True, check=True).stdout
        known = {word.lower() for word in words(text)}
        if missing := [word for word in words(said) if word.lower() not in known]:
            wrong.append(f"{page}: --help says, and the page does not: {' '.join(missing[:10])}")
        for title in ("NAME", "SYNOPSIS", "DESCRIPTION"):
            if not re.search(rf"(?m)^{title}$", text):
                wrong.append(f"{page}: has no section {title}")
        if name == "sdma":
            verbs = re.findall(r"^  ([a-z]+) ", said.partition("Subcommands:\n")[2].partition("Exit codes:")[0], re.M)
    if not verbs:
        wrong.append("sdma --help lists no verb")
    wrong += [f"sdma {verb} has no man page" for verb in verbs or [] if f"sdma-{verb}" not in {name for name, *_ in commands}]
    print(*wrong, sep="\n")
    print(f"{len(commands)} pages, {len(wrong)} complaints")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
