#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The page's verbs answer as the installed program does: the cases of tests/tools, with a stub named sdma.

  same.py PAGE CHROMIUM CHROMEDRIVER SDMA STUB CASES

STUB (stub.cpp) sends its folder, its words and its input to this process, which runs them in the page with the files of that folder
and sends back what came out. A verb that the page lacks goes to SDMA.
"""
import base64
import json
import pathlib
import re
import shutil
import socketserver
import sys
import tempfile
import threading

ROOT = pathlib.Path(__file__).parent.parent
sys.path[:0] = [str(ROOT / "trace"), str(ROOT / "support")]
import cases
from browser import Browser

VERBS = {"dis", "as", "check", "simulate", "fmt"}
LEAST = 100  # cases that have to be compared

# A case whose commands need more than a page has, by a pattern of its commands, and the reason.
LEFT_OUT = {
    r"/dev/full|/dev/null/|>&-|/proc/|/sys/": "a device or a closed descriptor of the system",
    r"\bscript\b": "a terminal",
    r"PIPESTATUS": "a pipe whose reader exits",
    r"-o (\S+) < \1": "an input whose name the page does not know",
    r"\b(xz|gzip|tar) ": "an archive, which the page does not unpack",
    r"\bmkdir\b": "a folder without files",
    r"\bstrace\b|ulimit|chmod|mkfifo|ln -s": "permissions, limits, links or pipes of the system",
}
RUN = """const done = arguments[arguments.length - 1], bytes = (s) => Uint8Array.from(atob(s), (c) => c.charCodeAt(0));
const base64 = (b) => { let s = ''; for (let i = 0; i < b.length; i += 4096) s += String.fromCharCode(...b.subarray(i, i + 4096)); return btoa(s); };
const q = QUESTION, files = Object.fromEntries(Object.entries(q.files).map(([n, s]) => [n, bytes(s)]));
runProgram(q.words, bytes(q.input), files, 60000).then((a) => done(a.stopped ? a : { code: a.code, out: base64(a.out), err: base64(a.err),
  files: Object.fromEntries(Object.entries(a.files).map(([n, b]) => [n, base64(b)])) }));"""


class Page:
    def __init__(self, browser):
        self.browser, self.lock, self.runs = browser, threading.Lock(), 0

    def answer(self, folder, words, given):
        verb = next((w for w in words if not w.startswith("-")), None)
        if verb is not None and verb not in VERBS:
            return b"native\n"
        folder = pathlib.Path(folder)
        files = {str(p.relative_to(folder)): base64.b64encode(p.read_bytes()).decode()
                 for p in folder.rglob("*") if p.is_file() and not p.is_symlink()}  # fmt: skip
        asked = json.dumps({"words": words, "input": base64.b64encode(given).decode(), "files": files})
        with self.lock:
            got = self.browser.run_async(RUN.replace("QUESTION", asked))
            self.runs += 1
        if "stopped" in got:
            return b"255 0\n" + f"the page: {got['stopped']}\n".encode()
        for name, content in got["files"].items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(base64.b64decode(content))
        out = base64.b64decode(got["out"])
        return b"%d %d\n" % (got["code"], len(out)) + out + base64.b64decode(got["err"])


def serve(page, path):
    class Handler(socketserver.StreamRequestHandler):
        def handle(self):
            length = int(self.rfile.readline())
            folder, *words = self.rfile.read(length).decode("utf-8", "surrogateescape").split("\0")[:-1]
            self.wfile.write(page.answer(folder, words, self.rfile.read()))

    server = socketserver.ThreadingUnixStreamServer(str(path), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()


def verbs_of(script):
    """The verbs of the script's calls of sdma."""
    return set(re.findall(r"(?<![\w.])sdma +(?:--?\S+ +)*([a-z]+)\b", script))


def main(page_file, chromium, chromedriver, native, compiled, folder):
    compared, failed, left = 0, [], {}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
        browser = Browser(chromium, chromedriver, str(pathlib.Path(place, "profile")), patience=120)
        try:
            browser.open(pathlib.Path(page_file).resolve().as_uri())
            page = Page(browser)
            serve(page, pathlib.Path(place, "socket"))
            stub = pathlib.Path(place, "sdma")
            shutil.copy(compiled, stub)
            pathlib.Path(place, "native").symlink_to(pathlib.Path(native).resolve())
            for case in sorted(pathlib.Path(folder).glob("*.test")):
                head, wanted = cases.split(case.read_text(encoding="utf-8"))
                script, env, _, needs = cases.parse(head)
                if not verbs_of(script) <= VERBS or not verbs_of(script):
                    continue
                reason = next((why for pattern, why in LEFT_OUT.items() if re.search(pattern, script)), None)
                if reason or needs or env:
                    left.setdefault(reason or ("needs another program" if needs else "sets a variable of the environment"), []).append(case.stem)
                    continue
                compared += 1
                found = cases.outcome([stub], head)
                if found != wanted:
                    failed.append(case.stem)
                    sys.stdout.writelines(cases.difflib.unified_diff(wanted.splitlines(True), found.splitlines(True), str(case), "in the page"))
        finally:
            browser.close()
    for reason, names in left.items():
        print(f"left out, {reason}: {', '.join(names)}")
    print(f"{compared - len(failed)} of {compared} cases are the same in the page, {page.runs} runs")
    if failed:
        print("different:", ", ".join(failed))
    if compared < LEAST:
        print(f"only {compared} cases were compared, {LEAST} at least")
    return 1 if failed or compared < LEAST else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
