#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Follows a recipe of CONTRIBUTING.md in a copy of the tree, and proves that its list of files is complete and works.

  contributing.py RECIPE.toml SOURCE BUILD SDMA CONFORMANCE COMPILER...

SDMA and CONFORMANCE (the device tests in software) are programs of BUILD: copies of what they are linked from serve here.
COMPILER is a command. The recipe, as data:

  title   the section of CONTRIBUTING.md that it follows
  names   what the section's placeholders stand for: SUBCOMMAND = "nap"
  edit    in the order of the section's list: a file with `text`, and `before` or `after` (lines that the file has once);
          neither for a new file; `bless` for a file that a program writes; `also`: more places of the same file
  probe   a program of the proof's own

Each proof builds the smallest program that shows the addition at work. `without` then leaves files out one at a time, where a
compiler, a linker, a check or a test notices.
"""
import contextlib
import filecmp
import importlib.machinery
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tomllib

# Half of the files of the tree, which no recipe needs.
LEFT = "tests/fuzz/corpus/"
WARNINGS = ["-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror"]


class Broken(Exception):
    """A recipe or a list that no longer fits the tree: the message is for whoever changed the tree."""


def tracked(source):
    """The files that belong to the tree. A tree without git is taken as it is, without build folders and hidden ones."""
    done = subprocess.run(["git", "-C", source, "ls-files", "-z", "--cached", "--others", "--exclude-standard"], capture_output=True)
    if done.returncode == 0 and done.stdout:
        return sorted(name for name in done.stdout.decode().split("\0") if name and (source / name).is_file())
    found = []
    for folder, folders, names in os.walk(source):
        folders[:] = [f for f in folders if not f.startswith((".", "build", "__", "subprojects"))]
        found += [str(pathlib.Path(folder, name).relative_to(source)) for name in names]
    return sorted(found)


def listed(source, title, names):
    """The files of the section's numbered list, in order."""
    page = (source / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = re.search(rf"^### {re.escape(title)}\n(.*?)(?=^##|\Z)", page, re.M | re.S)
    if not section:
        raise Broken(f"CONTRIBUTING.md has no section '### {title}'")
    found = []
    for item in re.findall(r"^\d+\. (.*?):", section[1], re.M):
        for path in re.findall(r"`([^`]+)`", item):
            for placeholder, name in names.items():
                path = path.replace(placeholder, name)
            found.append(path)
    return found


class Tree:
    """A copy of the source tree, and what is built from it."""

    def __init__(self, recipe, source, build, compiler):
        self.recipe, self.source, self.build, self.compiler = recipe, source, build, compiler
        # Not a temporary folder: at the same place, a compiler cache knows what it has compiled before.
        self.root = build / "tests/contributing" / recipe["name"]
        shutil.rmtree(self.root, ignore_errors=True)
        self.files = [name for name in tracked(source) if not name.startswith(LEFT)]
        for name in self.files:
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source / name, self.root / name)
        self.made = self.root / "made"  # hidden from `touched`
        self.made.mkdir()

    def apply(self):
        for edit in self.recipe["edit"]:
            path = self.root / edit["file"]
            if "bless" in edit:
                continue
            if "before" not in edit and "after" not in edit:
                if path.exists():
                    raise Broken(f"{edit['file']} is there already")
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(edit["text"], encoding="utf-8")
                continue
            text = path.read_text(encoding="utf-8")
            for place in edit.get("also", []) + [edit]:
                anchor = place.get("before", place.get("after"))
                if text.count(anchor) != 1:
                    raise Broken(f"{edit['file']}: {text.count(anchor)} times, and not once: {anchor!r}")
                both = place["text"] + anchor if "before" in place else anchor + place["text"]
                text = text.replace(anchor, both)
            path.write_text(text, encoding="utf-8")

    def touched(self):
        now = {str(p.relative_to(self.root)) for p in self.root.rglob("*") if p.is_file() and self.made not in p.parents}
        now = {p for p in now if "__pycache__" not in p}
        return {p for p in now | set(self.files)
                if p not in now or p not in self.files or not filecmp.cmp(self.root / p, self.source / p, shallow=False)}  # fmt: skip

    @contextlib.contextmanager
    def without(self, *names):
        """These files as they were before the recipe."""
        kept = {name: (self.root / name).read_bytes() for name in names}
        for name in names:
            if name in self.files:
                shutil.copyfile(self.source / name, self.root / name)
            else:
                (self.root / name).unlink()
        yield
        for name, text in kept.items():
            (self.root / name).write_bytes(text)

    def run(self, *command, check=True, **more):
        done = subprocess.run([str(c) for c in command], capture_output=True, text=True, **more)
        said = done.stdout + done.stderr
        if check and done.returncode != 0:
            raise Broken(f"{shlex.join(map(str, command))}: exit code {done.returncode}\n{said[-4000:]}")
        return said if check else (done.returncode, said)

    def noticed(self, what, expected, *command):
        """The command fails, and says what is missing."""
        code, said = self.run(*command, check=False, cwd=self.build)
        missing = [e for e in ([expected] if isinstance(expected, str) else expected) if e not in said]
        if code == 0 or missing:
            raise Broken(f"{what} is left out, and nothing says {missing or expected} (exit code {code}):\n{said[-4000:]}")
        print(f"without {what}: noticed")

    def compile(self, name, *sources, includes=("include", "lib", "tests"), only_syntax=False):
        """The command that compiles sources of the tree as one: it reads once what they all include."""
        text = "".join(f'#include "{self.root / s}"\n' for s in sources)
        one = self.made / f"{name}.cpp"
        one.write_text(text, encoding="utf-8")
        end = ["-fsyntax-only"] if only_syntax else ["-c", "-o", self.made / f"{name}.o"]
        root = f'-DSDMA_SOURCE_ROOT="{self.root}"'
        return [*self.compiler, "-std=c++20", "-O0", "-fPIC", *WARNINGS, root, *(f"-I{self.root / i}" for i in includes), one, *end]

    def link(self, like, *objects, out="program", keep=lambda file: False):
        """The command that links a program as `like` is linked, from these objects, and from those of its own that `keep` wants."""
        command = self.run("ninja", "-C", self.build, "-t", "commands", like.relative_to(self.build)).strip().split("\n")[-1]
        words = shlex.split(command)
        at = words.index("-o")
        words[at + 1] = str(self.made / out)
        first = next(i for i, w in enumerate(words) if w.endswith(".o"))
        own = [w for w in words if w.endswith(".o")]
        words = [w for w in words if w not in own]
        words[first:first] = [str(self.made / f"{o}.o") for o in objects] + [w for w in own if keep(w)]
        # $ORIGIN is where the program would lie.
        return [w.replace("$ORIGIN", str(like.parent)) for w in words]

    def program(self, like, *objects, out="program", **more):
        self.run(*self.link(like, *objects, out=out, **more), cwd=self.build)
        return self.made / out

    def probe(self):
        path = self.made / "probe.inc"
        path.write_text(self.recipe["probe"], encoding="utf-8")
        return str(path.relative_to(self.root))

    def case(self, program, *cases, bless=False):
        driver = self.root / "tests/support/cases.py"
        return [sys.executable, driver, *(["--bless"] if bless else []), program, *(self.root / c for c in cases)]

    def bless(self, **program):
        """As `ninja bless` does with this program alone."""
        self.run(sys.executable, self.root / "tests/support/bless.py", self.root, *(f"{k}={v}" for k, v in program.items()))

    def hygiene(self, check):
        return [sys.executable, self.root / "tests/hygiene/hygiene.py", check, self.root]


def packet(t, sdma, conformance):
    footprint, declared = "include/sdma/packets/footprint.hpp", "lib/engine/execute.hpp"
    execute, page, lengths = "lib/engine/execute.cpp", "docs/packets.md", "include/sdma/packets/length_table.hpp"
    t.run(*t.compile("document", "tests/packets/document.cpp", "lib/packets/label.cpp"))
    t.run(*t.compiler, t.made / "document.o", "-o", t.made / "document")
    for kind, generated in [("page", page), ("lengths", lengths)]:
        t.noticed(generated, "not what include/sdma/packets says", t.made / "document", kind, t.root / generated)
    t.bless(document=t.made / "document")

    t.run(*t.compile("tests", "tests/packets/names.cpp", "tests/packets/golden.cpp"))
    t.run(t.program(conformance, "tests"))

    t.run(*t.compile("execute", execute))
    t.run(*t.compile("probe", t.probe()))
    t.run(t.program(conformance, "probe", "execute"))
    t.noticed(execute, ["undefined", "execute"], *t.link(conformance, "probe"))
    with t.without(footprint, declared):
        t.noticed(f"{footprint}, {declared}", ["has no footprint, or no role", "has neither an execute() nor a refusal, or has both"],
                  *t.compile("bare", declared, only_syntax=True))  # fmt: skip


def rule(t, sdma, conformance):
    tests, page, case = "tests/stream/rules.cpp", "docs/rules.md", "tests/tools/cases/check_rules.test"
    t.run(*t.compile("rules", "lib/stream/rule_table.cpp", "lib/stream/rules.cpp"))
    t.run(*t.compile("tests", tests))
    for source in "lib/stream/rule_table.cpp", "lib/stream/rules.cpp":
        t.noticed(source, "breaks it alone", t.program(conformance, "tests"))
    program = t.program(conformance, "tests", "rules")
    t.run(program)
    with t.without(page):
        t.noticed(page, "each rule has a section", program)

    tool = t.program(sdma, "rules", out="sdma", keep=lambda file: True)
    t.noticed(case, "+poll-without-rest", *t.case(tool, case))
    t.run(*t.case(tool, case, bless=True))


def verb(t, sdma, conformance):
    build, schema, cases = "tools/meson.build", "share/schemas/nap.json", "tests/tools/cases"
    top, own = f"{cases}/help.test", f"{cases}/nap_help.test"
    # As tools/meson.build does.
    rows = re.findall(r"(?m)^  \['(\w+)', '(.*)'\],$", (t.root / build).read_text(encoding="utf-8"))
    made = {"declared": "".join(f"void add_{name}(VerbOptions&, Action&);\n" for name, _ in rows),
            "rows": "".join('{"%s", "%s", add_%s},\n' % (name, summary.replace("\\'", "'"), name) for name, summary in rows)}  # fmt: skip
    text = (t.root / "tools/verbs.hpp.in").read_text(encoding="utf-8")
    (t.made / "verbs.hpp").write_text(re.sub(r"@(\w+)@", lambda match: made[match[1]], text), encoding="utf-8")

    t.run(*t.compile("verb", "tools/verbs/nap.cpp", "tools/main.cpp", includes=("include", "lib", "made", "tools")))
    tool = t.program(sdma, "verb", out="sdma", keep=lambda file: not file.endswith("main.cpp.o"))
    t.noticed(build, "there is no subcommand 'nap'", sdma, "nap")
    with t.without(build):
        t.noticed(build, "tools/verbs/nap.cpp", *t.hygiene("sources"))
    t.noticed(top, "+  nap ", *t.case(tool, top))
    tables = [sys.executable, t.root / "tests/tools/tables.py", t.root, tool]
    for blessed, complaint in ("README.md", "+| `nap` | do nothing | [json](docs/json.md) |"), ("docs/json.md", "+| `nap` | One object"), (own, own):
        t.noticed(blessed, complaint, *tables)
    t.run(*tables[:2], "--bless", *tables[2:])
    t.run(*t.case(tool, top, own, bless=True))
    t.run(*tables)
    if "slept" not in t.run(tool, "nap"):
        raise Broken("sdma nap does nothing")
    schemas = [sys.executable, t.root / "tests/tools/schemas.py", "--verb=nap", tool, t.root / "share/schemas", t.root / own]
    t.run(*schemas)
    with t.without(schema):
        t.noticed(schema, "there is no nap.json", *schemas)
    t.run(sys.executable, t.root / "tests/python/verbs.py", tool, t.root)
    package = t.build / "python"
    if any((package / f"sdma/_sdma{suffix}").exists() for suffix in importlib.machinery.EXTENSION_SUFFIXES):
        environment = os.environ | {"PYTHONPATH": str(package), "PATH": f"{t.made}:{os.environ['PATH']}"}
        t.run(sys.executable, "-c", "import sdma\nassert sdma.nap() == {'slept': True}", env=environment)


def device(t, sdma, conformance):
    own, driver = "lib/device/borrowed.cpp", "tests/device/conformance_borrowed.cpp"
    t.run(*t.compile("device", own))
    t.run(*t.compile("conformance", driver))
    both = {"keep": lambda file: "conformance" in file and not file.endswith("conformance_soft.cpp.o")}
    t.run(t.program(conformance, "device", "conformance", **both), "queues come and go while others work")
    t.noticed(own, ["undefined", "BorrowedDevice"], *t.link(conformance, "conformance", **both))
    t.noticed(driver, ["undefined", "devices_under_test"], *t.link(conformance, "device", **both))
    for build, source in ("lib/device/meson.build", own), ("tests/device/meson.build", driver):
        with t.without(build):
            t.noticed(build, source, *t.hygiene("sources"))


# plan COLLECTIVE --flat --NAME=VALUE...
PLAN = """
#include "collectives/collectives.hpp"
#include "sdma/schedule/text.hpp"
#include <cstdio>
int main(int argc, char** argv) {
  collectives::Options o{.bytes = 1 << 20};
  std::string wrong = set(o, "collective", argv[2]);
  for (int i = 4; i < argc && wrong.empty(); ++i) {
    const std::string word = argv[i] + 2;
    wrong = set(o, word.substr(0, word.find('=')), word.substr(word.find('=') + 1));
  }
  const auto p = collectives::plan(o);
  if (!wrong.empty() || !p) return std::fprintf(stderr, "%s\\n", wrong.empty() ? to_string(p.error()).c_str() : wrong.c_str()), 1;
  std::fputs(to_text(p->schedule).c_str(), stdout);
}
"""


def variant(t, sdma, conformance):
    folder, golden = "collectives", "tests/collectives/golden/all_gather_turn.sdma"
    text = (t.root / folder / "texts.hpp.in").read_text(encoding="utf-8")
    texts = [t.root / folder / "variants.txt", *(t.root / "share/sdma/collectives").glob("*.sdma")]
    for path in texts:
        text = text.replace(f"@{path.stem}@", path.read_text(encoding="utf-8"))
    (t.made / "texts.hpp").write_text(text, encoding="utf-8")
    names = ("options", "table", "plan", "source")
    # Of sdma plan only what the variant changes: the rest of sdma is linked with the variants of this tree.
    (t.made / "plan.cpp").write_text(PLAN, encoding="utf-8")
    sources, includes = [*(f"{folder}/{n}.cpp" for n in names), t.made / "plan.cpp"], ("include", ".", "made")
    t.run(*t.compile("variant", *sources, includes=includes))
    plan = t.program(sdma, "variant", out="plan")
    t.bless(plan=plan)
    ask = ["plan", "all_gather", "--flat", "--gpus=3", "--bytes=1000"]
    if t.run(plan, *ask) != (t.root / golden).read_text(encoding="utf-8"):
        raise Broken("variants.txt does not choose the new variant")
    options = f"{folder}/options.cpp"
    with t.without(options):
        t.noticed(options, "not handled in switch", *t.compile("bare", options, includes=includes, only_syntax=True))


def hang_class(t, sdma, conformance):
    library, page = "lib/doctor/names.cpp", "docs/doctor.md"
    doctor = [f"lib/doctor/{n}.cpp" for n in ("diagnose", "hosts", "line", "packets", "state", "text")]
    recognises = "lib/doctor/waits.cpp"
    with t.without(library):
        t.noticed(library, "static assertion failed", *t.compile("bare", library, only_syntax=True))
    t.run(*t.compile("tests", "tests/doctor/injected.cpp"))
    t.run(*t.compile("more", "tests/doctor/report.cpp"))
    t.run(*t.compile("healthy", "tests/doctor/healthy.cpp"))
    t.run(*t.compile("doctor", library, *doctor))
    with t.without(recognises):
        t.run(*t.compile("waits", recognises))
        t.noticed(recognises, "instead of null-word", t.program(conformance, "tests", "doctor", "waits"))
    t.run(*t.compile("waits", recognises))
    program = t.program(conformance, "tests", "more", "healthy", "doctor", "waits")
    t.run(program)
    with t.without(page):
        t.noticed(page, "null-word", program, "each class has a row in docs/doctor.md")


def main(recipe, source, build, sdma, conformance, *compiler):
    path = pathlib.Path(recipe)
    recipe = {"name": path.stem, **tomllib.loads(path.read_text(encoding="utf-8"))}
    source, build, sdma, conformance = (pathlib.Path(p).resolve() for p in (source, build, sdma, conformance))
    try:
        tree = Tree(recipe, source, build, compiler)
        tree.apply()
        {f.__name__: f for f in (packet, rule, verb, device, variant, hang_class)}[path.stem](tree, sdma, conformance)
        wanted, edits = listed(source, recipe["title"], recipe["names"]), [e["file"] for e in recipe["edit"]]
        if wanted != edits:
            raise Broken(f"CONTRIBUTING.md, '{recipe['title']}', lists\n  {wanted}\nbut the recipe that works edits\n  {edits}")
        if tree.touched() != set(edits):
            raise Broken(f"changed besides the recipe's files, or not changed: {sorted(tree.touched() ^ set(edits))}")
    except Broken as broken:
        sys.exit(f"{path.name}: {broken}\nThe copy of the tree: {build / 'tests/contributing' / path.stem}")
    shutil.rmtree(tree.root)
    print(f"CONTRIBUTING.md, '{recipe['title']}': the list of files is complete, and works")


if __name__ == "__main__":
    if len(sys.argv) < 7:
        sys.exit(__doc__)
    main(*sys.argv[1:])
