#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Puts the page together: one file, which works without a server and makes no request.

  assemble.py SOURCE PROGRAM OUTPUT     PROGRAM: the folder with sdma.js and sdma.wasm
"""
import base64
import gzip
import json
import pathlib
import sys

# 'wasm-unsafe-eval' permits WebAssembly, and nothing else that a text could bring in. No other source: no request can be made.
POLICY = ("default-src 'none'; script-src 'unsafe-inline' 'wasm-unsafe-eval' blob:; worker-src blob:; style-src 'unsafe-inline'; "
          "img-src data:; base-uri 'none'; form-action 'none'")  # fmt: skip
# Parts of the first are its own, in other folders.
EXAMPLES = ("examples/schedules/*.sdma", "tests/museum/exhibits/*.sdma", "tests/museum/exhibits/*.packets")


def inside(text):
    """Text for an element `script`, which only its own end tag ends."""
    return text.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def main(source, program, output):
    source, program, output = map(pathlib.Path, (source, program, output))
    part = lambda name: (source / "playground/page" / name).read_text(encoding="utf-8")
    number = lambda path: (path.parts[0], int(path.name.split("_")[0]) if path.name[0].isdigit() else 0, path.name)
    examples = [path.relative_to(source) for pattern in EXAMPLES for path in source.glob(pattern)]
    texts = {str(path): (source / path).read_text(encoding="utf-8") for path in sorted(examples, key=number)}
    if not texts:
        sys.exit(f"{source}: no examples: {', '.join(EXAMPLES)}")
    wasm = base64.b64encode(gzip.compress((program / "sdma.wasm").read_bytes(), 9, mtime=0)).decode()
    worker = (program / "sdma.js").read_text(encoding="utf-8") + part("worker.js")
    page = f"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<title>sdma playground</title>
<link rel="icon" href="data:,">
<style>
{part("style.css")}</style>
{part("body.html")}
<script type="application/octet-stream" id="program">{wasm}</script>
<script type="text/plain" id="worker">{inside(worker)}</script>
<script type="application/json" id="examples">{json.dumps(texts).replace("<", chr(92) + "u003c")}</script>
<script>
{inside(part("runner.js"))}{inside(part("page.js"))}</script>
"""
    output.write_text(page, encoding="utf-8")
    print(f"{output}: {output.stat().st_size} bytes")


if __name__ == "__main__":
    main(*sys.argv[1:])
