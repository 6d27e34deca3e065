#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The museum: bugs that others have published, each beside its fix, and what our parts say about both.

  museum.py SOURCE SDMA PROGRAM COMPILER     tests every exhibit, and that docs/museum.md shows what the tools say now
  museum.py --bless SOURCE SDMA              writes docs/museum.md: `ninja bless`

museum.toml is the table. A [[room]] has a title, a text and exhibits; a [[room.exhibit]] has:

  name      its files: exhibits/NAME.bug.* and NAME.fix.*, or the lines of museum.cpp after `// exhibit NAME bug`
  title, happened, teaches, note        prose for the page
  source    OWNER/REPOSITORY#NUMBER, OWNER/REPOSITORY@COMMIT, or a CVE
  known     "change": the change itself was read; "discussion": its description or review was
  caught    the part of ours that catches it: a key of CAUGHT
  finds     for a schedule or a ring: each finding of the bug, as "SEVERITY RULE", and no other. The page shows the first
  options   of sdma check, for both versions
  says      for C++: what the library reports about the bug: the first line and the hint

[[missed]] lists what no exhibit can show: what, source, why.

A schedule's fix must be proved, without a finding of any severity, and pass `sdma run --test`. A ring's fix has no finding. C++
that a compiler must refuse is tested as in tests/nocompile.
"""
import concurrent.futures
import difflib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import tomllib

# What catches a bug: (is it before anything runs?, how the page says it)
CAUGHT = {
    "check": (True, "`sdma check`"),
    "topology": (True, "`sdma check`, from the engines of the node"),
    "rule": (True, "`sdma check`, a rule about one ring"),
    "text": (True, "`sdma as`"),
    "type": (True, "the compiler"),
    "ring": (True, "the interface of `Ring`"),
    "kernel": (True, "`check` in C++, with a kernel"),
    "stall": (False, "a stall report, when it runs"),
}
KNOWN = {"change": "the change itself", "discussion": "the discussion of it"}
# How many bugs the museum shows at least, and how many of them are caught before anything runs.
ALL, BEFORE = 30, 26


class Wrong(Exception):
    """An exhibit is not what the table says."""


class Exhibit:
    def __init__(self, museum, entry):
        self.museum, self.name = museum, entry["name"]
        self.title, self.source, self.caught = entry["title"], entry["source"], entry["caught"]
        self.known, self.teaches, self.happened = entry["known"], entry["teaches"], entry["happened"]
        self.note, self.finds = entry.get("note", ""), entry.get("finds", [])
        self.options, self.says = entry.get("options", []), entry.get("says", "").strip("\n")
        self.before, self.by = CAUGHT[self.caught]
        found = {path.suffix: path for path in museum.exhibits.glob(f"{self.name}.bug.*")}
        self.suffix = next(iter(found), "")
        if len(found) > 1 or bool(self.says) == bool(self.suffix) or bool(self.finds) != (self.suffix in (".sdma", ".packets")):
            raise Wrong(f"{self.name}: its files do not fit its row")

    def file(self, version):
        return f"{self.name}.{version}{self.suffix}"

    def text(self, version):
        """What a reader sees: the file without what only a test needs, or the lines of museum.cpp."""
        if not self.suffix:
            return self.museum.regions[self.name, version]
        text = (self.museum.exhibits / self.file(version)).read_text(encoding="utf-8")
        return re.sub(r"\A// SPDX-.*\n\s*// must not compile: .*\n|\A// SPDX-.*\n", "", text)

    def command(self, version):
        """For a shell, in the folder of the exhibits."""
        if self.suffix == ".sdma":
            return " ".join(["sdma check", *self.options, self.file(version)])
        generation = [o for o in self.options if o.startswith("--gfx")]
        return " ".join(["sdma as", *generation, self.file(version), "| sdma check", *self.options])

    def tool(self, version, *more):
        """(exit code, standard output, standard error); of `sdma as`, if that refuses the text."""
        if self.suffix == ".sdma":
            return self.museum.run("check", *more, *self.options, self.file(version))
        generation = [o for o in self.options if o.startswith("--gfx")]
        with tempfile.NamedTemporaryFile() as dwords:
            done = self.museum.run("as", *generation, "-o", dwords.name, self.file(version))
            if done[0] != 0:
                return done
            code, out, err = self.museum.run("check", *more, *self.options, dwords.name)
        return code, out.replace(dwords.name, "stdin"), err.replace(dwords.name, "stdin")

    def findings(self, version):
        """({"SEVERITY RULE"}, is it proved?): what the tool finds. A text that cannot be read is one error without a rule."""
        code, out, err = self.tool(version, "--json")
        if not out and code != 0:
            return {"error"} if ": error: " in err else set(), False
        lines = [json.loads(line) for line in out.splitlines()]
        found = {f"{line['severity']} {line['rule']}" for line in lines if "rule" in line}
        return found, code == 0

    def complaints(self, says, compiler):
        """What is wrong, in sentences."""
        if self.suffix == ".cpp":
            for version in ("bug", "fix"):
                if bad := self.museum.nocompile.complaint(compiler, self.museum.source / "include", str(self.museum.exhibits / self.file(version))):
                    yield f"{self.file(version)}: {bad}"
        elif not self.suffix:
            for version, expected in (("bug", self.says), ("fix", "")):
                if (said := says.get(f"{self.name}.{version}")) != expected:
                    yield f"{self.name}, {version}: the library says\n  {said!r}\nand the table\n  {expected!r}"
        else:
            found, _ = self.findings("bug")
            if found != set(self.finds) or not found:
                yield f"{self.command('bug')}: finds {sorted(found)}, and the table says {sorted(self.finds)}"
            found, proved = self.findings("fix")
            if found or not proved:
                yield f"{self.command('fix')}: {sorted(found) or 'not proved'}, and this is the fixed version"

    def in_short(self):
        """The first finding, for the list of all."""
        if self.suffix == ".cpp":
            return "does not compile"
        if rule := re.search(r"(?:error|warning|note)[ \[]([\w-]+)", " ".join(self.finds[:1]) or self.says):
            return f"[{rule[1]}](rules.md#{rule[1]})"
        return re.split("[:;]", self.says)[0] or "does not fit its field"

    def said(self):
        """What the page quotes."""
        if self.suffix == ".cpp":
            return "The compiler refuses the line that ends with `// refused`.\n"
        if not self.suffix:
            return f"The library reports:\n\n```\n{self.says}\n```\n"
        _, _, err = self.tool("bug")
        parts = re.split(r"^(?=\S)", err, flags=re.M)
        mark = f"{self.finds[0].replace(' ', '[')}]: " if " " in self.finds[0] else "error: "
        shown = next((part for part in parts if mark in part), "")
        if not shown:
            raise Wrong(f"{self.command('bug')}: shows no {self.finds[0]}:\n{err}")
        _, fixed, _ = self.tool("fix")
        text = f"```\n$ {self.command('bug')}\n{shown}$ {self.command('fix')}\n{fixed}```\n"
        if others := [find.split(" ") for find in self.finds[1:]]:
            text += "\nThe bug has more findings: " + ", ".join(f"{s} [{r}](rules.md#{r})" for s, r in others) + ".\n"
        return text


def link(source):
    """A link to where the bug was published."""
    if source.startswith("CVE-"):
        return f"[{source}](https://www.cve.org/CVERecord?id={source})"
    match = re.fullmatch(r"([\w-]+)/([\w.-]+)([#@])(\w+)", source)
    if not match:
        raise Wrong(f"'{source}' is not OWNER/REPOSITORY#NUMBER, OWNER/REPOSITORY@COMMIT or a CVE")
    owner, repository, kind, number = match.groups()
    where = "issues" if kind == "#" else "commit"
    shown = f"#{number}" if kind == "#" else number
    return f"[{repository} {shown}](https://github.com/{owner}/{repository}/{where}/{number})"


def blocks(lines):
    """Divided before each queue and each host thread, so that lines of different agents are not taken for each other."""
    out = [[]]
    for line in lines:
        if re.match("queue |host ", line):
            out.append([])
        out[-1].append(line)
    return out


def both(bug, fix, numbered):
    """Two versions as one text: lines of the bug begin with -, lines of the fix with +. Numbers are those of both files."""
    old, new, out, at = blocks(bug.splitlines()), blocks(fix.splitlines()), "", [0, 0]
    if [block[:1] for block in old[1:]] != [block[:1] for block in new[1:]]:
        old, new = [sum(old, [])], [sum(new, [])]

    def add(mark, line):
        at[0] += mark != "+"
        at[1] += mark != "-"
        left, right = (at[0] if mark != "+" else ""), (at[1] if mark != "-" else "")
        return (f"{mark}{left:>3}{right:>3}  {line}" if numbered else f"{mark}{line}").rstrip() + "\n"

    for before, after in zip(old, new):
        for _, a, b, c, d in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
            same = before[a:b] == after[c:d]
            out += "".join(add(" " if same else "-", line) for line in before[a:b])
            out += "" if same else "".join(add("+", line) for line in after[c:d])
    return out


def anchor(title):
    """GitHub's, of a heading."""
    return re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")


def regions(path):
    """{(exhibit, version): its lines}"""
    found = {}
    text = path.read_text(encoding="utf-8")
    for name, version, lines in re.findall(r"^ *// exhibit (\w+) (bug|fix)\n(.*?)^ *// end\n", text, re.M | re.S):
        indent = len(lines) - len(lines.lstrip(" "))
        found[name, version] = re.sub(rf"^ {{{indent}}}", "", lines, flags=re.M)
    return found


class Museum:
    def __init__(self, source, sdma):
        self.source, self.sdma = pathlib.Path(source).resolve(), pathlib.Path(sdma).resolve()
        self.folder = self.source / "tests/museum"
        self.exhibits, self.page = self.folder / "exhibits", self.source / "docs/museum.md"
        sys.path.insert(0, str(self.source / "tests/nocompile"))
        sys.dont_write_bytecode = True
        import nocompile

        self.nocompile = nocompile
        self.regions = regions(self.folder / "museum.cpp")
        table = tomllib.loads((self.folder / "museum.toml").read_text(encoding="utf-8"))
        self.rooms = [(room, [Exhibit(self, entry) for entry in room["exhibit"]]) for room in table["room"]]
        self.missed = table["missed"]
        self.all = [exhibit for _, room in self.rooms for exhibit in room]
        self.before = sum(exhibit.before for exhibit in self.all)

    def run(self, *arguments):
        done = subprocess.run([self.sdma, *arguments], cwd=self.exhibits, capture_output=True, text=True, timeout=60)
        return done.returncode, done.stdout, done.stderr

    def strays(self):
        """Files and lines that belong to no exhibit, and exhibits that are there twice."""
        names = [exhibit.name for exhibit in self.all]
        wanted = {e.file(v) for e in self.all if e.suffix for v in ("bug", "fix")}
        wanted |= {option for e in self.all for option in e.options if option.endswith(".json")}
        for name in sorted({path.name for path in self.exhibits.iterdir()} ^ wanted):
            yield f"exhibits/{name}: a file without a row of the table, or the reverse"
        for name in sorted({e.name for e in self.all if not e.suffix} ^ {name for name, _ in self.regions}):
            yield f"museum.cpp: {name}: lines without a row of the table, or the reverse"
        if len(set(names)) != len(names):
            yield "museum.toml: a name is there twice"
        if len(self.all) < ALL or self.before < BEFORE:
            yield f"{len(self.all)} bugs, {self.before} of them caught before anything runs; {ALL} and {BEFORE} at least"

    def text(self):
        """The page."""
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            said = dict(zip((e.name for e in self.all), pool.map(Exhibit.said, self.all)))
        numbers = {e.name: i for i, e in enumerate(self.all, 1)}
        out = (self.folder / "intro.md").read_text(encoding="utf-8")
        out = out.replace("@ALL@", str(len(self.all))).replace("@BEFORE@", str(self.before))
        out += "\n| | bug | caught by | finding |\n|---|---|---|---|\n"
        for e in self.all:
            out += f"| {numbers[e.name]} | [{e.title}](#{anchor(e.title)}) | {e.by} | {e.in_short()} |\n"
        for room, exhibits in self.rooms:
            out += f"\n## {room['title']}\n\n{room['text'].strip()}\n"
            for e in exhibits:
                sources = ", ".join(map(link, e.source))
                out += f"\n### {e.title}\n\n{e.happened.strip()}\n*Published in {sources}; known from {KNOWN[e.known]}.*\n"
                out += f"\n{e.note.strip()}\n" if e.note else ""
                out += f"\n```diff\n{both(e.text('bug'), e.text('fix'), e.suffix == '.sdma')}```\n\n{said[e.name]}\n**What it teaches.** {e.teaches.strip()}\n"
        out += "\n## What no part of ours catches\n\n| bug | published in | why |\n|---|---|---|\n"
        for m in self.missed:
            out += f"| {m['what']} | {', '.join(map(link, m['source']))} | {m['why']} |\n"
        return out

    def complaints(self, program, compiler):
        yield from self.strays()
        with tempfile.NamedTemporaryFile("r", encoding="utf-8") as file:
            done = subprocess.run([program], env={**os.environ, "SDMA_MUSEUM_SAYS": file.name}, capture_output=True, text=True)
            if done.returncode != 0:
                yield f"{program}:\n{done.stdout}{done.stderr}"
            says = {}
            for line in file:
                exhibit, _, said = line.rstrip("\n").partition("\t")
                says[exhibit] = f"{says[exhibit]}\n{said}" if exhibit in says else said
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for bad in pool.map(lambda e: list(e.complaints(says, compiler)), self.all):
                yield from bad
        code, out, err = self.run("run", "--test", *(e.file("fix") for e in self.all if e.suffix == ".sdma"))
        if code != 0:
            yield f"sdma run --test of the fixed versions:\n{err}{out}"
        shown = self.page.read_text(encoding="utf-8") if self.page.exists() else ""
        try:
            now = self.text()
        except Wrong as wrong:
            yield f"docs/museum.md cannot be written: {wrong}"
            return
        if shown != now:
            yield "docs/museum.md is not what the exhibits and the tools say now; `ninja bless` writes it:\n" + "".join(
                difflib.unified_diff(shown.splitlines(True), now.splitlines(True), "docs/museum.md", "now"))  # fmt: skip


def main(arguments):
    try:
        if arguments[:1] == ["--bless"] and len(arguments) == 3:
            museum = Museum(*arguments[1:])
            museum.page.write_text(museum.text(), encoding="utf-8")
            return 0
        if len(arguments) != 4:
            sys.exit(__doc__)
        museum = Museum(*arguments[:2])
        bad = list(museum.complaints(*arguments[2:]))
    except Wrong as wrong:
        sys.exit(str(wrong))
    print("\n".join(bad) or f"{len(museum.all)} bugs, {museum.before} of them caught before anything runs; no alarm on a fix")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
