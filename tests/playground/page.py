#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Uses the page as a person does: page.py PAGE CHROMIUM CHROMEDRIVER SDMA [PICTURES]     SDMA: the native program"""
import json
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/trace"))
from browser import Browser, expect

RACE = "tests/museum/exhibits/late_fill.bug.sdma"
# Generous, because machines differ; the figures are printed.
MOST_BYTES, MOST_LOAD_MS, MOST_JUDGE_MS = 3_000_000, 10_000, 5_000
# 8500 simulations: no machine ends them within the limit below.
LATENCIES = ",".join(map(str, range(500)))
LONG = ["simulate", "--sweep", f"engine.latency_ns={LATENCIES}", "--sweep", "engine.window_bytes=16K..1G*2", "--set", "N=8", "a.sdma"]
PHONE = (390, 844)
LEAST_CONTRAST = 4.5


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


def far_larger(browser, native):
    """64 GB of buffers in a program that has 2 GB: as fast as before, and the time is the installed program's."""
    command = ["simulate", "--set", "N=8", "--set", "chunk=1G", "a.sdma"]
    files = "{'a.sdma': bytesOf(examples['examples/schedules/2_allgather_b2b.sdma'])}"
    browser.run(f"window.ended = null; const begun = performance.now(); runProgram({json.dumps(command)}, new Uint8Array(), {files}, 10000)"
                ".then((a) => { window.ended = { ...a, ms: performance.now() - begun }; })")
    until(browser, "1 GiB for each GPU is simulated", "window.ended?.code === 0")
    ms, told = browser.run("return [window.ended.ms, text(window.ended.out)]")
    print(f"        1 GiB for each GPU: {ms:.0f} ms")
    wanted = subprocess.run([native, *command[:-1], ROOT / "examples/schedules/2_allgather_b2b.sdma"], capture_output=True, text=True, check=True).stdout
    expect("it takes as long as the installed program says", told == wanted)


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
    works(browser, "the next run has a new worker")


def crash(browser):
    # The words do not fit the program's stack.
    browser.run("window.ended = null; runProgram(['dis', 'x'.repeat(2e7)], new Uint8Array(), {}, 60000).then((a) => { window.ended = a; })")
    until(browser, "a crash is told", "window.ended?.stopped?.startsWith('the program crashed: ')", 60)
    works(browser, "the next run works")


def works(browser, what):
    browser.run("window.ended = null; runProgram(['--version'], new Uint8Array(), {}, 10000).then((a) => { window.ended = a; })")
    until(browser, what, "window.ended?.code === 0 && text(window.ended.out).startsWith('sdma ')")


def exhibit(browser):
    browser.run("const e = document.getElementById('example'); e.value = 'tests/museum/exhibits/crooked_fence.bug.packets'; e.dispatchEvent(new Event('change'))")
    until(browser, "an exhibit's packets become a ring", "!document.getElementById('ring').hidden && document.getElementById('packets').innerText.includes('fence addr=0x7f0000001002')")
    write(browser, "wptr", "'44'")
    write(browser, "rptr", "'28'")
    until(browser, "a pending packet's finding is not marked", "document.querySelector('#packets tr:not(.done) article') && document.querySelector('#packets tr.done')")
    write(browser, "rptr", "'44'")
    until(browser, "a finding of a packet before rptr is told apart", "document.querySelector('#packets tr.done article')?.parentElement.innerText.startsWith('executed already')")


def keyboard(browser):
    browser.run("show('schedule'); document.querySelector('[data-pane=schedule]').focus()")
    for key, pane in (("\ue014", "ring"), ("\ue014", "terminal"), ("\ue014", "schedule"), ("\ue012", "terminal"), ("\ue014", "schedule")):
        browser.press(key)
        seen = browser.run("return [document.activeElement.dataset.pane, [...document.querySelectorAll('section')].filter((e) => !e.hidden).map((e) => e.id).join()]")
        expect(f"an arrow key shows {pane}", seen == [pane, pane])
    write(browser, "source", f"examples[{json.dumps(RACE)}]")
    until(browser, "there is a line to insert", "document.querySelector('#findings .insert')")
    reached = set()
    for _ in range(60):
        browser.press("\ue004")
        reached.add(browser.run("return document.activeElement.className"))
    expect(f"the tab key reaches the buttons {sorted(reached)}", {"stop", "insert"} <= reached)
    nameless = browser.run("""return [...document.querySelectorAll('button, input, select, textarea, img, [role=img]')].filter((e) =>
      !(e.ariaLabel || e.innerText || e.alt || [...(e.labels ?? [])].some((l) => l.innerText))).map((e) => e.outerHTML.slice(0, 80))""")
    expect(f"everything has a name {nameless}", nameless == [])


def looks(browser, pictures):
    """Schemes and widths. The schedule is one with findings; the ring and the command line have output."""
    browser.run("document.getElementById('command-form').requestSubmit()")
    until(browser, "a command runs", "document.getElementById('command-status').textContent.startsWith('exit code')")
    for scheme in ("dark", "light"):
        browser.scheme(scheme)
        for pane in ("schedule", "ring", "terminal"):
            browser.run(f"show('{pane}')")
            least, where = browser.contrast("h1, h3, p:not(:empty), li, code, pre, button, label, td, #verdict, textarea, select")
            expect(f"{pane}, {scheme}: contrast {least:.1f} ({where})", least >= LEAST_CONTRAST)
            if pictures:
                pathlib.Path(pictures, f"{scheme}-{pane}.png").write_bytes(browser.picture())
    browser.phone(PHONE)
    for pane in ("schedule", "ring", "terminal"):
        browser.run(f"show('{pane}')")
        wide, screen = browser.run("return [document.scrollingElement.scrollWidth, innerWidth]")
        if pictures:
            pathlib.Path(pictures, f"phone-{pane}.png").write_bytes(browser.picture())
        expect(f"{pane}: {wide} of {screen} pixels of a phone", wide <= screen == PHONE[0])
    browser.phone(None)


def main(page, chromium, chromedriver, native, pictures=None):
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
            far_larger(browser, native)
            large(browser)
            endless(browser)
            crash(browser)
            exhibit(browser)
            keyboard(browser)
            looks(browser, pictures)
            link(browser)
            complaints = [c for c in browser.complaints() if "favicon" not in c]
            expect(f"no complaint of the browser {complaints}", not complaints)
        finally:
            browser.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
