# SPDX-License-Identifier: MIT
"""The blocks of which documentation consists: prose, C++ and other fixed text, with the line at which each begins."""
import collections
import re

Block = collections.namedtuple("Block", "kind line text")
FENCE = re.compile(r"^( *)```(\w*)[^\n]*\n(.*?)^\1```", flags=re.M | re.S)
STATEMENT = re.compile(r"^(?!\{\").*[({=].*([;{}]|\s\.\.\.)$|^\}")
EXPRESSION = re.compile(r"^\S.*\) ?== |^\S.*\)   +==|^[\w:]+(<[\w:, ]*>)?[({][^ ].*[)}]( {3}|$)|^\w+\(.*\);  ")


def is_code(body):
    """Whether the first line or the last ends as a statement does, or a line is an expression. Prose, drawings and JSON are not."""
    lines = [re.sub(r"(^|\s+)//.*", "", line) for line in body.split("\n")]
    return any(STATEMENT.search(line) for line in (lines[0], lines[-1])) or any(map(EXPRESSION.search, lines))


def of_manual(lines, first):
    """A header's manual, whose `lines` have no slashes, from line `first` of the header. What is indented is code or a drawing."""
    held, kind, start = [], "", 0

    def block():
        body = "\n".join(line[2:] for line in held) if kind == "fixed" else "\n".join(held)
        return Block(kind if kind == "prose" else "cpp" if is_code(body) else "text", start, body)

    for number, line in enumerate([*lines, ""], first):
        item = kind == "prose" and held and re.match(r"- |  ", held[-1]) and any(h.startswith("- ") for h in held)
        now = "" if not line.strip() else "fixed" if line.startswith("  ") and not item else "prose"
        if now != kind:
            if held:
                yield block()
            held, kind, start = [], now, number
        if now:
            held.append(line)


def of_comments(text):
    """The blocks of the comments of a header's declarations."""
    for match in re.finditer(r"(?:^ *///(?!<).*\n)+", text, flags=re.M):
        lines = [re.sub(r"^ */// ?", "", line) for line in match[0].splitlines()]
        yield from of_manual(lines, text.count("\n", 0, match.start()) + 1)


def of_page(text):
    """The fenced blocks of a Markdown page."""
    for match in FENCE.finditer(text):
        body = re.sub(rf"(?m)^{match[1]}", "", match[3])
        yield Block(match[2] or "text", text.count("\n", 0, match.start(3)) + 1, body)
