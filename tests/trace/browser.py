# SPDX-License-Identifier: MIT
"""Chromium, driven through the WebDriver protocol: HTTP and JSON to chromedriver, on a port that it chooses."""
import base64
import json
import re
import subprocess
import sys
import urllib.request


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
