# SPDX-License-Identifier: MIT
"""Schedules for Pygments. The words are those of the playground's editor, too: sdma_words.json."""
import json
import pathlib

import pygments.lexers
from pygments.lexer import RegexLexer, words
from pygments.token import Comment, Keyword, Name, Number, Operator, Punctuation, String, Whitespace

__all__ = ["SdmaLexer"]
WORDS = json.loads(pathlib.Path(__file__).with_name("sdma_words.json").read_text(encoding="utf-8"))


class SdmaLexer(RegexLexer):
    name, aliases, filenames = "sdma", ["sdma"], ["*.sdma"]
    rest = [
        (r"\n", Whitespace, "#pop"),
        (r"[ \t]+", Whitespace),
        (r"#.*", Comment.Single),
        (r'"[^"\n]*"', String),
        (r"(?:0x[0-9a-fA-F]+|\d+[KMG]?)\b", Number),
        (r"[A-Za-z_]\w*(?==(?!=))", Name.Attribute),
        (words(WORDS["words"], prefix=r"\b", suffix=r"\b"), Keyword),
        (r"[A-Za-z_]\w*", Name),
        (r"[-+*/%<>=!]+", Operator),
        (r".", Punctuation),
    ]
    tokens = {
        "root": [
            (r"\n", Whitespace),
            (r"[ \t]+", Whitespace),
            (r"#.*", Comment.Single),
            (words(WORDS["statements"], suffix=r"\b"), Keyword, "rest"),
            (r"[A-Za-z_]\w*", Name.Builtin, "rest"),
            (r".", Punctuation, "rest"),
        ],
        "rest": rest,
    }


pygments.lexers.LEXERS["SdmaLexer"] = (__name__, SdmaLexer.name, tuple(SdmaLexer.aliases), tuple(SdmaLexer.filenames), ())
