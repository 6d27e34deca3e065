#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Uses the page as a person does: page.py PAGE CHROMIUM CHROMEDRIVER [PICTURES]"""
import json
import pathlib
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "trace"))
from browser import Browser, expect

RACE = "tests/museum/exhibits/late_fill.bug.sdma"
# Generous, because machines differ; the figures are printed.
MOST_BYTES, MOST_LOAD_MS, MOST_JUDGE_MS = 3_000_000, 10_000, 5_000
LONG = ["simulate", "--sweep", "chunk=1K..16M*2", "--sweep", "engine.window_bytes=16K..1G*2", "--set", "N=8", "a.sdma"]


def until(browser, what, script, seconds=30):
    """Waits until the script's expression holds, at most so long."""
    end = time.monotonic() + seconds
    while not (held := browser.run(f"return {script}")):
        if time.monotonic() > end:
            print(browser.run("return document.body.innerText")[:2000])
            break
        time.sleep(0.02)
    expect(what, bool(held))
    return held


def write(browser, where, text):
    browser.run(f"const e = document.getElementById({json.dumps(where)}); e.value = {text}; e.dispatchEvent(new Event('input'))")


def verdict(browser, wanted):
    until(browser, f"the verdict is {wanted}", f"document.getElementById('verdict').textContent === {json.dumps(wanted)}")


def first_load(browser, page):
    size = page.stat().st_size
    print(f"        the page has {size} bytes")
    expect("the page is below 3 MB", size < MOST_BYTES)
    browser.open(page.as_uri())
    ms = int(until(browser, "the page works from file://", "document.body.dataset.ready"))
    print(f"        ready after {ms} ms")
    expect("it loads in time", ms < MOST_LOAD_MS)
    verdict(browser, "proved")
    requests = browser.run("return performance.getEntriesByType('resource').map((e) => e.name).filter((n) => !/^(blob|data):/.test(n))")
    expect(f"it makes no request {requests}", requests == [])


def speed(browser):
    took = []
    for _ in range(5):
        before = browser.run("return document.getElementById('took').dataset.source")
        write(browser, "source", "document.getElementById('source').value + ' '")
        until(browser, "it is judged again", f"document.getElementById('took').dataset.source > {before or 0}")
        took.append(int(browser.run("return parseInt(document.getElementById('took').textContent)")))
    print(f"        8-GPU all-gather, proof and prediction: {took} ms")
    expect("a change is judged in time", min(took) < MOST_JUDGE_MS)


def race(browser):
    write(browser, "source", f"examples[{json.dumps(RACE)}]")
    verdict(browser, "refuted")
    packets = browser.run("return [...document.querySelectorAll('#findings .packets li code')].map((e) => e.textContent)")
    expect(f"two packets are shown: {packets}", len(packets) == 2 and packets[0].startswith("fill") and packets[1].startswith("copy_linear"))
    browser.run("document.querySelector('#findings .insert').click()")
    verdict(browser, "proved")
    expect("the line is in the text", "poll_mem addr=host.filled" in browser.run("return document.getElementById('source').value"))


def sliders(browser):
    write(browser, "source", "examples['examples/schedules/2_allgather_b2b.sdma']")
    until(browser, "its params have sliders", "document.querySelector('#params input[data-name=chunk]')")
    verdict(browser, "proved")
    before = until(browser, "a time is predicted", "document.getElementById('predicted')?.textContent")
    browser.run("const e = document.querySelector('#params input[data-name=chunk]'); e.value = Number(e.value) + 4; e.dispatchEvent(new Event('input'))")
    until(browser, "a slider changes the time", f"document.getElementById('predicted')?.textContent !== {json.dumps(before)} && document.getElementById('predicted')")
    now = browser.run("return document.getElementById('predicted').textContent")
    browser.run("const e = document.getElementById('parameter'); e.value = 'engine.latency_ns'; e.onchange();"
                "const s = document.querySelector('#machine input'); s.value = s.max; s.dispatchEvent(new Event('input'))")
    until(browser, "so does one for the machine", f"document.getElementById('predicted') && document.getElementById('predicted').textContent !== {json.dumps(now)}")
    expect("the timeline is drawn", browser.run("return document.querySelector('#time img').naturalWidth > 100") or
           until(browser, "the picture loads", "document.querySelector('#time img')?.naturalWidth > 100"))


def link(browser):
    write(browser, "source", "'sdma 1  # über ' + '\\u{1f600}' + '\\ngpus 2\\n'")
    until(browser, "the link holds the text", "location.hash.length > 20")
    time_limit = time.monotonic() + 10
    address = browser.run("return location.href")
    while time.monotonic() < time_limit:
        time.sleep(0.1)
        if address == (address := browser.run("return location.href")):
            break
    browser.open(address)
    until(browser, "the link opens", "document.body.dataset.ready")
    expect("its text is the same", browser.run("return document.getElementById('source').value") == "sdma 1  # über \U0001f600\ngpus 2\n")
    browser.open(address[:-8] + "!!!!!!!!")
    until(browser, "a damaged link is reported", "document.getElementById('notice').textContent.startsWith('the link is damaged')")


def ring(browser):
    browser.run("show('ring')")
    # poll_mem, then a fence whose address is not aligned.
    write(browser, "dump", "'[ 1.0] amdgpu 0000:c1:00.0: 00000005 00001002\\n[ 1.1] amdgpu 0000:c1:00.0: 00007f00 deadbeef\\n[ 1.2] amdgpu 0000:c1:00.0: 00000000 00000000\\n'")
    until(browser, "a log becomes packets", "document.getElementById('packets').innerText.includes('fence addr=0x7f0000001002')")
    until(browser, "a finding is beside its packet", "document.querySelector('#packets tr article')?.innerText.includes('not a multiple of 4')")
    write(browser, "rptr", "'0'")
    write(browser, "wptr", "'16'")
    until(browser, "rptr is marked", "[...document.querySelectorAll('#packets tr.mark')].some((e) => e.innerText.includes('rptr'))")


def large(browser):
    for pane, where in (("ring", "dump"), ("schedule", "source")):
        browser.run(f"show('{pane}')")
        begin = time.monotonic()
        write(browser, where, "'00000000 '.repeat(1250000)")
        browser.run("return 1")
        print(f"        10 MB into {where}: {1000 * (time.monotonic() - begin):.0f} ms")
        until(browser, "10 MB wait for a click", f"document.querySelector('#{pane} .columns, #{pane}').innerText.includes('characters, so it is not')")
    browser.run("document.querySelector('#findings button').click()")
    until(browser, "10 MB get an answer", "!document.getElementById('verdict').textContent.startsWith('checking') && document.getElementById('verdict').textContent !== 'not checked'", 60)
    write(browser, "source", "examples['examples/schedules/2_allgather_b2b.sdma']")
    write(browser, "dump", "''")
    verdict(browser, "proved")


def endless(browser):
    start = ("const files = {'a.sdma': bytesOf(examples['examples/schedules/2_allgather_b2b.sdma'])};"
             f"window.ended = null; runProgram({json.dumps(LONG)}, new Uint8Array(), files, LIMIT).then((a) => {{ window.ended = a; }});")
    browser.run(start.replace("LIMIT", "300"))
    until(browser, "a run ends at its limit", "window.ended?.stopped === 'stopped after 0.3 s'")
    browser.run(start.replace("LIMIT", "600000"))
    until(browser, "a run goes on", "commands.busy")
    browser.run("document.querySelector('button.stop').click()")
    until(browser, "the button stops a run", "window.ended?.stopped === 'stopped'")
    browser.run("window.ended = null; runProgram(['--version'], new Uint8Array(), {}, 10000).then((a) => { window.ended = a; })")
    until(browser, "the next run has a new worker", "window.ended?.code === 0 && text(window.ended.out).startsWith('sdma ')")


def narrow(browser, pictures):
    sizes = {"desktop": (1200, 800), "phone": (500, 900)}
    for name, (width, height) in sizes.items():
        browser.post("/window/rect", {"width": width, "height": height})
        for pane in ("schedule", "ring", "terminal"):
            browser.run(f"show('{pane}')")
            wide = browser.run("return document.documentElement.scrollWidth - document.documentElement.clientWidth")
            expect(f"{name}: {pane} fits the width", wide <= 0)
            if pictures:
                pathlib.Path(pictures, f"{name}-{pane}.png").write_bytes(browser.picture())


def main(page, chromium, chromedriver, pictures=None):
    page = pathlib.Path(page).resolve()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = Browser(chromium, chromedriver, profile)
        try:
            first_load(browser, page)
            speed(browser)
            race(browser)
            sliders(browser)
            if pictures:
                pathlib.Path(pictures, "schedule.png").write_bytes(browser.picture())
            ring(browser)
            if pictures:
                pathlib.Path(pictures, "ring.png").write_bytes(browser.picture())
            large(browser)
            endless(browser)
            narrow(browser, pictures)
            link(browser)
            complaints = [c for c in browser.complaints() if "favicon" not in c]
            expect(f"no complaint of the browser {complaints}", not complaints)
        finally:
            browser.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
