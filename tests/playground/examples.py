#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Each example and each exhibit in the page: verdict, colour, prediction and fix are those of the installed program.

  examples.py PAGE CHROMIUM CHROMEDRIVER SDMA [NAME...]     NAME: parts of the names of examples; without one, all
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/trace"))
from browser import Browser

COLOURS = {0: "--good", 1: "--bad", 3: "--bad", 4: "--warn"}
LEAST = 85  # examples
# What the pane of schedules shows, once the answers are those of the present text; null until then.
SHOWN = """if (document.querySelector('#verdict.busy, .stale, #timeline .next')) return null;
  const v = document.getElementById('verdict'), of = (e) => e && getComputedStyle(e).color, at = (id) => document.getElementById(id);
  if (document.getElementById('took').dataset.source !== String(judged)) return null;
  return { word: v.textContent, code: Number(v.dataset.code), colour: of(v), summary: document.querySelector('#findings .summary')?.textContent ?? null,
    rules: [...document.querySelectorAll('#findings h2')].map((e) => e.textContent.split(',')[0]), time: at('predicted')?.textContent ?? null,
    note: at('time-note').textContent, timeline: document.querySelector('#timeline iframe') !== null, fix: document.querySelector('#findings .insert') !== null,
    text: at('source').value, raw: at('schedule').innerText.includes('{"') }"""


def colour_of(browser, variable):
    return browser.run(f"const e = document.createElement('i'); e.style.color = 'var({variable})'; document.body.append(e);"
                       "const c = getComputedStyle(e).color; e.remove(); return c")


def until(browser, script, seconds=60):
    end = time.monotonic() + seconds
    while not (found := browser.run(script)):
        if time.monotonic() > end:
            raise TimeoutError(script.split("\n")[0])
        time.sleep(0.03)
    return found


def json_lines(text):
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def microseconds(ns):
    return f"{ns / 1e3:.2f} µs" if ns < 1e6 else f"{ns / 1e6:.3f} ms"


class Native:
    def __init__(self, program, folder, companions):
        self.program, self.folder = program, folder
        for name, text in companions.items():
            pathlib.Path(folder, name).write_text(text, encoding="utf-8")

    def run(self, *words):
        return subprocess.run([self.program, *words], cwd=self.folder, capture_output=True, text=True, timeout=300)

    def schedule(self, text, options):
        pathlib.Path(self.folder, "schedule.sdma").write_text(text, encoding="utf-8")
        check, simulate = self.run("check", "--json", *options, "schedule.sdma"), self.run("simulate", "--json", "--no-sensitivity", "schedule.sdma")
        *found, answer = json_lines(check.stdout)
        ns = json.loads(simulate.stdout)["ns"] if simulate.stdout else None
        said = [m for m in (json_lines(simulate.stderr)[:1])]
        return {"word": answer["outcome"], "code": check.returncode, "summary": answer["summary"],
                "rules": [f"{f['severity']} [{f['rule']}]" for f in found], "time": microseconds(ns) if ns is not None else None,
                "why": said[0]["message"] if said and ns is None else None, "fix": any("edits" in f for f in found)}  # fmt: skip


def compare(browser, native, text, options, colours):
    """What differs between the page and the program, for this text; and what the page shows."""
    shown = until(browser, SHOWN)
    wanted = native.schedule(text, options)
    wrong = [f"{key}: {shown[key]!r}, and the program says {wanted[key]!r}" for key in ("word", "code", "summary", "rules", "time", "fix")
             if shown[key] != wanted[key]]  # fmt: skip
    if shown["text"] != text:
        wrong.append("the text is another one")
    if shown["colour"] != colours.get(wanted["code"]):
        wrong.append(f"the colour is {shown['colour']}")
    if shown["timeline"] != (wanted["time"] is not None):
        wrong.append(f"a timeline is there: {shown['timeline']}, and a prediction: {wanted['time']}")
    if wanted["time"] is None and (not wanted["why"] or wanted["why"] not in shown["note"]):
        wrong.append(f"the reason for no prediction is {shown['note']!r}, and the program's {wanted['why']!r}")
    if shown["raw"]:
        wrong.append("JSON is shown")
    return wrong, shown


def schedule(browser, native, name, example, colours):
    browser.run(f"const e = document.getElementById('example'); e.value = {json.dumps(name)}; e.dispatchEvent(new Event('change'))")
    wrong, shown = compare(browser, native, example["text"], example["options"], colours)
    if not shown["fix"]:
        return wrong
    browser.run("document.querySelector('#findings .insert').click()")
    text = browser.run("return document.getElementById('source').value")
    if text == example["text"]:
        return [*wrong, "the fix changes nothing"]
    return wrong + [f"after the fix, {w}" for w in compare(browser, native, text, example["options"], colours)[0]]


def packets(browser, native, name, example):
    pathlib.Path(native.folder, "ring.packets").write_text(example["text"], encoding="utf-8")
    made = native.run("as", "ring.packets", "-o", "ring.bin", *[o for o in example["options"] if o.startswith(("--gfx", "--sdma"))])
    browser.run(f"const e = document.getElementById('example'); e.value = {json.dumps(name)}; e.dispatchEvent(new Event('change'))")
    if made.returncode != 0:
        first = made.stderr.split("\n")[0].partition("error: ")[2]
        told = until(browser, "return document.getElementById('notice').textContent")
        return [] if first in told else [f"the notice is {told!r}, and the program says {first!r}"]
    summary = json_lines(native.run("check", "--json", "--max-findings=5", *example["options"], "ring.bin").stdout)[-1]["summary"]
    wanted = summary.partition(": ")[2].partition(" (")[0]
    told = until(browser, "return document.getElementById('ring-status').classList.contains('busy') ? '' : document.getElementById('ring-status').textContent")
    return [] if wanted in told else [f"the status is {told!r}, and the program says {wanted!r}"]


def main(page, chromium, chromedriver, program, *names):
    wrong = count = 0
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
        browser = Browser(chromium, chromedriver, str(pathlib.Path(place, "profile")), patience=120)
        try:
            browser.open(pathlib.Path(page).resolve().as_uri())
            until(browser, "return document.body.dataset.ready")
            examples, companions = browser.run("return [examples, companionTexts]")
            native = Native(str(pathlib.Path(program).resolve()), place, companions)
            colours = {code: colour_of(browser, variable) for code, variable in COLOURS.items()}
            for name, example in examples.items():
                if names and not any(part in name for part in names):
                    continue
                count += 1
                browser.run("document.getElementById('notice').textContent = ''; document.getElementById('ring-status').textContent = ''")
                try:
                    found = packets(browser, native, name, example) if name.endswith(".packets") else schedule(browser, native, name, example, colours)
                except TimeoutError as e:
                    found = [f"no answer in time: {e}"]
                wrong += bool(found)
                for what in found:
                    print(f"{name}: {what}")
        finally:
            browser.close()
    print(f"{count - wrong} of {count} examples are shown as the program says")
    if not names and count < LEAST:
        print(f"only {count} examples, {LEAST} at least")
    return 1 if wrong or (not names and count < LEAST) else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
