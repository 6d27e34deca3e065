#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Walks the words of the schedule language: does the contract of a proof say something of each?

  grammar.py ROOT SDMA        the words are those of the parser's sources; grammar.toml has a row for each

A new word of the parser without a row fails, and so does a row whose word is gone, or whose entry `sdma check --covered` does
not print; and each entry that is about agents, places, actions or values is asked for by a word. Exit code 1: something is wrong.
"""
import pathlib
import re
import subprocess
import sys
import json
import tomllib

# How the parser asks for a word: at("set"), t.is_word("map"), word.text != "each", take("in").
WORD = re.compile(r'(?:\bat|is_word|take)\("([a-z_0-9]+)"\)|\b(?:text|name|word)\)? [!=]= "([a-z_0-9]+)"')
# Tables of words: constexpr std::string_view kSumTypes[] = {"f32", ..};
TABLE = re.compile(r'kSumTypes\[\] = \{([^}]*)\}')
# Actions that are read by their kind: case Kind::alloc: return "alloc";
KIND = re.compile(r'case Kind::\w+: return "([a-z]+)";')
SOURCES = ["lib/schedule/*.cpp", "lib/schedule/sums.hpp", "lib/stream/blocks.*", "lib/stream/expression.*", "lib/stream/lists.cpp"]
OTHERS = {"format.cpp", "print.cpp", "launcher.cpp", "copies_text.cpp"}  # which read or write other texts, or lines already parsed


def words(root):
    found = set()
    for path in sorted(p for pattern in SOURCES for p in root.glob(pattern) if p.name not in OTHERS):
        text = path.read_text()
        found |= {a or b for a, b in WORD.findall(text)}
        for table in TABLE.findall(text):
            found |= set(re.findall(r'"([a-z0-9]+)"', table))
        if path.name == "lifetimes.cpp":
            found |= set(KIND.findall(text))
    return found


def main(root, sdma):
    rows = tomllib.loads((root / "tests/check/grammar.toml").read_text())
    said = set(rows["asks"]) | set(rows["text"])
    read = words(root)
    answer = subprocess.run([sdma, "check", "--covered", "--json"], capture_output=True, text=True, check=True).stdout
    covered = {c["id"] for c in json.loads(answer)["covered"]}
    wrong = [f"grammar.toml has no row for the word '{w}': which entry of the contract does it ask for?" for w in sorted(read - said)]
    wrong += [f"the parser has no word '{w}'" for w in sorted(said - read)]
    wrong += [f"'{w}' is in both tables" for w in sorted(set(rows["asks"]) & set(rows["text"]))]
    asked = {e for entries in rows["asks"].values() for e in entries}
    wrong += [f"the contract has no entry '{e}'" for e in sorted(asked - covered)]
    about = ("agent ", "place ", "action ", "value ", "init ", "sum ", "expect ", "access by-", "lifetime ")
    wrong += [f"no word asks for '{e}'" for e in sorted(covered - asked) if e.startswith(about)]
    print("\n".join(wrong) or f"{len(read)} words, each with what the contract says of it")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]), sys.argv[2]))
