#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The page's verbs answer as the installed program does: the cases of tests/tools, with a stub named sdma.

  same.py PAGE CHROMIUM CHROMEDRIVER SDMA CASES

The stub sends its words, its input and the files of its folder to this process, which runs them in the page and writes back what
came out. A verb that the page lacks goes to SDMA.
"""
import base64
import http.server
import json
import os
import pathlib
import re
import stat
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
    r"\bmkdir\b": "a folder without files",
    r"\bstrace\b|ulimit|chmod|mkfifo|ln -s": "permissions, limits, links or pipes of the system",
}
STUB = '''#!{python}
import base64, json, os, sys, urllib.request
body = json.dumps({{"words": sys.argv[1:], "folder": os.getcwd(), "input": base64.b64encode(sys.stdin.buffer.read()).decode()}})
answer = json.load(urllib.request.urlopen("{url}", body.encode(), timeout=120))
if answer.get("native"):
    os.execv("{native}", ["sdma", *sys.argv[1:]])
sys.stdout.buffer.write(base64.b64decode(answer["out"])); sys.stdout.buffer.flush()
sys.stderr.buffer.write(base64.b64decode(answer["err"])); sys.stderr.buffer.flush()
sys.exit(answer["code"])
'''
RUN = """const done = arguments[arguments.length - 1], bytes = (s) => Uint8Array.from(atob(s), (c) => c.charCodeAt(0));
const base64 = (b) => { let s = ''; for (let i = 0; i < b.length; i += 4096) s += String.fromCharCode(...b.subarray(i, i + 4096)); return btoa(s); };
const q = QUESTION, files = Object.fromEntries(Object.entries(q.files).map(([n, s]) => [n, bytes(s)]));
runProgram(q.words, bytes(q.input), files, 60000).then((a) => done(a.stopped ? a : { code: a.code, out: base64(a.out), err: base64(a.err),
  files: Object.fromEntries(Object.entries(a.files).map(([n, b]) => [n, base64(b)])) }));"""


class Page:
    def __init__(self, browser):
        self.browser, self.lock, self.native, self.runs = browser, threading.Lock(), False, 0

    def answer(self, question):
        verb = next((w for w in question["words"] if not w.startswith("-")), None)
        if verb is not None and verb not in VERBS:
            self.native = True
            return {"native": True}
        folder = pathlib.Path(question["folder"])
        files = {str(p.relative_to(folder)): base64.b64encode(p.read_bytes()).decode()
                 for p in folder.rglob("*") if p.is_file() and not p.is_symlink()}  # fmt: skip
        asked = json.dumps({"words": question["words"], "input": question["input"], "files": files})
        with self.lock:
            got = self.browser.run_async(RUN.replace("QUESTION", asked))
            self.runs += 1
        if "stopped" in got:
            return {"code": 255, "out": "", "err": base64.b64encode(f"the page: {got['stopped']}\n".encode()).decode()}
        for name, content in got.pop("files").items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(base64.b64decode(content))
        return got


def serve(page):
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            question = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            body = json.dumps(page.answer(question)).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def verbs_of(script):
    """The verbs of the script's calls of sdma."""
    return set(re.findall(r"(?<![\w.])sdma +(?:--?\S+ +)*([a-z]+)\b", script))


def main(page_file, chromium, chromedriver, native, folder):
    compared, failed, left = 0, [], {}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
        browser = Browser(chromium, chromedriver, str(pathlib.Path(place, "profile")), patience=120)
        try:
            browser.open(pathlib.Path(page_file).resolve().as_uri())
            page = Page(browser)
            server = serve(page)
            stub = pathlib.Path(place, "sdma")
            stub.write_text(STUB.format(python=sys.executable, url=f"http://127.0.0.1:{server.server_address[1]}", native=pathlib.Path(native).resolve()))
            stub.chmod(stub.stat().st_mode | stat.S_IXUSR)
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
