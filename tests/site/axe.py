#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""axe-core finds nothing serious in the pages of the site: axe.py SOURCE CHROMIUM CHROMEDRIVER FOLDER [--all]

FOLDER: where npm puts axe-core. Every page of docs is examined in one of four states: as a desktop or a phone shows it, light or dark. A few
pages of each kind are examined in all four; with --all, every page of the site is. Skipped without doxygen or mkdocs, or where npm cannot
fetch the package.
"""
import functools
import http.server
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1] / folder) for folder in ("trace", "support")]
import npm  # noqa: E402
from browser import Browser, expect  # noqa: E402

PACKAGE, VERSION = "axe-core", "4.14.1"
STATES = [(size, scheme) for size in ((1280, 900), (390, 844)) for scheme in ("light", "dark")]
IN_ALL_STATES = ("index", "404", "docs/check", "docs/museum", "docs/journeys/first_schedule", "api/queue/ring", "source/include/sdma/sdma.hpp")
BAD = {"serious", "critical"}
RUN = """const done = arguments[arguments.length - 1];
axe.run(document, {resultTypes: ["violations"]}).then(
  (r) => done(r.violations.map((v) => [v.impact, v.id, v.nodes.length, v.nodes[0].html.slice(0, 100)])),
  (e) => done([["critical", "axe has failed: " + e, 0, ""]]));"""


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def examined(site, every):
    """(page, state) of each examination."""
    pages = sorted(str(path.relative_to(site).with_suffix("")) for path in site.rglob("*.html"))
    for n, page in enumerate(pages):
        if every or page in IN_ALL_STATES:
            yield from ((page, state) for state in STATES)
        elif page.startswith("docs/"):
            yield page, STATES[n % len(STATES)]


def main(source, chromium, chromedriver, folder, every=""):
    if not all(map(shutil.which, ("doxygen", "mkdocs"))):
        print("skipped: it needs doxygen and mkdocs")
        return 77
    package, why = npm.package(folder, PACKAGE, VERSION)
    if package is None:
        print(f"skipped: {why}")
        return 77
    axe = (package / "axe.min.js").read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as work:
        site = pathlib.Path(work, "site").resolve()
        subprocess.run([sys.executable, pathlib.Path(source, "site/build.py"), source, site], stdout=subprocess.DEVNULL, check=True)
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=site.parent))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        root = f"http://127.0.0.1:{server.server_port}/{site.name}/"
        browser = Browser(chromium, chromedriver, pathlib.Path(work, "profile"), patience=120)
        count, wrong = 0, []
        try:
            for page, ((width, height), scheme) in sorted(examined(site, every), key=lambda e: e[1]):
                browser.develop("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 500)
                browser.scheme(scheme)
                browser.open(f"{root}{page}.html")
                browser.run(f"{axe};")
                count += 1
                wrong += [f"{page}, {width} pixels, {scheme}: {impact}: {rule}, {nodes} nodes: {html}"
                          for impact, rule, nodes, html in browser.run_async(RUN) if impact in BAD]  # fmt: skip
        finally:
            browser.close()
            server.shutdown()
        print(*wrong[:40], sep="\n", end="\n" if wrong else "")
        expect(f"{count} examinations by {PACKAGE} {VERSION}: {len(wrong)} serious or critical", count > 60 and not wrong)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
