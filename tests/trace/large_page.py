#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The page of a large trace in a real browser: large_page.py LARGE-PAGE CHROMIUM CHROMEDRIVER [PACKETS [SCREENSHOTS]].

LARGE-PAGE (large_page.cpp) writes the page. This program checks what the page shows of it against the numbers in that file,
and prints sizes, times and memory. The test has 300,000 packets; docs/trace.md quotes the figures of 10,000,000.
"""
import pathlib
import re
import subprocess
import sys
import tempfile
import time

from browser import Browser, expect

# How long drawing a frame may take: half of them, and all but 5 %. Generous: a test may share its processor with others.
HALF_MS, MOST_MS = 50, 250

# The levels of detail against a loop over everything, for intervals of any order of ends; returns the first difference.
COMPARE = """
const n = 20000, from = new Float64Array(n), to = new Float64Array(n), kind = i => i % 7 === 0 ? 1 : 0;
let seed = 1;
const random = () => (seed = (seed * 48271) % 2147483647) / 2147483647;
for (let i = 0, ns = 0; i < n; ++i) {
  from[i] = ns += Math.floor(random() * 3);
  to[i] = ns + (i % 1000 === 0 ? 4000 : Math.floor(random() * 20));
}
const third = Uint32Array.from({length: Math.ceil(n / 3)}, (_, i) => 3 * i);
for (const items of [null, third]) {
  const levels = new Levels(from, to, kind, 2, items), all = [...(items ?? from.keys())];
  for (let round = 0; round < 60; ++round) {
    const a = random() * 1.1 * to[n - 1], b = a + random() ** 3 * to[n - 1], coarse = random() ** 2 * 500;
    const inside = all.filter(i => from[i] <= b && to[i] >= a), sum = [0, 0, 0, 0], want = [0, 0, 0, 0];
    const taken = new Set();
    levels.visit(a, b, (cells, c) => {
      if (cells.last[c] - cells.first[c] > coarse) return false;
      for (let e = cells.start[c]; e < cells.start[c + 1]; ++e) {
        sum[cells.kind[e]] += cells.count[e];
        sum[2 + cells.kind[e]] += cells.time[e];
      }
      for (const i of all) if (from[i] >= cells.first[c] && to[i] <= cells.last[c]) taken.add(i);
      return true;
    }, i => { ++sum[kind(i)]; sum[2 + kind(i)] += to[i] - from[i]; taken.add(i); });
    const exact = [0, 0, 0, 0];
    levels.visit(a, b, () => false, i => { ++exact[kind(i)]; exact[2 + kind(i)] += to[i] - from[i]; });
    for (const i of inside) { ++want[kind(i)]; want[2 + kind(i)] += to[i] - from[i]; }
    if (`${exact}` !== `${want}`) return `descending to the packets: ${exact}, not ${want}`;
    if (!inside.every(i => taken.has(i))) return 'a level of detail leaves out a packet';
    const wide = all.filter(i => from[i] <= b + coarse && to[i] >= a - coarse).length;
    if (sum[0] + sum[1] < inside.length || sum[0] + sum[1] > wide) return `cells count ${sum}, not ${want}`;
    if (levels.count(a, b) !== inside.length) return `count ${levels.count(a, b)}, not ${inside.length}`;
    const running = all.filter(i => from[i] <= a && to[i] >= a).pop() ?? -1;
    if (levels.running(a) !== running) return `running ${levels.running(a)}, not ${running}`;
    const ended = all.filter(i => to[i] <= a).reduce((best, i) => best < 0 || to[i] >= to[best] ? i : best, -1);
    if (levels.ended(a) !== ended) return `ended ${levels.ended(a)}, not ${ended}`;
    if (ended >= 0 && levels.ended(a, ended) === ended) return 'ended returns what it must not';
  }
  const whole = [0, 0];
  levels.visit(-Infinity, Infinity, (cells, c) => {
    for (let e = cells.start[c]; e < cells.start[c + 1]; ++e) whole[cells.kind[e]] += cells.count[e];
    return true;
  }, () => whole[0] = NaN);
  if (whole[0] + whole[1] !== all.length || whole[1] !== all.filter(i => kind(i) === 1).length) return `in all ${whole}`;
}
const values = from.map(() => Math.floor(random() * 1e6)), extremes = new Extremes(values);
for (let round = 0; round < 200; ++round) {
  const a = Math.floor(random() * n), b = a + 1 + Math.floor(random() * (n - a - 1)), part = values.slice(a, b);
  const want = [part.reduce((x, y) => Math.min(x, y)), part.reduce((x, y) => Math.max(x, y))];
  if (`${extremes.of(a, b)}` !== `${want}`) return `extremes ${extremes.of(a, b)}, not ${want}`;
}
return 'equal';
"""

# Everything that large_page.cpp records against what the page has decoded; returns the first difference.
DECODED = """
const [trace] = model.traces, [host, lane, link] = trace.lanes, {packets, marks, bells} = lane, {signals, words, flows} = trace;
const first = Number(trace.first) + trace.before, different = (what, i) => `${what} of packet ${i} differs`;
let position = 0, signal = 0;
for (let i = 0; i < lane.count; ++i) {
  const begin = 100 * i + 1000 - first, end = begin + (i % 16384 === 0 ? 150000 : 60 + i % 37);
  const poll = i % 1000 === 999, fence = !poll && i % 16 === 15;
  if (packets.from[i] !== begin || packets.to[i] !== end || !(packets.row[i] & 1)) return different('the time', i);
  if (i % 64 === 0 && (bells.ns[i / 64] !== begin - 50 || bells.position[i / 64] !== position + 64 * 28)) return different('the doorbell', i);
  if (i % 512 === 7 && new Bar(lane, i).position !== position) return different('the position', i);
  if (i % 256 === 0) {
    const k = i / 256, {ns, value} = link.counters[0];
    if (flows.from[k] !== begin - 90 || flows.to[k] !== end || trace.lanes[flows.fromLane[k]] !== host
        || trace.lanes[flows.toLane[k]] !== lane) return different('the arrow', i);
    if (ns[k] !== begin || value[k] !== i % 4096) return different('the counter', i);
  }
  if (fence) {
    if (signals.ns[signal] !== end || signals.low[signal] !== i || signals.high[signal] !== 0) return different('the signal', i);
    if (trace.lanes[signals.lane[signal]] !== lane || words.low[signals.word[signal]] !== 0x2000 || words.high[0] !== 0x7f00)
      return different('the word', i);
    ++signal;
  }
  position += poll ? 24 : fence ? 16 : 28;
}
if (signal !== signals.ns.length || marks.ns.length !== signal + bells.ns.length) return `${signal} signals, ${marks.ns.length} marks`;
return 'equal';
"""

# Frames while the view zooms in and out and moves, as a hand on the wheel does it: [time of each picture, time between frames].
FRAMES = """
const done = arguments[arguments.length - 1], draws = [], gaps = [];
let n = 0, last = 0;
const frame = now => {
  if (last) gaps.push(now - last);
  last = now;
  if (++n === 150) {
    view.draw = draw;
    return done([draws, gaps]);
  }
  const x = LABEL + 100 + n % 400;
  if (n % 3 === 0) show(state.from + (state.to - state.from) / 50, state.to + (state.to - state.from) / 50);
  else zoom(n < 75 ? 0.85 : 1 / 0.85, view.nsAt(x));
  requestAnimationFrame(frame);
};
const draw = view.draw;
view.draw = () => {
  const begin = performance.now(), drawn = draw();
  draws.push(performance.now() - begin);
  return drawn;
};
requestAnimationFrame(frame);
"""


def memory_mb(pid):
    """The resident memory of a process and its descendants: its largest one, which is the page's."""
    sizes = []
    for status in pathlib.Path("/proc").glob("[0-9]*/status"):
        try:
            text, arguments = status.read_text(), (status.parent / "cmdline").read_bytes()
        except OSError:
            continue
        if b"--type=renderer" in arguments and pid.encode() in arguments:
            sizes.append(int(re.search(r"VmRSS:\s*(\d+)", text)[1]) // 1024)
    return max(sizes, default=0)


def main(large_page, chromium, chromedriver, packets="300000", screenshots=None):
    packets = int(packets)
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        page = work / "large.html"
        print("written:", subprocess.run([large_page, str(packets), page], check=True, capture_output=True, text=True).stdout.strip())
        print(f"file: {page.stat().st_size / 1e6:.1f} MB, {page.stat().st_size / packets:.1f} bytes per packet")
        browser = Browser(chromium, chromedriver, work / "profile", patience=600)

        def keep(name):
            if screenshots:
                (pathlib.Path(screenshots) / f"{name}.png").write_bytes(browser.picture())

        def where(key):
            return browser.run(f"const r = canvas.getBoundingClientRect(), [x, y] = view.place(barOf('{key}')); return [r.x + x, r.y + y]")

        try:
            begin = time.monotonic()
            browser.open(page.as_uri())
            browser.run("view.draw()")
            print(f"open: {time.monotonic() - begin:.1f} s until the first picture")
            expect("the page says nothing is wrong", browser.complaints() == [] and "cannot" not in browser.text("#packet"))
            expect("it knows every packet", f"{packets:,} packets" in browser.text("#names"))
            expect("levels of detail are exact", browser.run(COMPARE) == "equal")
            expect("everything was decoded", browser.run(DECODED) == "equal")
            keep("whole")
            # All of the lane, in blocks.
            x, y = where(f"0.1.{packets // 2}")
            browser.act({"type": "pointerMove", "x": round(x), "y": round(y)})
            tip = browser.run("return canvas.title")
            block = re.fullmatch(r"([\d,]+) packets from .* to .*, busy (\d+) % of this time\nzoom in to see them", tip)
            pixels = browser.run("return canvas.clientWidth - LABEL")
            expect(f"a block says how many packets it stands for: {tip!r}",
                   block and abs(int(block[1].replace(",", "")) - packets / pixels) < packets / pixels / 2 + 64)
            whole, blocks, said = browser.run("""const pen = canvas.getContext('2d'), texts = [];
                pen.fillText = function (t, ...rest) { texts.push(t); Object.getPrototypeOf(pen).fillText.call(pen, t, ...rest); };
                const {whole, runs} = view.draw();
                delete pen.fillText;
                return [whole, runs.reduce((n, r) => n + r.count, 0), texts.filter(t => / packets|arrows/.test(t))]""")
            expect(f"what is drawn is everything: {whole:,} packets, and blocks of {blocks:,}", whole + blocks == packets)
            expect(f"and says so: {said}", any(re.fullmatch(r"[\d,]+ packets, \d+ % busy", t) for t in said))
            expect("and which arrows it leaves out", f"zoom in to see {(packets + 255) // 256:,} arrows" in said)
            browser.click(x, y)
            expect("a click on a block describes it", "narrower than a pixel" in browser.text("#packet"))
            browser.click_on("#packet button")
            zoomed = browser.run("return [state.from, state.to]")
            expect("and zooms to it", zoomed[1] - zoomed[0] < browser.run("return model.last") / pixels * 3 + 1e5)

            draws, gaps = browser.run_async("show(model.first, model.last);" + FRAMES)
            worst = sorted(draws)
            print(f"frames: drawing takes {worst[len(worst) // 2]:.1f} ms (median), {worst[-8]:.1f} ms (95 %), {worst[-1]:.1f} ms (most); "
                  f"from frame to frame {sorted(gaps)[len(gaps) // 2]:.1f} ms (median), {sorted(gaps)[-8]:.1f} ms (95 %)")
            expect("zooming and moving are fluid", worst[len(worst) // 2] < HALF_MS and worst[-8] < MOST_MS)

            # A copy, a fence and a poll somewhere, exactly.
            for i, text, is_at in ((packets // 3 // 32 * 32 + 1, "copy_linear bytes=4K src=0x{src:x} dst=0x{dst:x}", 0),
                                   (packets // 32 * 16 + 15, "fence addr=0x7f0000002000 value=0x{i:x}", 0),
                                   (packets // 2000 * 1000 - 1, "poll_mem", 0)):
                begin = 100 * i + 1000 - browser.run("return Number(model.traces[0].first) + model.traces[0].before")
                browser.run(f"show({begin} - 1500, {begin} + 1500); view.draw()")
                x, y = where(f"0.1.{i}")
                browser.act({"type": "pointerMove", "x": round(x), "y": round(y)})
                expected = text.format(i=i, src=0x7F0000000000 + i * 4096, dst=0x7E0000000000 + i * 4096)
                tip = browser.run("return canvas.title")
                expect(f"the pointer shows packet {i}: {tip!r}", tip.startswith(expected))
                browser.click(x, y)
                expect("a click selects it", browser.run("return state.selected?.key") == f"0.1.{i}" and expected in browser.text("#packet"))
                expect("with its begin", browser.run(f"return state.selected.from === {begin}"))
                expect("and its end", browser.run("return state.selected.to - state.selected.from") == (60 + i % 37 if i % 16384 else 150000))
            keep("near")
            path = browser.text("#path")
            expect("a path that is too long says so", "This path is longer" in path)
            begin = time.monotonic()
            i = packets - 3
            browser.run(f"byId('find').value = 'src=0x{0x7F0000000000 + i * 4096:x}'; byId('find').dispatchEvent(new Event('input'))")
            while re.search(r"%|^$", found := browser.text("#found")):
                time.sleep(0.05)
            print(f"search: {time.monotonic() - begin:.1f} s for an address that one packet has")
            expect("a search finds one among all", found == "1 packet" and browser.run("return state.selected.key") == f"0.1.{i}")
            begin = time.monotonic()
            browser.run("byId('find').value = 'fence'; byId('find').dispatchEvent(new Event('input'))")
            while re.search(r"%|^$", found := browser.text("#found")):
                time.sleep(0.05)
            fences = sum(1 for k in range(15, packets, 16) if k % 1000 != 999)
            expect(f"or many ({time.monotonic() - begin:.1f} s)", found == f"{fences:,} packets")
            browser.run("show(model.first, model.last); view.draw()")
            keep("found")
            print(f"memory: {memory_mb(str(work))} MB in the page's process")
            browser.run("dispatchEvent(new ErrorEvent('error', {message: 'Array buffer allocation failed'}))")
            expect("what it cannot show it says in words", re.search(r"cannot show its trace of [\d,]+ records: Array buffer allocation failed",
                                                                       browser.text("#packet")))
        finally:
            browser.close()


main(*sys.argv[1:])
