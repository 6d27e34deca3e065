# SPDX-License-Identifier: MIT
"""What mkdocs imports: the anchors of headings, and the lexer of schedules."""
import sdma_lexer  # noqa: F401  registers itself
from build import slug  # noqa: F401
