#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""An extension for VS Code that highlights schedules, from the words that the lexer for Pygments has.

  vscode.py FOLDER     writes the extension: copy FOLDER to ~/.vscode/extensions/sdma, and start VS Code again
"""
import json
import pathlib
import sys

WORDS = json.loads(pathlib.Path(__file__).with_name("sdma_words.json").read_text(encoding="utf-8"))


def grammar():
    """In TextMate's form: at each place, the first pattern that matches there."""
    statements, words = ("|".join(WORDS[kind]) for kind in ("statements", "words"))
    scoped = lambda match, scope: {"match": match, "name": f"{scope}.sdma"}
    return {
        "scopeName": "source.sdma",
        "patterns": [
            scoped(r"#.*", "comment.line.number-sign"),
            {"match": rf"^\s*(?:({statements})\b|([A-Za-z_]\w*))",
             "captures": {"1": {"name": "keyword.control.sdma"}, "2": {"name": "support.function.sdma"}}},
            scoped(r'"[^"\n]*"', "string.quoted.double"),
            scoped(r"(?:0x[0-9a-fA-F]+|\d+[KMG]?)\b", "constant.numeric"),
            scoped(r"[A-Za-z_]\w*(?==(?!=))", "variable.parameter"),
            scoped(rf"\b(?:{words})\b", "keyword.other"),
            scoped(r"[A-Za-z_]\w*", "variable.other"),
            scoped(r"[-+*/%<>=!]+", "keyword.operator"),
        ],
    }  # fmt: skip


def main(folder):
    language = {"id": "sdma", "aliases": ["sdma"], "extensions": [".sdma"], "configuration": "./language.json"}
    package = {
        "name": "sdma", "publisher": "sdma", "version": "0.0.1", "license": "MIT", "engines": {"vscode": "^1.60.0"},
        "contributes": {"languages": [language],
                        "grammars": [{"language": "sdma", "scopeName": "source.sdma", "path": "./sdma.tmLanguage.json"}]},
    }  # fmt: skip
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in (("package", package), ("sdma.tmLanguage", grammar()), ("language", {"comments": {"lineComment": "#"}})):
        (folder / f"{name}.json").write_text(json.dumps(text, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
