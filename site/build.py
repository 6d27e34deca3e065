#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The documentation as a static site: build.py SOURCE OUTPUT [--playground PAGE] [--url URL] [--work DIR]

Collects README.md (the front page), CONTRIBUTING.md, CHANGELOG.md, docs and the READMEs of findings and integration/runtime, adds a page for each
public header (api.py) and a view of each file that a page links to, and has mkdocs render them. Needs Debian's doxygen, mkdocs and
mkdocs-material, and neither a compiler nor a network. Ends with an error if doxygen or mkdocs warns, if a link leads nowhere, or if
a public name has no comment. With --playground, copies that page to OUTPUT/playground/index.html, if it has been built, and adds it to the
navigation and to each exhibit of the museum. With --url, where the site will be published, writes a sitemap.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import api
import doxygen

SITE = pathlib.Path(__file__).resolve().parent
DEBIAN = "/usr/bin/python3"  # which has the modules of mkdocs and pygments
LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])*)\]\((?!https?:|mailto:|#)([^)\s]+)\)")
FENCE = re.compile(r"(?ms)^( *)```.*?^\1```")
# The exhibit in the first command of what the museum shows of it.
EXHIBIT = re.compile(r"(?ms)^```\n\$ sdma (?:check|as)[^\n]* (\w+\.bug\.(?:sdma|packets))\b.*?^```\n")
HEADER = re.compile(r"(?<!\[)`(?:include/)?(?:sdma/)?((?:%s)/\w+)\.hpp`(?!\])")

# A chapter of docs/README.md, and a page in it.
CHAPTER = re.compile(r"(?ms)^## (.+?)\n(.*?)(?=^## |\Z)")
ITEM = re.compile(r"(?m)^- \[[^\]]+\]\(([^)#]+)\): ")


def slug(value, separator):
    """The anchor of a heading, as code hosts make it: so one link serves both."""
    return re.sub(r"[^\w\- ]", "", value.strip().lower()).replace(" ", separator)


def outside_code(text, change):
    """Applies `change` to what is not in a fenced block."""
    parts, at = [], 0
    for match in FENCE.finditer(text):
        parts += [change(text[at : match.start()]), match[0]]
        at = match.end()
    return "".join(parts + [change(text[at:])])


def collected(source):
    """The pages of SOURCE that the site shows."""
    found = [p for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "findings/README.md", "integration/runtime/README.md") if (p := source / name).is_file()]
    return sorted(p.relative_to(source) for p in found + sorted((source / "docs").rglob("*.md")))


def highlighted(text):
    """Names the language of schedules in blocks without a language."""
    words = "|".join(json.loads((SITE / "sdma_words.json").read_text(encoding="utf-8"))["statements"])
    schedule = re.compile(rf"(?:\s*#[^\n]*\n)*\s*(?:sdma 1|(?:{words}) [\w*]+)")

    def block(match):
        body = match[0].split("\n", 1)[1]
        return f"{match[1]}```sdma\n{body}" if match[0].split("\n")[0].strip() == "```" and schedule.match(body) else match[0]

    return FENCE.sub(block, text)


class Builder:
    def __init__(self, source, output, work, playground, url):
        self.source, self.output, self.work, self.playground, self.url = source, output, work, playground, url
        self.pages, self.complaints, self.views = work / "docs", [], {}
        self.modules = "|".join(sorted(p.name for p in (source / "include/sdma").iterdir() if p.is_dir()))

    def collect(self):
        self.collected = set(collected(self.source))
        for path in sorted(self.collected):
            target = self.pages / path
            target.parent.mkdir(parents=True, exist_ok=True)
            text = (self.source / path).read_text(encoding="utf-8")
            text = highlighted(outside_code(text, lambda prose: self.linked(prose, path)))
            if self.playground and path.name == "museum.md":
                text = EXHIBIT.sub(lambda match: f"{match[0]}\n<a href=\"../playground/index.html#example={match[1]}\">Open this bug in the playground</a>\n", text)
            target.write_text(text, encoding="utf-8")
        shutil.copytree(self.source / "docs/figures", self.pages / "docs/figures")
        shutil.copy(SITE / "theme/style.css", self.pages)

    def linked(self, prose, page):
        up = "../" * (len(page.parts) - 1)

        def link(match):
            target, _, anchor = match[2].partition("#")
            path = pathlib.PurePath(os.path.normpath(page.parent / target))
            anchor = f"#{anchor}" if anchor else ""
            if path in self.collected or path.suffix == ".svg":
                return match[0]
            if path.parts[:2] == ("include", "sdma") and path.suffix == ".hpp":
                return f"[{match[1]}]({up}api/{path.relative_to('include/sdma').with_suffix('.md')}{anchor})"
            if not (self.source / path).exists():
                self.complaints.append(f"{page}: {match[2]}: there is no such file")
                return match[0]
            return f"[{match[1]}]({up}{self.view(path)})"

        prose = LINK.sub(link, prose)
        header = lambda match: f"[{match[0]}]({up}api/{match[1]}.md)" if (self.source / f"include/sdma/{match[1]}.hpp").is_file() else match[0]
        lines = re.compile(HEADER.pattern % self.modules)
        return "".join(line if line.startswith("#") else lines.sub(header, line) for line in prose.splitlines(True))

    def view(self, path):
        """Where the view of a file or a folder will lie."""
        self.views[path] = f"source/{path}.html" if (self.source / path).is_file() else f"source/{path}/index.html"
        return self.views[path]

    def write_views(self):
        job = [[str(self.source / path), str(self.pages / place), "../" * place.count("/")] for path, place in sorted(self.views.items())]
        subprocess.run([DEBIAN, SITE / "view.py"], input=json.dumps(job), text=True, check=True)

    def headers(self):
        compounds, complaint = doxygen.compounds(self.source / "include", self.work)
        self.complaints += [complaint] if complaint else []
        count, names, self.bare = api.main(compounds, self.source, self.pages / "api")
        shutil.move(self.pages / "api/names.json", self.work / "names.json")
        for path in sorted((self.source / "include/sdma").rglob("*.hpp")):
            self.view(path.relative_to(self.source))
        return count, names

    def navigation(self):
        title = lambda page: re.search(r"^# (.*)", (self.source / page).read_text(encoding="utf-8"), flags=re.M)[1].replace('"', "'")
        item = lambda page, depth: f"{'  ' * depth}- \"{title(page)}\": {page}"
        # Code hosts show docs/README.md, and the site has its chapters: a page is where it is named first.
        index, named, journeys, guide = pathlib.PurePath("docs/README.md"), set(), [], []
        for chapter, text in CHAPTER.findall((self.source / index).read_text(encoding="utf-8")):
            guide.append(f'      - "{chapter}":')
            for page in [pathlib.PurePath(os.path.normpath(index.parent / target)) for target in ITEM.findall(text)]:
                if page not in named:
                    journey = page.parent.name == "journeys"
                    (journeys if journey else guide).append(item(page, 3 if journey else 5))
                named.add(page)
        lines = ["nav:", '  - "Start": README.md', '  - "Journeys":', *journeys, '  - "Guide":', f"      - {index}", *guide]
        lines += ['  - "API":', "      - api/README.md"]
        lines += [f'      - "{p.stem}": api/{p.name}' for p in sorted((self.pages / "api").glob("*.md")) if p.name != "README.md"]
        for module in sorted(p for p in (self.pages / "api").iterdir() if p.is_dir()):
            lines += [f'      - "{module.name}":', *(f'          - "{p.stem}": api/{module.name}/{p.name}' for p in sorted(module.glob("*.md")))]
        if self.playground:
            lines.append('  - "Playground": playground/index.html')
        return lines

    def render(self):
        settings = (SITE / "mkdocs.yml").read_text(encoding="utf-8")
        places = {"docs_dir: docs": f"docs_dir: {self.pages}", "site_dir: site": f"site_dir: {self.output}", "custom_dir: theme": f"custom_dir: {SITE / 'theme'}"}
        for before, after in places.items():
            settings = settings.replace(before, after)
        config = self.work / "mkdocs.yml"
        config.write_text(settings + (f"site_url: {self.url}\n" if self.url else "") + "\n".join(self.navigation()) + "\n", encoding="utf-8")
        env = {**os.environ, "PYTHONPATH": str(SITE), "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(["/usr/bin/mkdocs", "build", "--clean", "--strict", "-f", config], env=env, capture_output=True, text=True)
        if done.returncode != 0:
            said = [line for line in (done.stdout + done.stderr).splitlines() if not line.startswith("INFO")]
            self.complaints.append("\n".join(["mkdocs:", *said]))
            return
        self.search_names()
        self.search_in_files()
        # The theme's has addresses from the root of a server, whatever folder the site lies in.
        shutil.copy(SITE / "theme/404.page", self.output / "404.html")
        if not self.url:  # a sitemap needs whole addresses
            for sitemap in self.output.glob("sitemap.xml*"):
                sitemap.unlink()

    def search_names(self):
        """search.js, before the worker of the theme."""
        [worker] = (self.output / "assets/javascripts/workers").glob("search.*.js")
        worker.write_text((SITE / "search.js").read_text(encoding="utf-8") + worker.read_text(encoding="utf-8"), encoding="utf-8")

    def search_in_files(self):
        """The search index and its worker as a script, for pages that are opened without a server (theme/main.html)."""
        index = (self.output / "search/search_index.json").read_text(encoding="utf-8")
        [worker] = (self.output / "assets/javascripts/workers").glob("search.*.js")
        code = json.dumps(worker.read_text(encoding="utf-8"))
        said = f"var __search = {{index: Promise.resolve({index}), worker: URL.createObjectURL(new Blob([{code}]))}};\n"
        (self.output / "search/offline.js").write_text(said, encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=pathlib.Path)
    parser.add_argument("output", type=pathlib.Path)
    parser.add_argument("--playground", type=pathlib.Path, help="the page that playground/build.py writes")
    parser.add_argument("--url", default="", help="where the site will be published, such as https://example.org/sdma/")
    parser.add_argument("--work", type=pathlib.Path, help="files in between; default: OUTPUT with -work")
    given = parser.parse_args()
    output = given.output.resolve()
    work = (given.work or output.with_name(output.name + "-work")).resolve()
    shutil.rmtree(work, ignore_errors=True)
    (work / "docs/api").mkdir(parents=True)
    playground = given.playground and given.playground.is_file()
    builder = Builder(given.source.resolve(), output, work, playground, given.url)
    builder.collect()
    count, names = builder.headers()
    if playground:
        (work / "docs/playground").mkdir()
        for page in (given.playground, given.playground.with_name("preview.png")):
            shutil.copy(page, work / "docs/playground")
    builder.write_views()
    builder.render()
    builder.complaints += [f"{place}: {name} has no comment" for name, place in builder.bare]
    if builder.complaints:
        print(*builder.complaints, sep="\n", file=sys.stderr)
        sys.exit(1)
    print(f"{len(list(output.rglob('*.html')))} pages, {count} headers, {names} public names: {output}/index.html")


if __name__ == "__main__":
    main()
