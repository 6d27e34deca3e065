#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Builds the site and reads it: site.py SOURCE [CHROMIUM CHROMEDRIVER]. Skipped (exit code 77) without doxygen or mkdocs."""
import functools
import html.parser
import http.server
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "trace"))
from browser import Browser, expect  # noqa: E402

# What a reader would search for, and a page that has to be among the answers.
KNOWN = {"StallReport": "api/sync/stall_report.html", "CopyBroadcast": "api/packets/copy.html", "never-met": "docs/check.html",
         "lost-wakeup": "docs/doctor.html"}  # fmt: skip
# What a reader types into the search, and the page that has to come first.
FIRST = {"StallReport": "api/sync/stall_report.html", "copy_linear": "docs/packets.html", "ring.hpp": "api/queue/ring.html",
         "sdma/queue/ring.hpp": "api/queue/ring.html", "--stalled-for": "docs/doctor.html", "stale-wait": "docs/rules.html", "CopyLinear": "api/packets/copy.html",
         "Errc::no_space": "api/core/result.html", "no_space": "api/core/result.html", "sdma::Ring": "api/queue/ring.html"}  # fmt: skip
# With a letter too few, too many or wrong.
MISTYPED = ("doorbll", "simulatte", "brodcast", "emulatir")
# What has to be found, in whichever page.
FOUND = ("add_rtn_64", "64", "poll_mem", "max_slot")
URL = "https://example.org/sdma/"
LOADS = {("script", "src"), ("img", "src"), ("link", "href"), ("iframe", "src"), ("source", "src"), ("object", "data")}
NOT_LOADED = {"canonical", "edit", "prev", "next"}
PHONE = (390, 844)
PLAYGROUND = '<!doctype html><html lang="en"><link rel="icon" href="data:,"><title>playground</title><p>It runs.</p></html>'
WIDTHS = "return [document.scrollingElement.scrollWidth, innerWidth]"
SEARCH = """
const done = arguments[0], box = document.querySelector('[data-md-component=search-query]');
let tries = 0;
const timer = setInterval(() => { const a = document.querySelector('.md-search-result__item a');
  if (a || ++tries > 100) { clearInterval(timer); done(a ? a.href : ''); }
  // Until the page listens, a key is lost.
  box.blur(); box.focus(); box.value = NAME; box.dispatchEvent(new Event('keyup')); }, 200);"""
# A block of code without a scroll bar: whether a line is longer than it.
CUT = "return [...document.querySelectorAll('article pre > code')].filter((e) => e.scrollWidth > e.clientWidth + 1).map((e) => e.innerText.slice(0, 60))"
# Widths of the columns of tables, by table: what is narrower than its longest word cannot be read.
NARROW = """return [...document.querySelectorAll('article table:not([class]) td')].filter((e) => e.innerText.length > 30 && e.clientWidth < 90).map((e) => e.innerText.slice(0, 40))"""
# What scrolls sideways and cannot have the focus.
STUCK = """[...document.querySelectorAll('article *')].filter((e) => e.scrollWidth > e.clientWidth + 1 && /auto|scroll/.test(getComputedStyle(e).overflowX) &&
  e.tabIndex < 0 && !e.querySelector('a, button, [tabindex="0"]')).map((e) => e.innerText.slice(0, 40))"""
TEXT = ".md-tabs__link, article p, article li, article td, article a:not(.headerlink), article h2"


class Page(html.parser.HTMLParser):
    """The anchors of a page, what it links to, and what a browser loads for it."""

    def __init__(self, path):
        super().__init__()
        self.anchors, self.links, self.loads = {""}, [], []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.anchors |= {given[key] for key in ("id", "name") if given.get(key)}
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        for key, value in attributes:
            if (tag, key) in LOADS and value and given.get("rel") not in NOT_LOADED:
                self.loads.append(value)


def broken(site):
    """Links and loads that lead nowhere within the site, and loads from elsewhere."""
    pages = {path: Page(path) for path in sorted(site.rglob("*.html")) if path.name != "404.html" and "playground" not in path.parts}
    bad = []
    for path, page in pages.items():
        bad += [f"{path.relative_to(site)}: loads {load}" for load in page.loads if urllib.parse.urlsplit(load).netloc]
        for link in page.links + page.loads:
            parts = urllib.parse.urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            if not target.is_file():
                bad.append(f"{path.relative_to(site)}: {link}: there is no such file")
            elif target in pages and not target.match("playground/*") and link != "#" and parts.fragment not in pages[target].anchors:
                bad.append(f"{path.relative_to(site)}: {link}: there is no such place in the page")
    for path in sorted(site.rglob("*.css")):
        text = path.read_text(encoding="utf-8")
        bad += [f"{path.relative_to(site)}: loads from elsewhere" for word in ("url(http", "url(//", "@import") if word in text]
    return len(pages), bad


def headers_without_page(source, site):
    every = [path.relative_to(source / "include/sdma").with_suffix(".html") for path in (source / "include/sdma").rglob("*.hpp")]
    return [str(path) for path in every if not (site / "api" / path).is_file()]


def not_in_navigation(source, site):
    """Pages of docs to which the front page's navigation does not lead."""
    place = lambda page: str(page.relative_to(source).with_suffix(".html")).replace("README", "index")
    links = {link.split("#")[0] for link in Page(site / "index.html").links}
    return [page for page in map(place, sorted((source / "docs").rglob("*.md"))) if page not in links]


def not_found(site):
    index = json.loads((site / "search/search_index.json").read_text(encoding="utf-8"))["docs"]
    said = lambda page: " ".join(doc["title"] + doc["text"] for doc in index if doc["location"].split("#")[0] == page)
    return [f"{name} in {page}" for name, page in KNOWN.items() if name not in said(page)]


def statements(source):
    """Words with which a line of a schedule may begin, by the tables of the page about schedules, that the highlighting does not know."""
    page = (source / "docs/schedules.md").read_text(encoding="utf-8")
    named = set(re.findall(r"^\| `([a-z]+)\b", page, flags=re.M))
    return sorted(named - set(json.loads((source / "site/sdma_words.json").read_text(encoding="utf-8"))["statements"]))


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def in_browser(site, chromium, chromedriver, profile):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=site.parent))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    # Below a folder, as pages of a project are.
    root = f"http://127.0.0.1:{server.server_port}/{site.name}/"
    browser = Browser(chromium, chromedriver, profile)
    try:
        browser.phone(PHONE)
        for page in ("index", "docs/journeys/first_schedule", "docs/rules", "docs/packets", "api/queue/ring", "api/packets/copy", "source/include/sdma/queue/ring.hpp"):
            browser.open(f"{root}{page}.html")
            wide, screen = browser.run(WIDTHS)
            expect(f"{page}: {wide} of {screen} pixels of a phone", wide <= screen == PHONE[0])
            expect(f"{page}: what scrolls can have the focus", browser.becomes(f"{STUCK}.length === 0"))
        for page in ("docs/schedules", "docs/museum", "docs/rules", "docs/packets", "index"):
            browser.open(f"{root}{page}.html")
            narrow = browser.run(NARROW)
            expect(f"{page}: columns that are too narrow on a phone: {narrow[:3]}", not narrow)
        browser.phone(None)
        browser.develop("Emulation.setDeviceMetricsOverride", width=1280, height=900, deviceScaleFactor=1, mobile=False)
        for page in ("index", "docs/schedules", "docs/museum", "docs/doctor", "docs/trace", "api/queue/ring", "api/packets/copy"):
            browser.open(f"{root}{page}.html")
            cut = browser.run(CUT)
            expect(f"{page}: blocks that are cut: {cut[:3]}", not cut)
        browser.phone(None)
        browser.open(f"{root}docs/schedules.html")
        seen = browser.run("return [...document.querySelectorAll('article pre .k')].map((e) => e.innerText)")
        expect(f"schedules are highlighted: {sorted(set(seen))[:5]}", "param" in seen and "queue" in seen)
        # As wide as a page has its tabs.
        browser.develop("Emulation.setDeviceMetricsOverride", width=1280, height=900, deviceScaleFactor=1, mobile=False)
        for scheme in ("dark", "light"):
            browser.scheme(scheme)
            browser.run("localStorage.clear()")
            for page in ("index", "docs/journeys/hung_queue", "api/queue/ring"):
                browser.open(f"{root}{page}.html")
                shown = browser.run("return document.body.getAttribute('data-md-color-scheme')")
                expect(f"{page}: the {scheme} scheme is {shown}", shown == {"dark": "slate", "light": "default"}[scheme])
                expect(f"{page}: tabs are shown", browser.run("return [...document.querySelectorAll('.md-tabs__link')].filter((e) => e.getClientRects().length).length") > 3)
                least, where = browser.contrast(TEXT)
                expect(f"{page}, {scheme}: contrast {least:.1f} at least ({where})", least >= 4.5)
        shown = lambda: browser.run("return document.body.getAttribute('data-md-color-scheme')")
        browser.run("localStorage.clear()")
        browser.open(f"{root}index.html")
        for scheme, wanted in (("dark", "slate"), ("light", "default"), ("dark", "slate")):
            browser.scheme(scheme)
            expect(f"an open page follows the system to {scheme}", browser.becomes(f"document.body.getAttribute('data-md-color-scheme') === '{wanted}'"))
        browser.scheme("light")
        browser.open(f"{root}docs/check.html")
        expect("so does the next page", shown() == "default")
        toggle = browser.post("/element", {"using": "css selector", "value": "[data-md-component=palette] label:not([hidden])"})
        browser.post(f"/element/{next(iter(toggle.values()))}/click", {})
        expect("a reader chooses the dark scheme", browser.becomes("document.body.getAttribute('data-md-color-scheme') === 'slate'"))
        browser.scheme("dark")
        browser.scheme("light")
        browser.open(f"{root}index.html")
        expect("and keeps it, whatever the system says", shown() == "slate")
        browser.run("localStorage.clear()")
        browser.open(f"{root}404.html")
        expect("the page of a wrong address finds the start page", browser.becomes("document.body.dataset.root !== undefined && document.getElementById('start').href.endsWith('/index.html')"))
        for page in ("docs/schedules", "api/queue/ring", "source/include/sdma/queue/ring.hpp"):
            browser.open(f"{root}{page}.html")
            least, where = browser.contrast("pre span")
            expect(f"{page}: contrast of code {least:.1f} at least ({where})", least >= 4.5)
            flat = browser.run("return [...document.querySelectorAll('article a')].filter((e) => e.innerText && !e.matches('.headerlink, .md-button') && getComputedStyle(e).textDecorationLine != 'underline').map((e) => e.innerText)")
            expect(f"{page}: links that only their colour shows: {flat[:3]}", not flat)
            nameless = browser.run("return [...document.querySelectorAll('[role=dialog], nav')].filter((e) => !e.ariaLabel).map((e) => e.className)")
            expect(f"{page}: dialogs and landmarks without a name: {nameless}", not nameless)
            expect(f"{page}: one main part, one heading above all", browser.run("return [document.querySelectorAll('main').length, document.querySelectorAll('h1').length]") == [1, 1])
        browser.open(f"{root}docs/check.html")
        browser.run("[...document.querySelectorAll('.md-tabs a')].find(a => a.innerText.trim() == 'Playground').click()")
        shown = browser.run_async("""const done = arguments[0];
            const timer = setInterval(() => { if (document.title == 'playground') { clearInterval(timer); done(document.body.innerText); } }, 50);""")
        expect(f"the tab leads to the playground: {shown}", shown.strip() == "It runs.")
        browser.open(f"{root}index.html")
        search = lambda name: browser.run_async(SEARCH.replace("NAME", json.dumps(name)))
        for name in (*FIRST, *FOUND, *MISTYPED):
            browser.open(f"{root}index.html")
            found = search(name).removeprefix(root)
            expect(f"the first answer to {name} is {found}", found.startswith(FIRST.get(name, ("api", "docs"))))
        browser.open((site / "index.html").as_uri())
        found = search("StallReport")
        expect("the search answers, too, in pages of a folder, without a server", found.startswith((site / "api/sync/stall_report.html").as_uri()))
        browser.open(f"{root}index.html")
        complaints = browser.complaints()
        expect(f"the browser has no complaint{': ' if complaints else ''}{' '.join(complaints)}", not complaints)
        loaded = browser.run("return performance.getEntriesByType('resource').map(e => e.name)")
        expect(f"{len(loaded)} files loaded, all from the site", loaded and all(name.startswith(root) for name in loaded))
    finally:
        browser.close()
        server.shutdown()


def main(source, *browser):
    if not all(map(shutil.which, ("doxygen", "mkdocs"))):
        print("skipped: it needs doxygen and mkdocs")
        return 77
    source = pathlib.Path(source).resolve()
    with tempfile.TemporaryDirectory() as folder:
        site = pathlib.Path(folder, "site").resolve()
        # A stand-in for the playground's page, in a folder that also holds what the build needs.
        page = pathlib.Path(folder, "playground/index.html")
        (page.parent / "wasm").mkdir(parents=True)
        (page.parent / "wasm/sdma.wasm").write_text("not for readers", encoding="utf-8")
        page.write_text(PLAYGROUND, encoding="utf-8")
        page.with_name("preview.png").write_bytes(b"a picture")
        build = [sys.executable, source / "site/build.py", source, site, "--playground", page, "--url", URL]
        done = subprocess.run(build, capture_output=True, text=True)
        print(done.stdout + done.stderr, end="")
        expect("the site is built without a warning", done.returncode == 0)
        count, bad = broken(site)
        print(*bad[:40], sep="\n", end="\n" if bad else "")
        expect(f"{count} pages: {len(bad)} links lead nowhere or elsewhere", count > 100 and not bad)
        copied = sorted(str(path.relative_to(site)) for path in (site / "playground").rglob("*"))
        expect(f"of the playground, the site has {', '.join(copied)}", copied == ["playground/index.html", "playground/preview.png"])
        expect("the playground is the page itself", (site / "playground/index.html").read_text(encoding="utf-8") == PLAYGROUND)
        places = re.findall("<loc>(.*?)</loc>", (site / "sitemap.xml").read_text(encoding="utf-8"))
        expect(f"the sitemap has {len(places)} addresses", len(places) > 100 and all(place.startswith(URL) for place in places))
        museum = (site / "docs/museum.html").read_text(encoding="utf-8")
        exhibits = {path.name for path in (source / "tests/museum/exhibits").glob("*.bug.*") if path.suffix != ".cpp"}
        opened = set(re.findall(r'href="\.\./playground/index\.html#example=([\w.]+)"', museum))
        expect(f"{len(opened)} exhibits open in the playground; missing: {sorted(exhibits - opened)}", opened == exhibits)
        unknown = statements(source)
        expect(f"the highlighting knows all statements{', but not: ' if unknown else ''}{', '.join(unknown)}", not unknown)
        for what, missing in (("each header has a page", headers_without_page(source, site)), ("search finds known names", not_found(site)),
                              ("the navigation has each page of docs", not_in_navigation(source, site))):  # fmt: skip
            expect(f"{what}{', but not: ' if missing else ''}{', '.join(missing)}", not missing)
        if browser:
            in_browser(site, *browser, pathlib.Path(folder, "profile"))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
