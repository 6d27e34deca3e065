#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""VS Code's grammar gives each word of the examples the meaning that the site's lexer gives it: vscode.py SOURCE."""
import pathlib
import re
import sys

source = pathlib.Path(sys.argv[1]).resolve()
sys.path.insert(0, str(source / "site"))
try:
    from sdma_lexer import SdmaLexer
except ImportError:
    print("skipped: there is no module pygments")
    sys.exit(77)
import vscode

# The beginning of each scope, and Pygments' name of the same.
MEANINGS = {"comment": "Comment", "string": "String", "constant.numeric": "Number", "variable.parameter": "Attribute", "keyword.operator": "Operator",
            "keyword": "Keyword", "support.function": "Builtin", "variable.other": "Name"}  # fmt: skip


def scopes(line):
    """(word, scope) of a line, as an editor finds them."""
    patterns = [(re.compile(p["match"]), p) for p in vscode.grammar()["patterns"]]
    at = 0
    while at < len(line):
        found = [(m.start(), i, m, p) for i, (r, p) in enumerate(patterns) if (m := r.search(line, at)) and m.group()]
        if not found:
            return
        _, _, match, pattern = min(found, key=lambda f: f[:2])
        for number, capture in pattern.get("captures", {}).items():
            if match[int(number)]:
                yield match[int(number)], capture["name"]
        if "name" in pattern:
            yield match.group(), pattern["name"]
        at = match.end()


def tokens(line):
    for kind, word in SdmaLexer(ensurenl=False, stripnl=False).get_tokens(line):
        name = [str(part) for part in kind][-1] if len(kind) else ""
        names = {str(part) for part in kind}
        if "Whitespace" in names or "Punctuation" in names or not word.strip():
            continue
        yield word, "Comment" if "Comment" in names else "String" if "String" in names else "Number" if "Number" in names else name


count = bad = 0
for path in sorted((source / "examples/schedules").glob("*.sdma")):
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        meaning = lambda scope: next(name for prefix, name in MEANINGS.items() if scope.startswith(prefix))
        ours = [(word, meaning(scope)) for word, scope in scopes(line)]
        count += len(ours)
        if ours != (theirs := list(tokens(line))):
            bad += 1
            print(f"{path.name}:{number}: {line}\n  grammar: {ours}\n  lexer:   {theirs}")
print(f"{count} words, {bad} lines that differ")
sys.exit(1 if bad or count < 500 else 0)
