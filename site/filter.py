# SPDX-License-Identifier: MIT
"""What doxygen reads instead of a header. Line numbers stay those of the header.

- The manual with which a header opens becomes the comment of its file. Its text is left out: api.py reads it from the header.
- The inline namespace is left out, because nobody writes it.
- Code in a comment, which is indented, is marked as such.
- A declaration of several names, and a macro before a name, get the form that doxygen understands.
"""
import re

CODE = re.compile(r"(?m)^( *///  +)(.*(?:\n *///  +.*)*)")
OPENING = re.compile(r"(// SPDX[^\n]*\n#pragma once\n)((?://[^\n]*\n)+)")


def manual(text):
    """The lines of the opening comment, without the slashes."""
    match = OPENING.match(text)
    return [line[2:].removeprefix(" ") for line in match[2].splitlines()] if match else []


def filtered(text):
    def opening(match):
        return "/** @file\n * The manual. */\n" + "\n" * (match[2].count("\n"))

    text = OPENING.sub(opening, text, count=1)
    text = text.replace("namespace sdma { inline namespace v0_3 {", "namespace sdma {")
    text = re.sub(r"(?m)^\}(\}+  // namespace sdma)::v0_3", r"\1", text)
    text = CODE.sub(r"\1@verbatim \2 @endverbatim", text)
    # Doxygen does not parse these attributes; they say nothing to a reader either.
    return re.sub(r"\[\[nodiscard\]\] ?|\bSDMA_(ALWAYS_INLINE|NOINLINE|NO_THREAD_SANITIZER|NO_UNIQUE_ADDRESS)\b(?=[^\n]*[;{(]) ?", "", text) \
        if "#define SDMA_" not in text else text
