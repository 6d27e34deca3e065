# SPDX-License-Identifier: MIT
"""Chromium, driven through the WebDriver protocol: HTTP and JSON to chromedriver, on a port that it chooses."""
import base64
import json
import re
import subprocess
import sys
import time
import urllib.request

# The least contrast of the text of the elements that SELECTOR matches with what lies below it, by WCAG's formula.
CONTRAST = """
const rgb = c => c.match(/[\\d.]+/g).map(Number);
const light = c => { const f = v => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const [r, g, b] = c; return 0.2126 * f(r) + 0.7152 * f(g) + 0.0722 * f(b); };
const below = e => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor);
  if (c.length < 4 || c[3] > 0.5) return c; } return [255, 255, 255]; };
let least = 99, where = '';
for (const e of document.querySelectorAll(SELECTOR)) {
  if (!e.innerText.trim() || getComputedStyle(e).visibility == 'hidden' || e.getClientRects().length == 0) continue;
  // A colour that shines through is mixed with what is below it.
  let seen = 1; for (let p = e; p; p = p.parentElement) seen *= getComputedStyle(p).opacity;
  const under = below(e), own = rgb(getComputedStyle(e).color);
  const a = light([0, 1, 2].map(i => own[i] * seen + under[i] * (1 - seen))), b = light(under);
  const c = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  if (c < least) { least = c; where = e.tagName + ' ' + e.innerText.slice(0, 40); } }
return [least, where];"""


class Browser:
    """One chromedriver with one session."""

    def __init__(self, chromium, chromedriver, profile, patience=60):
        self.patience = patience  # seconds for one command
        self.driver = subprocess.Popen([chromedriver, "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.url = None
        for line in self.driver.stdout:
            if match := re.search(r"started successfully on port (\d+)", line):
                self.url = f"http://127.0.0.1:{match[1]}"
                break
        if not self.url:
            sys.exit("chromedriver did not start")
        arguments = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
                     "--disable-component-update", "--disable-sync", "--window-size=1200,800", f"--user-data-dir={profile}"]
        self.session = ""
        options = {"binary": chromium, "args": arguments}
        wanted = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
        made = self.post("/session", {"capabilities": {"alwaysMatch": wanted}})
        self.session = f"/session/{made['sessionId']}"

    def post(self, path, body=None, session=True):
        where = self.url + (self.session if session else "") + path
        request = urllib.request.Request(where, json.dumps(body or {}).encode(), {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=self.patience) as answer:
            return json.load(answer)["value"]

    def open(self, page):
        self.post("/url", {"url": "about:blank"})  # an address that differs behind # alone loads nothing
        self.post("/url", {"url": page})

    def run(self, script):
        return self.post("/execute/sync", {"script": script, "args": []})

    def becomes(self, condition):
        """Does this expression of JavaScript become true while a command may take?"""
        end = time.monotonic() + self.patience
        while not (seen := self.run(f"return {condition}")) and time.monotonic() < end:
            time.sleep(0.02)
        return bool(seen)

    def run_async(self, script):
        """Runs a script that calls its last argument with the result."""
        self.post("/timeouts", {"script": self.patience * 1000, "pageLoad": self.patience * 1000})
        return self.post("/execute/async", {"script": script, "args": []})

    def text(self, selector):
        return self.run(f"return document.querySelector({json.dumps(selector)}).innerText")

    def act(self, *actions):
        self.post("/actions", {"actions": [{"type": "pointer", "id": "mouse", "actions": list(actions)}]})

    def click(self, x, y):
        self.act({"type": "pointerMove", "x": round(x), "y": round(y)}, {"type": "pointerDown", "button": 0},
                 {"type": "pointerUp", "button": 0})  # fmt: skip

    def click_on(self, selector):
        x, y = self.run(f"const r = document.querySelector({json.dumps(selector)}).getBoundingClientRect();"
                        "return [r.x + r.width / 2, r.y + r.height / 2]")
        self.click(x, y)

    def click_packet(self, key):
        x, y = self.run(f"const r = canvas.getBoundingClientRect(), [x, y] = view.place(barOf('{key}'));"
                        "return [r.x + x, r.y + y]")
        self.click(x, y)

    def press(self, key):
        keys = [{"type": "keyDown", "value": key}, {"type": "keyUp", "value": key}]
        self.post("/actions", {"actions": [{"type": "key", "id": "keyboard", "actions": keys}]})

    def press_with(self, held, key):
        keys = [{"type": "keyDown", "value": held}, {"type": "keyDown", "value": key}, {"type": "keyUp", "value": key}, {"type": "keyUp", "value": held}]
        self.post("/actions", {"actions": [{"type": "key", "id": "keyboard", "actions": keys}]})

    def develop(self, command, **parameters):
        """A command of the DevTools protocol."""
        self.post("/goog/cdp/execute", {"cmd": command, "params": parameters})

    def phone(self, size):
        """Shows pages as a phone with so many pixels does; None: as before."""
        if size:
            self.develop("Emulation.setDeviceMetricsOverride", width=size[0], height=size[1], deviceScaleFactor=1, mobile=True)
        else:
            self.develop("Emulation.clearDeviceMetricsOverride")

    def scheme(self, name):
        """Prefers "dark" or "light"."""
        self.develop("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}])

    def contrast(self, selector):
        """The least contrast of the text of these elements, and where it is."""
        return self.run(CONTRAST.replace("SELECTOR", json.dumps(selector)))

    def complaints(self):
        return [entry["message"] for entry in self.post("/se/log", {"type": "browser"})]

    def picture(self):
        with urllib.request.urlopen(self.url + self.session + "/screenshot", timeout=self.patience) as answer:
            return base64.b64decode(json.load(answer)["value"])

    def close(self):
        # The browser ends with its session; a driver that is only killed leaves it behind.
        try:
            if self.session:
                request = urllib.request.Request(self.url + self.session, method="DELETE")
                urllib.request.urlopen(request, timeout=self.patience).close()
        finally:
            self.driver.kill()
            self.driver.wait()


def expect(what, held):
    print(("ok      " if held else "FAILED  ") + what, flush=True)
    if not held:
        sys.exit(1)
