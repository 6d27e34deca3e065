#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The classes of rules in docs/rules.md and docs/check.md are those of `sdma check --rules`; the table of what a proof covers in
docs/check.md is that of `sdma check --covered`.

  rules_page.py SOURCE SDMA              fails, with a diff, if a page differs
  rules_page.py --bless SOURCE SDMA      writes both: `ninja bless`

In rules.md, the first line of each rule's section is its class. check.md has a table of the rules of schedules, by class.
"""
import difflib
import json
import pathlib
import re
import subprocess
import sys

EFFECTS = {
    "refutes": ("refuted, exit code 1", "an execution that the rules of ordering allow goes wrong"),
    "leaves unproved": ("unproved, exit code 4", "the checker had to assume something, or did not examine it"),
    "advice": ("none; `--strict` makes it an error", "about speed or tidiness alone"),
}


def classes(sdma):
    """{id: {"stream" | "schedule": class}}; a packet's own rules are of a stream."""
    found = {}
    for rule in json.loads(subprocess.run([sdma, "check", "--rules", "--json"], capture_output=True, check=True).stdout)["rules"]:
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


def main(arguments):
    bless = arguments[:1] == ["--bless"]
    source, sdma = arguments[bless:]
    rules, differs = classes(sdma), False
    entries = json.loads(subprocess.run([sdma, "check", "--covered", "--json"], capture_output=True, check=True).stdout)["covered"]
    for name, made in (("docs/rules.md", lambda t: rules_page(t, rules)),
                       ("docs/check.md", lambda t: covered_page(check_page(t, rules), entries))):
        page = pathlib.Path(source, name)
        have = page.read_text()
        want = made(have)
        if bless:
            page.write_text(want)
        elif have != want:
            differs = True
            print(f"{name} is not what sdma check --rules says; `ninja bless` writes it:")
            sys.stdout.writelines(difflib.unified_diff(have.splitlines(True), want.splitlines(True), "have", "want", n=0))
    return int(differs)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
