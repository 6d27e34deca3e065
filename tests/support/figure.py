# SPDX-License-Identifier: MIT
"""A picture in docs/figures that a script makes from what the tool says.

  sys.exit(figure.main(sys.argv[1:], "race.svg", picture))     # picture(source, sdma): the text of the file

With --bless SOURCE SDMA it is written; with SOURCE SDMA, the script fails unless the file is what the tool says now.
"""
import pathlib
import sys


def main(arguments, name, picture):
    source, sdma = (pathlib.Path(word).resolve() for word in arguments[-2:])
    figure, now = source / "docs/figures" / name, picture(source, sdma)
    if arguments[0] == "--bless":
        figure.write_text(now, encoding="utf-8")
    elif not figure.is_file() or figure.read_text(encoding="utf-8") != now:
        sys.exit(f"{figure} does not show what the tool says now: ninja -C build bless")
    return 0
