#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The picture of README.md: a race that the tools found, its line, and the timeline of the corrected schedule.

  race_figure.py SOURCE SDMA             fails unless docs/figures/race.svg shows what the tools say now
  race_figure.py --bless SOURCE SDMA     writes it: `ninja bless`
"""
import html
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import textwrap

import figure

EXHIBIT = "tests/museum/exhibits/late_fill.bug.sdma"
FIRST, LAST = 8, 15  # the lines that are shown
WIDTH, LINE, LEFT = 500, 19, 92  # on a phone, a letter is then 9 pixels high
MEANING = {"copy_linear": "copy", "fill": "copy", "fence": "sync", "poll_mem": "wait"}


def run(sdma, *words, codes=(0,)):
    done = subprocess.run([sdma, *words], capture_output=True, text=True)
    if done.returncode not in codes:
        sys.exit(f"sdma {' '.join(map(str, words))}: exit code {done.returncode}\n{done.stderr}")
    return done.stdout


def corrected(text, edits):
    lines = text.split("\n")
    for edit in reversed(edits):
        lines.insert(edit["line"] - 1, "  " + edit["text"])
    return "\n".join(lines)


def bars(sdma, schedule, folder):
    """[(lane, packet, begin, end)] in us, by the simulator."""
    fixed, trace = pathlib.Path(folder, "fixed.sdma"), pathlib.Path(folder, "run.jsonl")
    fixed.write_text(schedule, encoding="utf-8")
    run(sdma, "check", fixed)  # fails unless it is proved
    run(sdma, "simulate", "--no-sensitivity", "--trace", trace, fixed)
    lanes, open_, found = {}, {}, []
    for event in map(json.loads, trace.read_text(encoding="utf-8").splitlines()):
        if "group" in event:
            lanes[event["lane"]] = f"{event['group']} {event['name'].split()[-1]}"
        elif event.get("event") == "packet_begin" and "packet" in event:
            open_[event["lane"], event["position"]] = (event["packet"].split()[0], event["ns"])
        elif event.get("event") == "packet_end" and (key := (event["lane"], event["position"])) in open_:
            found.append((lanes[event["lane"]], *open_.pop(key), event["ns"]))
    return [(lane, packet, begin / 1000, end / 1000) for lane, packet, begin, end in found if not lane.startswith("links ")]


class Picture:
    def __init__(self):
        self.parts, self.y = [], 0

    def text(self, x, y, words, style="", fill="#1b1f24"):
        self.parts.append(f'<text x="{x}" y="{y}" fill="{fill}" xml:space="preserve" {style}>{html.escape(words)}</text>')

    def box(self, x, y, width, height, fill):
        self.parts.append(f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{height}" fill="{fill}"/>')

    def svg(self):
        return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{self.y}" viewBox="0 0 {WIDTH} {self.y}" font-family="sans-serif" font-size="13">\n'
                f'<rect width="100%" height="100%" fill="#ffffff"/>\n' + "\n".join(self.parts) + "\n</svg>\n")  # fmt: skip


def picture(source, sdma):
    path = source / EXHIBIT
    text = path.read_text(encoding="utf-8")
    race = next(f for f in map(json.loads, run(sdma, "check", "--json", path, codes=(1,)).splitlines()) if f.get("rule") == "race")
    lines, edit, out = text.split("\n"), race["edits"][0], Picture()
    css = (source / "lib/trace/page/colours.css").read_text(encoding="utf-8").partition("@media")[0]
    colours = dict(re.findall(r"--(\w+): (#\w+)", css))
    fixed_width = 'font-family="monospace"'
    out.text(16, 26, f"$ sdma check {path.name}", fixed_width + ' font-weight="bold"')
    out.y = 50
    for number in range(FIRST, LAST + 1):
        if number == edit["line"]:
            out.box(8, out.y - 14, WIDTH - 16, 2 * LINE, "#dff3e7")
            out.text(16, out.y, f"  +   {edit['text']}", fixed_width, "#1d7a4d")
            out.text(WIDTH - 12, out.y + LINE, "the line that is missing", 'text-anchor="end"', "#1d7a4d")
            out.y += 2 * LINE
        racing = [place for place in race["places"] if place["line"] == number]
        if racing:
            out.box(8, out.y - 14, WIDTH - 16, 2 * LINE, "#fbe3e1")
            out.text(WIDTH - 12, out.y + LINE, f"{racing[0]['agent']}: races", 'text-anchor="end"', "#b8281f")
        out.text(16, out.y, f"{number:>3} {lines[number - 1]}", fixed_width)
        out.y += 2 * LINE if racing else LINE
    out.y += 8
    for words in textwrap.wrap(f"error[race]: {race['message']}", 60):
        out.text(16, out.y, words, 'font-weight="bold"', "#b8281f")
        out.y += LINE
    out.y += 7
    with tempfile.TemporaryDirectory() as folder:
        all_bars = bars(sdma, corrected(text, race["edits"]), folder)
    begin, end = min(b[2] for b in all_bars), max(b[3] for b in all_bars)
    x = lambda us: LEFT + (us - begin) / (end - begin) * (WIDTH - LEFT - 24)
    out.text(16, out.y, "With that line: proved. Simulated for MI300X, in us:")
    out.y += 24
    for tick in range(int(end - begin) + 1):
        out.box(x(begin + tick), out.y - 10, 1, 12 + 26 * len(all_bars), "#d8dce2")
        out.text(round(x(begin + tick)) + 3, out.y, str(tick), "", "#565f6b")
    out.y += 10
    for lane, packet, first, last in all_bars:
        out.text(16, out.y + 14, lane)
        meaning = MEANING.get(packet, "other")
        out.box(x(first), out.y, max(2, x(last) - x(first)), 20, colours[meaning])
        if x(last) - x(first) > 8 * len(packet):
            out.text(round(x(first)) + 5, out.y + 14, packet, "", "#ffffff" if meaning == "copy" else "#000000")
        else:
            out.text(round(x(first)) - 5, out.y + 14, packet, 'text-anchor="end"')
        out.y += 26
    out.y += 8
    return out.svg()


if __name__ == "__main__":
    sys.exit(figure.main(sys.argv[1:], "race.svg", picture))
