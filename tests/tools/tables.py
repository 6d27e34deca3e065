#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tables of pages that are made of what the program prints:

  README.md        the verbs, with the summaries of `sdma --help` and the manual that `sdma VERB --help` names
  docs/json.md     the answers, as the schemas describe them
  docs/rules.md    the class of each rule, in the first line of its section: `sdma check --rules`
  docs/check.md    the rules of schedules, by class; what a proof covers: `sdma check --covered`

  tables.py SOURCE SDMA              fails, with a diff, if a page differs
  tables.py --bless SOURCE SDMA      writes all: `ninja bless`; also tests/tools/cases/VERB_help.test for a new verb
"""
import difflib
import json
import os
import pathlib
import re
import subprocess
import sys

EFFECTS = {
    "refutes": ("refuted, exit code 1", "an execution that the rules of ordering allow goes wrong"),
    "leaves unproved": ("unproved, exit code 4", "the checker had to assume something, or did not examine it"),
    "advice": ("none; `--strict` makes it an error", "about speed or tidiness alone"),
}


def printed(sdma, *words):
    return subprocess.run([sdma, *words], env=os.environ | {"COLUMNS": "10000"}, capture_output=True, text=True, check=True).stdout


def classes(sdma):
    """{id: {"stream" | "schedule": class}}; a packet's own rules are of a stream."""
    found = {}
    for rule in json.loads(printed(sdma, "check", "--rules", "--json"))["rules"]:
        found.setdefault(rule["id"], {})["schedule" if rule["of"] == "schedule" else "stream"] = rule["class"]
    return found


def label(of):
    words = set(of.values())
    if len(words) == 1:
        return words.pop().capitalize()
    return f"{of['schedule'].capitalize()}; in a single stream, {of['stream']}"


def rules_page(text, rules):
    def section(match):
        if match[1] not in rules:
            sys.exit(f"docs/rules.md: there is no rule {match[1]}")
        return f"### {match[1]}\n**{label(rules[match[1]])}.**\n"

    return re.sub(r"### (\S+)\n\*\*[^*]+\.\*\*\s", section, text)


def check_page(text, rules):
    rows = ["| class | verdict | meaning | rules |", "|---|---|---|---|"]
    for name, (verdict, meaning) in EFFECTS.items():
        ids = sorted(i for i, of in rules.items() if of.get("schedule", of.get("stream")) == name)
        links = ", ".join(f"[{i}](rules.md#{i})" for i in ids)
        rows.append(f"| {name} | {verdict} | {meaning} | {links} |")
    return re.sub(r"\| class \| verdict \|.*\n(\|.*\n)+", "\n".join(rows) + "\n", text)


def covered_page(text, entries):
    rows = ["| entry | what is covered |", "|---|---|", *(f"| `{e['id']}` | {e['text']} |" for e in entries)]
    return re.sub(r"\| entry \| what is covered \|.*\n(\|.*\n)+", "\n".join(rows) + "\n", text)


def verbs(sdma):
    """[(verb, its summary)], in the order of --help."""
    text = printed(sdma, "--help").partition("Subcommands:\n")[2].partition("\n\n")[0]
    return re.findall(r"^  (\w+) +(.+)$", text, re.M)


def verbs_page(text, sdma):
    rows = ["| subcommand | what it does | manual |", "|---|---|---|"]
    for verb, summary in verbs(sdma):
        pages = re.search(r"(?m)^Manual: (.*)$", printed(sdma, verb, "--help"))
        links = [f"[{pathlib.Path(p.partition('#')[0]).stem.replace('_', ' ')}]({p})" for p in pages[1].split(", ")] if pages else []
        rows.append(f"| `{verb}` | {summary} | {', '.join(links)} |")
    return re.sub(r"\| subcommand \|.*\n(\|.*\n)+", lambda _: "\n".join(rows) + "\n", text)


def answers_page(text, schemas):
    rows = ["| subcommand | answer |", "|---|---|"]
    for schema in (json.loads(path.read_text()) for path in sorted(schemas.glob("*.json"))):
        title, mark, verb = schema["title"].partition("Answer of sdma ")
        rows += [f"| `{verb}` | {schema['description']} |"] if mark else []
    return re.sub(r"\| subcommand \| answer \|.*\n(\|.*\n)+", lambda _: "\n".join(rows) + "\n", text)


def without_case(folder, sdma):
    return [case for verb, _ in verbs(sdma) if not (case := folder / f"{verb}_help.test").exists()]


def first_case(path):
    """Its help, its answer without another word, and an error."""
    verb = path.stem.removesuffix("_help")
    path.write_text(f"# RUN: sdma {verb} --help; sdma {verb} --json; sdma {verb} --json --no-such-option\n")


def main(arguments):
    bless = arguments[:1] == ["--bless"]
    source, sdma = arguments[bless:]
    rules, differs = classes(sdma), False
    entries = json.loads(printed(sdma, "check", "--covered", "--json"))["covered"]
    for case in without_case(pathlib.Path(source, "tests/tools/cases"), sdma):
        if bless:
            first_case(case)
        else:
            differs = True
            print(f"there is no {case}; `ninja bless` writes it")
    for name, made in (("README.md", lambda t: verbs_page(t, sdma)),
                       ("docs/json.md", lambda t: answers_page(t, pathlib.Path(source, "share/schemas"))),
                       ("docs/rules.md", lambda t: rules_page(t, rules)),
                       ("docs/check.md", lambda t: covered_page(check_page(t, rules), entries))):
        page = pathlib.Path(source, name)
        have = page.read_text()
        want = made(have)
        if bless:
            page.write_text(want)
        elif have != want:
            differs = True
            print(f"{name} is not what the program says; `ninja bless` writes it:")
            sys.stdout.writelines(difflib.unified_diff(have.splitlines(True), want.splitlines(True), "have", "want", n=0))
    return int(differs)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
