#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Puts the page together: one file, which works without a server and makes no request.

  assemble.py SOURCE PROGRAM OUTPUT [ADDRESS]     PROGRAM: the folder with sdma.js and sdma.wasm
                                                  ADDRESS: where the page will be published, for previews of links

The editor is CodeMirror, from Debian's libjs-codemirror; its licence is in the page.
"""
import base64
import gzip
import html
import json
import pathlib
import re
import shutil
import sys
import tomllib

# 'wasm-unsafe-eval' permits WebAssembly, and nothing else that a text could bring in. No other source: no request can be made.
POLICY = ("default-src 'none'; script-src 'unsafe-inline' 'wasm-unsafe-eval' blob:; worker-src blob:; style-src 'unsafe-inline'; "
          "img-src data:; base-uri 'none'; form-action 'none'")  # fmt: skip
# Parts of the first are its own, in other folders.
EXAMPLES = ("examples/schedules/*.sdma", "tests/museum/exhibits/*.sdma", "tests/museum/exhibits/*.packets")
COMPANIONS = "tests/museum/exhibits/*.json"  # that the options of exhibits name
EDITOR, LICENCE = pathlib.Path("/usr/share/javascript/codemirror/lib"), pathlib.Path("/usr/share/doc/libjs-codemirror/copyright")
PARTS = ("runner", "editor", "state", "schedule", "kinds", "ring", "page")
TITLE = "sdma playground"
DESCRIPTION = ("Write a schedule for the DMA engines of MI300X: a proof or two packets that race, the line that is missing, "
               "and the predicted time. Runs in the page; nothing leaves it.")  # fmt: skip


def inside(text):
    """Text for an element `script`, which only its own end tag ends."""
    return text.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def quoted(value):
    """JSON for an element `script`."""
    return json.dumps(value).replace("<", chr(92) + "u003c")


def options(source):
    """{exhibit: the options of sdma check with which the museum shows it}"""
    table = tomllib.loads((source / "tests/museum/museum.toml").read_text(encoding="utf-8"))
    return {exhibit["name"]: exhibit.get("options", []) for room in table["room"] for exhibit in room["exhibit"]}


def licence():
    """What covers the files that the page takes from the package: the text of its licence Expat."""
    text = LICENCE.read_text(encoding="utf-8")
    holder = re.search(r"^Files: \*\n(Copyright: .*)$", text, re.M)[1]
    words = re.search(r"^License: Expat\n((?: .*\n)+)", text, re.M)[1]
    return f"{holder}\n\n" + re.sub(r"^ \.?", "", words, flags=re.M)


def main(source, program, output, address=""):
    source, program, output = map(pathlib.Path, (source, program, output))
    part = lambda name: (source / "playground/page" / name).read_text(encoding="utf-8")
    number = lambda path: (path.parts[0], int(path.name.split("_")[0]) if path.name[0].isdigit() else 0, path.name)
    examples = [path.relative_to(source) for pattern in EXAMPLES for path in source.glob(pattern)]
    own = options(source)
    texts = {str(path): {"text": (source / path).read_text(encoding="utf-8"), "options": own.get(path.name.split(".")[0], [])}
             for path in sorted(examples, key=number)}  # fmt: skip
    companions = {path.name: path.read_text(encoding="utf-8") for path in source.glob(COMPANIONS)}
    if not texts:
        sys.exit(f"{source}: no examples: {', '.join(EXAMPLES)}")
    wasm = base64.b64encode(gzip.compress((program / "sdma.wasm").read_bytes(), 9, mtime=0)).decode()
    if not EDITOR.is_dir() or not LICENCE.is_file():
        sys.exit(f"{EDITOR}: not there; install libjs-codemirror")
    editor, look = ((EDITOR / f"codemirror.{kind}").read_text(encoding="utf-8") for kind in ("js", "css"))
    sdma_words = json.loads((source / "site/sdma_words.json").read_text(encoding="utf-8"))
    colours = (source / "lib/trace/page/colours.css").read_text(encoding="utf-8")
    worker = (program / "sdma.js").read_text(encoding="utf-8") + part("worker.js")
    page = f"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<title>{TITLE}</title>
<meta name="description" content="{DESCRIPTION}">
<meta property="og:type" content="website">
<meta property="og:title" content="{TITLE}">
<meta property="og:description" content="{DESCRIPTION}">
<meta property="og:image" content="{address}preview.png">
<meta property="og:image:alt" content="a race between two packets, the line that is missing, and the timeline">
<meta name="twitter:card" content="summary_large_image">
<link rel="icon" href="data:,">
<style>
{look}{colours}{part("style.css")}</style>
{part("body.html")}
<footer><details><summary>Licences</summary><p>sdma: MIT. The editor is CodeMirror:</p><pre id="licence" tabindex="0">{html.escape(licence())}</pre></details></footer>
<script type="application/octet-stream" id="program">{wasm}</script>
<script type="text/plain" id="worker">{inside(worker)}</script>
<script>
{inside(editor)}</script>
<script>
const examples = {quoted(texts)}, kWords = {quoted(sdma_words)};
const companionTexts = {quoted(companions)};
{"".join(inside(part(name + ".js")) for name in PARTS)}</script>
"""
    output.write_text(page, encoding="utf-8")
    shutil.copy(source / "playground/page/preview.png", output.with_name("preview.png"))
    print(f"{output}: {output.stat().st_size} bytes")


if __name__ == "__main__":
    main(*sys.argv[1:])
