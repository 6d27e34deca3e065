#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Views of files and folders for the site. Standard input: JSON, a list of [file or folder, page to write, way up to the root]."""
import html
import json
import pathlib
import sys

import pygments
import pygments.formatters
import pygments.lexers
import pygments.util
import sdma_lexer  # noqa: F401  registers itself

PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<link rel="icon" href="data:,"><title>{title}</title><style>body{{font-family:sans-serif;margin:1rem;background:#fff;color:#222}}
.highlight{{overflow-x:auto}}pre{{font-size:.8rem;line-height:1.35}}.highlight .linenos{{color:inherit;opacity:.75;padding-right:.8rem;user-select:none}}h1{{font-size:1rem;font-weight:normal}}a{{color:#2962ff}}
{light}@media(prefers-color-scheme:dark){{body{{background:#1e2129;color:#ddd}}a{{color:#8ab4f8}}{dark}}}</style></head>
<body><main><h1><a href="{up}index.html">sdma</a> / {title}</h1>{body}</main></body></html>
"""


def styles(name):
    return pygments.formatters.HtmlFormatter(style=name).get_style_defs(".highlight")


def body(path):
    if path.is_dir():
        return "<ul>" + "".join(f"<li>{html.escape(p.name)}{'/' if p.is_dir() else ''}</li>" for p in sorted(path.iterdir())) + "</ul>"
    text = path.read_text(encoding="utf-8", errors="backslashreplace")
    try:
        lexer = pygments.lexers.get_lexer_for_filename(path.name, text)
    except pygments.util.ClassNotFound:
        lexer = pygments.lexers.TextLexer()
    code = pygments.highlight(text, lexer, pygments.formatters.HtmlFormatter(linenos="inline", lineanchors="L"))
    # What scrolls sideways can be scrolled from the keyboard.
    return code.replace('<div class="highlight">', '<div class="highlight" tabindex="0" role="region" aria-label="The text of the file">', 1)


LIGHT, DARK = styles("default"), styles("github-dark")
for path, place, up in json.load(sys.stdin):
    path, place = pathlib.Path(path), pathlib.Path(place)
    place.parent.mkdir(parents=True, exist_ok=True)
    title = html.escape("/".join(place.parts[place.parts.index("source") + 1 :]).removesuffix(".html").removesuffix("/index"))
    place.write_text(PAGE.format(title=title, up=up, light=LIGHT, dark=DARK, body=body(path)), encoding="utf-8")
