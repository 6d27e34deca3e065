#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The page of traces in a real browser: page.py SDMA CHROMIUM CHROMEDRIVER [SCREENSHOTS]. With a folder, what was seen is kept there."""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

from browser import Browser, expect

TRACE = """{"sdma_trace":1,"clock":"virtual","events":11,"lost":0}
{"lane":0,"group":"host","name":"thread 1"}
{"lane":1,"group":"gpu0","name":"engine 0 queue 0"}
{"lane":2,"group":"gpu1","name":"</script><b>engine"}
{"ns":1000,"lane":0,"event":"flow_begin","value":1}
{"ns":1500,"lane":1,"event":"doorbell","position":64}
{"ns":2000,"lane":1,"event":"flow_end","value":1}
{"ns":2000,"lane":1,"event":"packet_begin","position":0,"length":7,"dwords":["0x00000001","0x00000fff","0x00000000","0x00010000","0x00007f00","0x00020000","0x00007f00"]}
{"ns":2100,"lane":2,"event":"packet_begin","position":0,"length":6,"dwords":["0xd0000008","0x00001000","0x00007f00","0x00000001","0xffffffff","0x0fff0004"]}
{"ns":END,"lane":1,"event":"packet_end","position":0}
{"ns":END,"lane":1,"event":"packet_begin","position":28,"length":4,"dwords":["0x00000005","0x00001000","0x00007f00","0x00000001"]}
{"ns":SIGNAL,"lane":1,"event":"signal","address":"0x7f0000001000","value":"0x1"}
{"ns":SIGNAL,"lane":1,"event":"packet_end","position":28}
{"ns":LAST,"lane":2,"event":"packet_end","position":0}
{"ns":LAST,"lane":2,"event":"packet_begin","position":24,"length":1,"dwords":["0x00000000"]}
"""

# A queue whose set-up takes 77 ms and whose removal takes 50 ms, with 10 us of packets between them.
SETUP = """{"sdma_trace":2,"clock":"steady","events":10,"lost":0}
{"lane":0,"group":"host","name":"main"}
{"lane":1,"group":"gpu0","name":"engine 0 push"}
{"text":0,"is":"waits for host.done >= {}"}
{"range":0,"address":"0x7f0000000000","bytes":131072,"is":"gpu7.buf"}
{"ns":1000,"lane":1,"event":"queue_created","value":65536}
{"ns":1500,"lane":0,"event":"action_begin","text":0,"value":"0x8","address":"0x7f0000001000"}
{"ns":77001000,"lane":1,"event":"epoch","position":0,"value":3}
{"ns":77001000,"lane":1,"event":"packet_begin","position":0,"length":7,"dwords":["0x00000001","0x00000fff","0x00000000","0x00010000","0x00007f00","0x00020000","0x00007f00"]}
{"ns":77009000,"lane":1,"event":"packet_end","position":0}
{"ns":77009000,"lane":1,"event":"packet_begin","position":28,"length":4,"dwords":["0x00000005","0x00001000","0x00007f00","0x00000001"]}
{"ns":77010000,"lane":1,"event":"packet_end","position":28}
{"ns":77011000,"lane":0,"event":"signal","address":"0x7f0000002000","value":"0x1"}
{"ns":77011000,"lane":0,"event":"action_end"}
{"ns":127000000,"lane":1,"event":"queue_destroyed","position":44}
"""
EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples" / "schedules"
# What one picture writes, with where each text begins: [[text, x, y]].
TEXTS = """const pen = canvas.getContext('2d'), texts = [];
    pen.fillText = function (t, x, y) { texts.push([t, x, y]); Object.getPrototypeOf(pen).fillText.call(pen, t, x, y); };
    view.draw();
    delete pen.fillText;
    return texts;"""


def names_and_actions(browser, work, keep):
    browser.open((work / "simulate.html").as_uri())
    texts = [t for t, _, _ in browser.run(TEXTS)]
    keep("names")
    expect("bars show packets by the names of the schedule", "copy_linear bytes=64K src=gpu1.buf[64K] dst=gpu0.buf[64K]  # epoch 1" in texts)
    packets = json.loads((work / "simulate.answer").read_text())["packets"]
    told = browser.run("return document.getElementById('names').innerText")
    expect(f"the page counts packets as simulate does: {told}", f", {packets} packets, clock virtual" in told)
    expect("signals by theirs", "atomic op=add_rtn_64 addr=host.done value=-1  # epoch 1" in texts)
    expect("no address is left", not any("=0x" in t for t in texts))
    expect("queues by theirs", "engine 14 b2b" in texts)
    expect("a host thread waits for a named signal", "waits for host.done == 0" in texts)
    browser.run("show(model.first, 0)")
    texts = [t for t, _, _ in browser.run(TEXTS)]
    keep("host")
    expect("before the first packet, it builds and rings",
           any(t.startswith("builds 2 packets") for t in texts) and any(t.startswith("rings gpu0.b2b") for t in texts))
    browser.click_on("#all")
    expect("nothing is said to be cut off", not any("available" in t or "kept" in t for t in texts))
    wait = browser.run("const l = model.traces[0].lanes.find(l => l.group === 'host'); return `${l.key}.${l.count - 1}`")
    browser.click_packet(wait)
    expect("a click shows an action", browser.text("#packet h2") == "waits for host.done == 0" and "dwords" not in browser.text("#packet"))
    steps = browser.text("#path").splitlines()
    keep("wait")
    expect("its path leads from the packet that it waited for",
           any("atomic op=add_rtn_64 addr=host.done" in s and "its word became 0x0" in s for s in steps) and "waits for host.done == 0" in steps[-1])
    search = "byId('find').value = '{}'; byId('find').dispatchEvent(new Event('input'))"
    browser.run(search.format("dst=gpu0.buf[64K]"))
    expect("a search finds a name", browser.text("#found") == "2 packets" and "dst=gpu0.buf[64K]" in browser.text("#packet pre"))
    browser.run(search.format("waits"))
    expect("and an action", browser.text("#found") == "0 packets, 1 action" and browser.text("#packet h2").startswith("waits"))
    browser.run(search.format("epoch 1"))
    expect("and an epoch", browser.text("#found") == "4 packets, 2 actions")
    browser.click_on("#critical")
    steps = browser.text("#path").splitlines()
    expect("the critical path is the simulator's, with the host and the copies",
           "builds 2 packets of gpu0.b2b" in steps[1] and any("copy: link gpu" in s and "moves 64K" in s for s in steps) and "host main: checks a word" in steps[-1])
    expect("it takes the whole width", browser.run("const l = model.traces[0].lanes.find((l) => l.group === SIMULATED).packets; return Math.abs(state.from - l.from[0]) < 1 && state.to >= l.to[l.to.length - 1] - 1"))
    expect("what scrolls can have the focus", browser.run("return document.getElementById('details').tabIndex") == 0)
    expect("a screen reader finds the main part and its heading", browser.run("return [document.querySelectorAll('main').length, document.querySelectorAll('h1').length]") == [1, 1])
    expect("the page has a legend", browser.run("return document.querySelectorAll('.legend li').length") == 6)


def whole_window(browser, page, keep):
    """The lanes have the window until something is chosen, and what is chosen is visible."""
    for width, height, least in ((1920, 1080, 0.88), (390, 844, 0.62)):
        browser.develop("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 500)
        browser.open(page.as_uri())
        shares = "const box = (id) => document.getElementById(id).getBoundingClientRect(); return [box('chart').height / innerHeight, box('details').bottom - innerHeight]"
        chart, below = browser.run(shares)
        keep(f"window_{width}")
        expect(f"{width} pixels: the lanes have {100 * chart:.0f} % of the window's height", chart >= least and abs(below) < 1)
        drawn = "Math.abs(canvas.clientHeight - (view.chart.clientHeight - 2)) <= 1"
        expect(f"{width} pixels: all of it is drawn", browser.becomes(drawn))
        # The lowest packet that is visible: below it, the details open.
        key = browser.run("""const keys = model.traces[0].lanes.filter((l) => l.shown).flatMap((l) => Array.from({length: Math.min(l.count, 200)}, (_, i) => new Bar(l, i)));
            return keys.filter((b) => view.place(b)[1] < view.chart.clientHeight - ROW).sort((a, b) => view.place(b)[1] - view.place(a)[1])[0].key""")
        browser.click_packet(key)
        expect(f"{width} pixels: a packet near the bottom stays visible", browser.becomes(f"state.selected && state.selected.key === '{key}' && "
               f"view.place(state.selected)[1] <= view.chart.clientHeight - ROW && {drawn}"))
        chart, below = browser.run(shares)
        expect(f"{width} pixels: its details have a third", chart < least and abs(below) < 1)
    browser.phone(None)


def first_view(browser, work, keep):
    browser.open((work / "setup.html").as_uri())
    keep("setup")
    view = "return [state.from, state.to]"
    expect("a page begins at the first packet and ends with the last end, whatever the set-up takes", browser.run(view) == [0, 10000])
    expect("the first packet begins at the left edge", browser.run("return view.place(barOf('0.1.0'))[0]") ==
           browser.run("return LABEL + 0.4 * (canvas.clientWidth - LABEL)"))
    texts = [t for t, _, _ in browser.run(TEXTS)]
    expect("its names are shown", "copy_linear bytes=4K src=gpu7.buf[64K] dst=0x7f0000020000  # epoch 3" in texts)
    expect("a value stands in an action's text", "waits for host.done >= 8" in texts)
    browser.click_on("#all")
    expect("one click shows everything", browser.run(view) == [-77000000, 49999000])
    browser.click_on("#packets")
    expect("and one the packets", browser.run(view) == [0, 10000])
    browser.click_on("#critical")
    expect("a store of a host thread is not a completion", browser.text("#packet h2") == "fence")


def scales(browser, work, keep):
    both = (work / "both.html").as_uri()
    at = "const place = key => view.place(barOf(key))[0]; return [place('0.1.0'), place('1.1.0')]"
    browser.open(both)
    texts = browser.run(TEXTS)
    keep("scales")
    rows = {t: y for t, x, y in texts if t.startswith("scale of ")}
    expect("each trace has a scale", set(rows) == {"scale of model.jsonl", "scale of real.jsonl"} and len(set(rows.values())) == 2)
    ticks = [[t for t, x, y in texts if y == row and x > 230] for row in rows.values()]
    expect("with times of its own", all(ticks) and ticks[0] != ticks[1])
    width, label = browser.run("return [canvas.clientWidth - LABEL, LABEL]")
    model, real = browser.run(at)
    # The copies run from 0 to 2000 of 2300 ns, and from 0 to 3000 of 3700 ns.
    expect("and fills the view with its packets", abs(model - label - width * 1000 / 2300) < 1 and abs(real - label - width * 1500 / 3700) < 1)
    browser.click_packet("1.1.1")
    expect("a click finds the packet on its own scale", browser.run("return state.selected.key") == "1.1.1")
    browser.press("+")
    browser.press("f")
    browser.click_on("#scale")
    texts = [t for t, _, _ in browser.run(TEXTS)]
    keep("one_scale")
    model, real = browser.run(at)
    expect("a switch gives both one scale", abs(model - label - width * 1000 / 3700) < 1 and abs(real - label - width * 1500 / 3700) < 1)
    expect("which says so", "one scale for both" in texts and not any(t.startswith("scale of") for t in texts))
    browser.click_packet("1.1.1")
    expect("a click finds the packet there, too", browser.run("return state.selected.key") == "1.1.1")
    address = browser.run("rememberNow(); return location.hash")
    browser.open(both + address)
    expect("the address remembers the scale", "scale=one" in address and browser.run("return [state.oneScale, byId('scale').checked]") == [True, True])
    browser.press("s")
    expect("a key switches back", browser.run(at)[0] - label - width * 1000 / 2300 < 1 and not browser.run("return byId('scale').checked"))
    browser.open((work / "gather.html").as_uri())
    keep("gather")
    expect("a run and its simulation have the same lanes, by name", browser.run(
        "return model.places.filter(p => p.lanes.length === 2).map(p => p.name)") == ["main", "engine 14 b2b", "engine 14 b2b"])
    browser.open((work / "one.html").as_uri())
    expect("one trace has no switch", browser.run("return byId('scale').parentElement.hidden"))


def main(sdma, chromium, chromedriver, screenshots=None):
    sdma = pathlib.Path(sdma).resolve()
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        for name, end, signal, last in (("model", 4000, 4200, 4300), ("real", 5000, 5500, 5700)):
            text = TRACE.replace("END", str(end)).replace("SIGNAL", str(signal)).replace("LAST", str(last))
            (work / f"{name}.jsonl").write_text(text)
        # The same run, its queue by another name, and begun long before its first packet.
        (work / "late.jsonl").write_text(text.replace('"engine 0 queue 0"', '"engine 0 push"').replace('"ns":1000,', '"ns":100,'))
        subprocess.run([sdma, "trace", "model.jsonl", "-o", "one.html"], check=True, cwd=work)
        subprocess.run([sdma, "trace", "model.jsonl", "real.jsonl", "-o", "both.html"], check=True, cwd=work)
        subprocess.run([sdma, "trace", work / "model.jsonl", work / "late.jsonl", "-o", "late.html"], check=True, cwd=work)
        # More packets at once than the page has rows for, from none of which it has an end.
        rows = [f'{{"ns":{i},"lane":0,"event":"packet_begin","position":{4 * i},"length":1,"dwords":["0x00000000"]}}' for i in range(100)]
        (work / "rows.jsonl").write_text("\n".join(
            ['{"sdma_trace":1,"clock":"virtual","events":101,"lost":0}', '{"lane":0,"group":"gpu0","name":"engine 0 queue 0"}', *rows,
             '{"ns":1000,"lane":0,"event":"doorbell","position":400}', ""]))
        subprocess.run([sdma, "trace", "rows.jsonl", "-o", "rows.html"], check=True, cwd=work)
        (work / "setup.jsonl").write_text(SETUP)
        subprocess.run([sdma, "trace", "setup.jsonl", "-o", "setup.html"], check=True, cwd=work)
        gather = EXAMPLES / "2_allgather_b2b.sdma"
        for verb, options in (("simulate", ["--no-sensitivity"]), ("run", [])):
            command = [sdma, verb, "--json", *options, "--set", "N=2", f"--trace={verb}.jsonl", gather]
            (work / f"{verb}.answer").write_bytes(subprocess.run(command, check=True, cwd=work, stdout=subprocess.PIPE).stdout)
        subprocess.run([sdma, "trace", "simulate.jsonl", "-o", "simulate.html"], check=True, cwd=work)
        subprocess.run([sdma, "trace", "simulate.jsonl", "run.jsonl", "-o", "gather.html"], check=True, cwd=work)
        page = (work / "one.html").read_text()
        expect("the page asks for nothing else", not re.search(r"(src|href)\s*=|https?://|@import|url\(", page.split('id="data"')[0]))

        browser = Browser(chromium, chromedriver, work / "profile")
        try:
            one, both, late = ((work / f"{name}.html").as_uri() for name in ("one", "both", "late"))

            def keep(name):
                if screenshots:
                    (pathlib.Path(screenshots) / f"{name}.png").write_bytes(browser.picture())

            browser.open(one)
            expect("names, times and counts are told", "model.jsonl: 2.300 us from its first packet, 1.000 us before it, 4 packets" in browser.text("#names"))
            expect("a lane's name is no markup", browser.run("return document.querySelectorAll('#chart b').length") == 0)

            browser.click_packet("0.1.0")
            expect("a click shows the packet", "copy_linear bytes=4K" in browser.text("#packet"))
            expect("with its times", "began\t0 ns" in browser.text("#packet") and "ended\t2.000 us" in browser.text("#packet"))
            expect("and its dwords", "7: 00000001 00000fff" in browser.text("#packet"))
            expect("the address remembers it", browser.becomes("location.hash.endsWith('packet=0.1.0')"))  # at most ten times a second

            browser.click_packet("0.2.0")
            path = browser.text("#path").splitlines()
            keep("path")
            order = [i for part in ("trigger", "copy_linear", "fence", "poll_mem") for i, line in enumerate(path) if part in line][:4]
            expect("the path goes from the trigger to the poll's end", len(order) == 4 and order == sorted(order))
            expect("a poll names the write that it waited for", any("its word became 0x1" in line for line in path))
            browser.click_on("#path tr[data-key='0.1.1']")
            expect("a step of the path leads to its packet", browser.text("#packet h2") == "fence")

            before = browser.run("return [state.from, state.to]")
            browser.press("+")
            after = browser.run("return [state.from, state.to]")
            expect("+ zooms in", after[1] - after[0] < before[1] - before[0])
            browser.press("0")
            expect("0 shows all", browser.run("return [state.from, state.to]") == [-1000, 2300])
            browser.run("canvas.dispatchEvent(new WheelEvent('wheel', {deltaY: -1, clientX: 600, clientY: 200}))")
            zoomed = browser.run("return [state.from, state.to]")
            expect("the wheel zooms", zoomed[1] - zoomed[0] < 3300)
            x, y = browser.run("const r = canvas.getBoundingClientRect(); return [Math.round(r.x + 700), Math.round(r.y + 60)]")
            browser.act({"type": "pointerMove", "x": x, "y": y}, {"type": "pointerDown", "button": 0},
                        {"type": "pointerMove", "x": x - 90, "y": y}, {"type": "pointerUp", "button": 0})  # fmt: skip
            dragged = browser.run("return [state.from, state.to]")
            expect("dragging moves", dragged[0] > zoomed[0] and abs((dragged[1] - dragged[0]) - (zoomed[1] - zoomed[0])) < 1)

            browser.run("byId('find').value = 'poll'; byId('find').dispatchEvent(new Event('input'))")
            expect("a search finds", browser.text("#found") == "1 packet" and browser.text("#packet h2") == "poll_mem")
            browser.click_on("#critical")
            expect("the critical path ends in the last completion", browser.text("#packet h2") == "fence")

            browser.open(one + "#from=900&to=2000&packet=0.2.1")
            expect("an address shows its packet", browser.text("#packet h2") == "nop")
            expect("a packet without an end says so", "not in the trace" in browser.text("#packet"))
            expect("and its part of time", browser.run("return [state.from, state.to]") == [900, 2000])

            browser.open(both)
            browser.click_packet("0.1.0")
            keep("both")
            expect("two traces: lanes of one name together", browser.run(
                "return model.places.every(p => p.lanes.length === 2 && p.lanes[0].trace !== p.lanes[1].trace)"))
            expect("and what differs", "+1.000 us" in browser.text("#packet"))
            browser.open(late)
            browser.click_packet("0.1.0")
            expect("an engine's queue is the same queue by another name", browser.run(
                "return model.places.every(p => p.lanes.length === 2)"))
            expect("names by the lanes leave out the folder that both are in", browser.run(
                "return model.traces.map(t => t.shortName)") == ["model.jsonl", "late.jsonl"])
            expect("both begin with their first packets", "+1.000 us" in browser.text("#packet")
                   and browser.run("return [model.first, state.from]") == [-1900, 0])
            browser.click_on("#all")
            expect("what came before is there", browser.run("return state.from <= -1900 * view.scale(model.traces[1])"))
            names_and_actions(browser, work, keep)
            first_view(browser, work, keep)
            whole_window(browser, work / "rows.html", keep)
            scales(browser, work, keep)
            browser.open((work / "rows.html").as_uri())
            texts = browser.run("""const pen = canvas.getContext('2d'), texts = [];
                pen.fillText = (t, ...rest) => texts.push(t);
                view.chart.scrollTop = 1e9;
                const {whole, runs} = view.draw();
                delete pen.fillText;
                view.draw();
                return [...texts, whole + runs.reduce((n, r) => n + r.count, 0)]""")
            keep("rows")
            expect("rows that do not fit the page share one, which says so", "37 rows overlap here" in texts and texts[-1] == 100)
            browser.click_packet("0.0.70")
            expect("and their packets can be selected", browser.run("return state.selected.row") == 63)
            expect("nothing was complained of", browser.complaints() == [])
        finally:
            browser.close()


main(*sys.argv[1:])
