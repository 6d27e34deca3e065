#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes rule_sections.hpp: what docs/rules.md says about each rule, for logs in SARIF.

  rule_sections.py docs/rules.md rule_sections.hpp.in rule_sections.hpp SITE_URL

A rule's text is its section; a failure without a rule has an item in its section "Other failures". Links
keep their text and lose their target, which a log does not have.
"""
import re
import sys

LEVELS = {"Refutes": "error", "Leaves unproved": "warning", "Advice": "note"}


def joined(text):
    return " ".join(text.split())


def sections(page):
    """(id, level, text) of each rule."""
    for part in re.split(r"^(?=#)", page, flags=re.M):
        if rule := re.match(r"### (\S+)\n\*\*([^*]+)\.\*\*\s*(.*)", part, re.S):
            yield rule[1], LEVELS[rule[2].split(";")[0]], rule[3].strip()
        if part.startswith("## Other failures"):
            for item in re.finditer(r"^- `(\S+)`( \(a note\))?: (.*?)(?=^- |\Z)", part, re.S | re.M):
                yield item[1], "note" if item[2] else "error", joined(item[3])


def row(rule, level, text):
    markdown = re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", text)
    plain = markdown.replace("`", "")
    paragraph = joined(plain.split("\n\n")[0])
    sentence = re.split(r"(?<=\.)\s+(?=[A-Z])", paragraph, maxsplit=1)[0]
    return "    {" + ", ".join(f'R"sdma({field})sdma"' for field in (rule, level, sentence, paragraph, plain, markdown)) + "},\n"


def main(page, form, target, url):
    with open(page, encoding="utf-8") as f:
        rules = sorted(sections(f.read()))
    if len(rules) < 2:
        sys.exit(f"{page}: it has no sections about rules")
    with open(form, encoding="utf-8") as f:
        text = f.read()
    with open(target, "w", encoding="utf-8") as f:
        f.write(text.replace("@site_url@", url).replace("@rows@", "".join(row(*r) for r in rules)))


if __name__ == "__main__":
    main(*sys.argv[1:])
