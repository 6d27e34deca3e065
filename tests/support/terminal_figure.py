#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The terminal session of README.md: 40 seconds of commands and of what they really print, as an animated picture.

  terminal_figure.py SOURCE SDMA             fails unless docs/figures/terminal.svg shows what the tool prints now
  terminal_figure.py --bless SOURCE SDMA     writes it: `ninja bless`

Viewers who prefer no motion see the last screen.
"""
import html
import pathlib
import subprocess
import sys
import tempfile

import figure

SECONDS, WIDTH, LINE, COLUMNS, ROWS = 40, 880, 18, 108, 27
CHARACTER = (WIDTH - 32) / COLUMNS
# Screens of commands: what is typed, and the seconds for reading what it prints.
SCREENS = (
    (("cat relay.sdma", 5), ("sdma check relay.sdma", 9)),
    (("sed -i '11i poll_mem addr=host.arrived func=eq reference=1' relay.sdma", 1), ("sdma check relay.sdma", 5), ("sdma simulate relay.sdma | head -4", 6)),
)
TYPED = 22  # characters a second


def relay(source):
    """Example 7 as somebody would have written it: with its mistake, and without what expects it."""
    lines = (source / "examples/schedules/7_race.sdma").read_text(encoding="utf-8").splitlines()
    return "".join(f"{line}\n" for line in lines if not line.startswith("expect finding")).replace(" with a missing wait", "")


def printed(folder, sdma, command):
    done = subprocess.run(["bash", "-c", command], cwd=folder, capture_output=True, text=True,
                          env={"PATH": f"{pathlib.Path(sdma).parent}:/usr/bin:/bin", "LC_ALL": "C.UTF-8"})  # fmt: skip
    return (done.stdout + done.stderr).splitlines()


def wrapped(line):
    """As a terminal wraps it."""
    return [line[at : at + COLUMNS] for at in range(0, max(len(line), 1), COLUMNS)]


def recorded(source, sdma):
    """Screens: [(second, seconds of typing, text)]."""
    now, screens = 0.5, []
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "relay.sdma").write_text(relay(source), encoding="utf-8")
        for commands in SCREENS:
            rows = []
            for command, seconds in commands:
                typing = len(command) / TYPED
                rows.append((now, typing, f"$ {command}"))
                now += typing + 0.3
                rows += [(now, 0, row) for line in printed(folder, sdma, command) for row in wrapped(line)]
                now += seconds
            if len(rows) > ROWS:
                sys.exit(f"{len(rows)} rows do not fit on a screen of {ROWS}")
            screens.append(rows)
    if now > SECONDS:
        sys.exit(f"the session takes {now:.1f} s, more than {SECONDS}")
    return screens


def percent(second):
    return f"{100 * second / SECONDS:.2f}%"


def picture(source, sdma):
    screens, css, parts = recorded(source, sdma), [], []
    for number, rows in enumerate(screens):
        last = number == len(screens) - 1
        until = SECONDS - 0.5 if last else screens[number + 1][0][0] - 0.2
        parts.append(f'<g class="{"last" if last else "past"}">')
        for row, (second, typing, text) in enumerate(rows):
            name, y = f"r{number}_{row}", 26 + row * LINE
            hidden, shown = (percent(second - 0.01), percent(until + 0.01)), (percent(second), percent(until))
            css.append(f"@keyframes {name}{{0%,{hidden[0]},{hidden[1]},100%{{opacity:0}}{shown[0]},{shown[1]}{{opacity:1}}}}")
            css.append(f"#{name}{{animation:{name} {SECONDS}s infinite}}")
            bold = ' font-weight="bold"' if typing else ""
            colour = "#ffb4ab" if " error[" in text else "#8fe3b0" if "no race" in text else "#e6e9ee"
            parts.append(f'<text id="{name}" x="16" y="{y}" fill="{colour}"{bold} xml:space="preserve">{html.escape(text)}</text>')
            if typing:  # a cover over the command, which becomes narrower from the left as it is typed
                begin, end = percent(second), percent(second + typing)
                css.append(f"@keyframes {name}c{{0%,{percent(second - 0.01)}{{opacity:0;transform:none}}{begin}{{opacity:1;transform:none}}{end},100%{{opacity:1;transform:scaleX(0)}}}}")
                css.append(f"#{name}c{{animation:{name}c {SECONDS}s infinite;transform-box:fill-box;transform-origin:right}}")
                x, width = 16 + 2 * CHARACTER, (len(text) - 2) * CHARACTER + 8
                parts.append(f'<rect id="{name}c" class="cover" x="{x:.0f}" y="{y - 14}" width="{width:.0f}" height="{LINE}" fill="#15191f"/>')
        parts.append("</g>")
    calm = "@media (prefers-reduced-motion:reduce){*{animation:none!important}.past,.cover{display:none}}"
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{ROWS * LINE + 24}" viewBox="0 0 {WIDTH} {ROWS * LINE + 24}" font-family="monospace" font-size="13">\n'
            f"<style>{''.join(css)}{calm}</style>\n"
            f'<rect width="100%" height="100%" rx="6" fill="#15191f"/>\n' + "\n".join(parts) + "\n</svg>\n")  # fmt: skip


if __name__ == "__main__":
    sys.exit(figure.main(sys.argv[1:], "terminal.svg", picture))
