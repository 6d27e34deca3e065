#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes all golden files anew from what the code does now: `ninja -C build bless`. Look at the difference before you commit it.

  bless.py SOURCE NAME=PROGRAM... [--cases PROGRAM... FOLDER]...

| golden                       | written from                           | by                                   |
| ---------------------------- | -------------------------------------- | ------------------------------------ |
| tests/stream/golden          | its *.hex                              | sdma dis: text, JSON Lines           |
| tests/schedule/golden        | examples/schedules, or the file itself | sdma fmt --flat                      |
| tests/collectives/golden     | the options in golden.txt beside it    | sdma plan                            |
| tests/trace/golden           | tests/trace/sample.hpp                 | the test in tests/trace/perfetto.cpp |
| docs/packets.md: tables      | include/sdma/packets                   | tests/packets/document.cpp           |
| packets/length_table.hpp     | include/sdma/packets                   | tests/packets/document.cpp           |
| docs/messages.md: its table  | lib/dump/message_table.cpp             | tests/doctor/messages.cpp            |
| docs/reproduction.md: tables | the simulator                          | bench/reproduce.cpp                  |
| docs/figures                 | the simulator                          | bench/reproduce.cpp                  |
| docs/figures/serving.svg     | docs/serving.md, examples/serving      | tests/client/picture.py              |
| docs/figures/race.svg        | tests/museum/exhibits                  | tests/support/race_figure.py         |
| docs/figures/terminal.svg    | examples/schedules/7_race.sdma         | tests/support/terminal_figure.py     |
| docs/museum.md               | tests/museum                           | tests/museum/museum.py               |
| README.md, docs: tables      | sdma --help, check --rules, schemas    | tests/tools/tables.py                |
| docs/json.md, docs/journeys  | the commands in them                   | tests/support/page.py                |
| docs/files.md                | the first comments of the files of lib | tests/hygiene/file_map.py            |
| *.test (--cases)             | the command that each begins with      | tests/support/cases.py               |

It says which of these it leaves, because the build lacks the program.
"""
import os
import pathlib
import re
import subprocess
import sys


def output(*command, data=None):
    done = subprocess.run(command, input=data, capture_output=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stderr.decode()}")
    return done.stdout


def stream(source, sdma):
    for given in sorted((source / "tests/stream/golden").glob("*.hex")):
        # As bytes: of a text, `sdma dis` also says where packets seem to begin again.
        words = re.sub(r"#.*", "", given.read_text()).split()
        data = b"".join(int(word, 16).to_bytes(4, "little") for word in words)
        given.with_suffix(".packets").write_bytes(output(sdma, "dis", "--input=binary", "--offsets", "--raw", data=data))
        given.with_suffix(".json").write_bytes(output(sdma, "dis", "--input=binary", "--format=json", data=data))


def schedule(source, sdma):
    golden = source / "tests/schedule/golden"
    examples = {path.name: path for path in (source / "examples/schedules").glob("*.sdma")}
    for name in sorted({path.name for path in golden.glob("*.sdma")} | examples.keys()):
        (golden / name).write_bytes(output(sdma, "fmt", "--flat", examples.get(name, golden / name)))


def collectives(source, sdma):
    folder = source / "tests/collectives"
    for line in (folder / "golden.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            name, collective, *options = line.split()
            text = output(sdma, "plan", collective.removeprefix("collective="), "--flat", *("--" + o for o in options))
            (folder / "golden" / (name + ".sdma")).write_bytes(text)


def trace(source, trace):
    subprocess.run([trace, "the golden files"], check=True, stdout=subprocess.DEVNULL, env={**os.environ, "SDMA_BLESS": "1"})


def packets(source, document):
    subprocess.run([document, "page", "--write", source / "docs/packets.md"], check=True)
    subprocess.run([document, "lengths", "--write", source / "include/sdma/packets/length_table.hpp"], check=True)


def reproduction(source, reproduce):
    page = source / "docs/reproduction.md"
    text = page.read_text(encoding="utf-8")
    tables = re.findall(r"^#+ (.+)\n+((?:\|.*\n)+)", output(reproduce, source / "docs/figures").decode(), re.M)
    for title, table in tables:
        place = re.compile(rf"(^#+ {re.escape(title)}\n+)(?:\|.*\n)+", re.M)
        text, count = place.subn(lambda match: match[1] + table, text)
        if count != 1:
            sys.exit(f"{page}: has {count} tables under '{title}', and not one")
    page.write_text(text, encoding="utf-8")


def picture(source, sdma):
    output("/usr/bin/python3", source / "tests/client/picture.py", "--bless", source, sdma)  # its packages are Debian's


def race(source, sdma):
    output(sys.executable, source / "tests/support/race_figure.py", "--bless", source, sdma)


def terminal(source, sdma):
    output(sys.executable, source / "tests/support/terminal_figure.py", "--bless", source, sdma)


def museum(source, sdma):
    output(sys.executable, source / "tests/museum/museum.py", "--bless", source, sdma)


def tables(source, sdma):
    output(sys.executable, source / "tests/tools/tables.py", "--bless", source, sdma)


def pages(source, sdma):
    for page in [source / "docs/json.md", *sorted((source / "docs/journeys").glob("*.md"))]:
        output(sys.executable, source / "tests/support/page.py", "--bless", page, source, sdma)


def file_map(source, _):
    output(sys.executable, source / "tests/hygiene/file_map.py", "--write", source)


def messages(source, program):
    subprocess.run([program, "--write", source / "docs/messages.md"], check=True)


KINDS = [
    ("tests/stream/golden", "sdma", stream),
    ("tests/schedule/golden", "sdma", schedule),
    ("tests/collectives/golden", "plan", collectives),
    ("tests/trace/golden", "trace", trace),
    ("docs/packets.md, packets/length_table.hpp", "document", packets),
    ("docs/messages.md", "messages", messages),
    ("docs/reproduction.md, docs/figures", "reproduce", reproduction),
    ("docs/figures/serving.svg", "sdma", picture),
    ("docs/figures/race.svg", "sdma", race),
    ("docs/figures/terminal.svg", "sdma", terminal),
    ("docs/museum.md", "sdma", museum),
    ("tables of README.md, docs/rules.md, docs/check.md and docs/json.md; new tests/tools/cases/VERB_help.test", "sdma", tables),
    ("docs/json.md, docs/journeys", "sdma", pages),
    ("docs/files.md", None, file_map),
]
OPTION = {"sdma": "tools", "plan": "tools", "reproduce": "bench"}


def main(source, *arguments):
    runs = [[]]
    for argument in arguments:
        if argument == "--cases":
            runs.append([])
        else:
            runs[-1].append(argument)
    programs = dict(pair.split("=", 1) for pair in runs[0])
    for what, program, write in KINDS:
        if program is None or program in programs:
            write(pathlib.Path(source), programs.get(program))
            print(what)
        else:
            print(f"{what}: NOT WRITTEN, for lack of {program}: meson configure -D{OPTION.get(program, program)}=enabled")
    failed = False
    for run in runs[1:]:
        print(os.path.relpath(run[-1], source), end=": ", flush=True)
        driver = pathlib.Path(source, "tests/support/cases.py")
        failed |= subprocess.run([sys.executable, driver, "--bless", *run]).returncode != 0
    return failed


sys.exit(main(*sys.argv[1:]))
