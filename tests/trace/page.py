#!/usr/bin/env python3
"""The page of traces in a real browser: page.py SDMA CHROMIUM CHROMEDRIVER [SCREENSHOTS]. With a folder, what was seen is kept there."""
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
        page = (work / "one.html").read_text()
        expect("the page asks for nothing else", not re.search(r"(src|href)\s*=|https?://|@import|url\(", page.split('id="data"')[0]))

        browser = Browser(chromium, chromedriver, work / "profile")
        try:
            one, both, late = ((work / f"{name}.html").as_uri() for name in ("one", "both", "late"))

            def keep(name):
                if screenshots:
                    (pathlib.Path(screenshots) / f"{name}.png").write_bytes(browser.picture())

            browser.open(one)
            expect("names, times and counts are told", "model.jsonl: 3.300 us, 4 packets" in browser.text("#names"))
            expect("a lane's name is no markup", browser.run("return document.querySelectorAll('#chart b').length") == 0)

            browser.click_packet("0.1.0")
            expect("a click shows the packet", "copy_linear bytes=4K" in browser.text("#packet"))
            expect("with its times", "1.000 us" in browser.text("#packet") and "3.000 us" in browser.text("#packet"))
            expect("and its dwords", "7: 00000001 00000fff" in browser.text("#packet"))
            expect("the address remembers it", browser.run("return location.hash").endswith("packet=0.1.0"))

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
            expect("0 shows all", browser.run("return [state.from, state.to]") == [0, 3300])
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
            expect("what came before is there", browser.run("return state.from") == -1900)
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
