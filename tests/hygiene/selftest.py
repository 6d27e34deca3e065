#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Each check of hygiene.py finds what it is for, and is silent where there is nothing: on trees of one or two files.

  selftest.py COMPILER... -- CLANG...

CLANG is newer than that of COMPILER.
"""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import file_map
import hygiene
import modules
import units

COMPILERS = []
MODULES = ""  # the newest clang, if it can
GOOD = "#pragma once\n// A word about what this header is for.\n"
WIRE_ALLOW = "tests/hygiene/wire_allow.txt"


class Tree(unittest.TestCase):
    def run_check(self, check, files, *arguments):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, text in files.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text, encoding="utf-8")
            return check(root, *arguments)

    def good(self, check, files, *arguments):
        self.assertEqual(self.run_check(check, files, *arguments), [])

    def bad(self, check, files, complaint, *arguments):
        found = self.run_check(check, files, *arguments)
        self.assertEqual(len(found), 1, found)
        self.assertIn(complaint, found[0])


def header(name, text=""):
    return {f"include/sdma/{name}.hpp": GOOD + text}


def include(name):
    return f'#include "sdma/{name}.hpp"\n'


class Names(Tree):
    check = staticmethod(hygiene.names)
    TWO = {"lib/device/cuda/memory.hpp": "", "lib/engine/memory.cpp": "", "lib/engine/memory.hpp": ""}

    def test_two(self):
        self.good(self.check, self.TWO)

    def test_three(self):
        for path in ("lib/simulate/memory.hpp", "tools/memory.cpp", "collectives/memory.hpp", "integration/client/memory.h", "python/module/memory.cpp", "bench/memory.cpp"):
            with self.subTest(path):
                self.bad(self.check, self.TWO | {path: ""}, "memory is also the name of a source in")

    def test_names_that_are_given(self):
        given = {"tools/verbs/memory.cpp": "", "include/sdma/device/memory.hpp": "", "lib/device/memory.cpp": ""}
        self.good(self.check, self.TWO | given)
        self.bad(self.check, self.TWO | {"lib/device/memory.cpp": "", "include/sdma/queue/memory.hpp": ""}, "lib/device/cuda")


class Tags(Tree):
    check = staticmethod(hygiene.tags)

    @classmethod
    def setUpClass(cls):
        if not shutil.which("ctags-universal"):
            raise unittest.SkipTest("needs universal-ctags")

    def test_read(self):
        text = "namespace sdma { inline namespace v0_3 { namespace detail {\nstruct Ring {};\n}}}\n"
        self.good(self.check, header("core/a", text), "ctags-universal")

    def test_hidden(self):
        text = "namespace sdma::inline v0_3 {\nstruct Ring {};\n}\n"
        self.bad(self.check, header("core/a", text), "finds no name", "ctags-universal")

    def test_listed(self):
        self.bad(self.check, header("core/standard", "#define A 1\n"), "need not be listed", "ctags-universal")


class Includes(Tree):
    check = staticmethod(hygiene.includes)

    def test_downward(self):
        self.good(self.check, header("core/a") | header("packets/b", include("core/a")))

    def test_same_folder(self):
        self.good(self.check, header("core/a") | header("core/b", include("core/a")))

    def test_upward(self):
        self.bad(self.check, header("queue/ring") | header("core/b", include("queue/ring")), "core may not use queue")

    def test_upward_in_the_library(self):
        files = header("device/soft") | {"lib/stream/a.cpp": include("device/soft")}
        self.bad(self.check, files, "stream may not use device")

    def test_upward_by_a_relative_path(self):
        files = {"lib/core/a.cpp": '#include "../trace/t.hpp"\n', "lib/trace/t.hpp": ""}
        self.bad(self.check, files, "core may not use trace")

    def test_private_header_of_the_same_folder(self):
        self.good(self.check, {"lib/stream/a.cpp": '#include "lexer.hpp"\n', "lib/stream/lexer.hpp": ""})

    def test_public_header_includes_private(self):
        files = header("stream/text", '#include "stream/lexer.hpp"\n') | {"lib/stream/lexer.hpp": ""}
        self.bad(self.check, files, "not installed")

    def test_header_only_needs_the_library(self):
        files = header("stream/text") | header("queue/ring", include("stream/text"))
        self.bad(self.check, files, "header-only")

    def test_the_library_may(self):
        self.good(self.check, header("stream/text") | header("queue/dump", include("stream/text")))

    def test_header_only_with_a_dependency(self):
        self.bad(self.check, header("sync/wait", "#include <fmt/core.h>\n"), "standard library")

    def test_header_only_with_the_system(self):
        self.bad(self.check, header("sync/wait", "#include <unistd.h>\n"), "standard library")

    def test_header_only_with_standard_and_fences(self):
        self.good(self.check, header("queue/order", "#include <atomic>\n#include <immintrin.h>\n"))

    def test_posix_has_one_place(self):
        self.good(self.check, header("core/deadline", "#include <time.h>\n"))
        self.bad(self.check, header("core/units", "#include <time.h>\n"), "standard library")

    def test_ours_in_angle_brackets(self):
        self.bad(self.check, header("core/a") | header("core/b", "#include <sdma/core/a.hpp>\n"), "in quotes")

    def test_no_such_file(self):
        self.bad(self.check, header("core/b", include("core/gone")), "no file")

    def test_unknown_folder(self):
        self.bad(self.check, header("misc/b"), "no folder")

    def test_nobody_includes_the_emulator(self):
        files = {"lib/emulator/e.hpp": "", "lib/simulate/s.cpp": '#include "emulator/e.hpp"\n'}
        self.bad(self.check, files, "simulate may not use emulator")

    def test_the_emulator_uses_devices_and_no_more(self):
        self.good(self.check, header("device/soft") | {"lib/emulator/e.cpp": include("device/soft")})
        self.bad(self.check, header("schedule/run") | {"lib/emulator/e.cpp": include("schedule/run")}, "emulator may not use schedule")

    def test_the_rooms_of_the_emulator_have_an_order(self):
        files = {"lib/emulator/node/n.hpp": '#include "../queues/q.hpp"\n', "lib/emulator/queues/q.hpp": ""}
        self.good(self.check, files)
        self.bad(self.check, files | {"lib/emulator/queues/s.cpp": '#include "../node/n.hpp"\n'}, "emulator/queues may not use emulator/node")

    def test_clients_use_modules(self):
        private = {"lib/draw/curves.hpp": ""}
        for room in set(hygiene.CLIENTS) - hygiene.PUBLIC_ALONE:
            with self.subTest(room):
                self.good(self.check, header("check/a") | private | {f"{room}/b.cpp": include("check/a") + '#include "draw/curves.hpp"\n'})

    def test_clients_have_an_order(self):
        rooms = list(hygiene.CLIENTS)
        for number, (room, others) in enumerate(hygiene.CLIENTS.items()):
            self.assertEqual(set(others) & set(rooms[number:]), set(), room)

    def test_modules_use_no_client(self):
        for room in hygiene.CLIENTS:
            with self.subTest(room):
                files = {f"{room}/b.hpp": "", "lib/check/a.cpp": f'#include "{room}/b.hpp"\n'}
                self.bad(self.check, files, f"check may not use {room}")

    def test_clients_use_each_other_as_listed(self):
        self.good(self.check, {"tools/verbs/a.cpp": '#include "perf/b.hpp"\n', "tools/perf/b.hpp": '#include "must.hpp"\n', "tools/must.hpp": ""})
        for room, target, other in (
            ("tools", "examples/support.hpp", "examples"), ("examples", "../tools/must.hpp", "tools"), ("examples/kernels", "perf/b.hpp", "tools/perf"),
            ("tools", "perf/b.hpp", "tools/perf"), ("tools/json", "../exit.hpp", "tools"), ("tools/perf", "fetch/b.hpp", "tools/fetch"),
            ("bench", "perf/b.hpp", "tools/perf"), ("bench", "../tests/emulator/b.hpp", "tests/emulator"), ("python", "must.hpp", "tools"),
            ("collectives", "integration/client/b.hpp", "integration/client"), ("integration/runtime", "collectives/b.hpp", "collectives"),
            ("python", "sdma/client.h", "integration/client"), ("tools/contact", "emulator/b.hpp", "emulator"), ("bench", "litmus/b.hpp", "litmus"),
        ):  # fmt: skip
            with self.subTest(f"{room} {target}"):
                files = {"examples/support.hpp": "", "tools/must.hpp": "", "tools/exit.hpp": "", "tools/perf/b.hpp": "", "tools/fetch/b.hpp": "",
                         "tests/emulator/b.hpp": "", "integration/client/b.hpp": "", "collectives/b.hpp": "", "include/sdma/client.h": "",
                         "lib/emulator/b.hpp": "", "lib/litmus/b.hpp": ""}  # fmt: skip
                self.bad(self.check, files | {f"{room}/a.cpp": f'#include "{target}"\n'}, f"{room} may not use {other}")

    def test_examples_and_others_include_what_is_installed(self):
        for room in ("collectives", "examples", "integration/client", "integration/runtime", "share/sdma/kernels"):
            with self.subTest(room):
                files = {"lib/draw/curves.hpp": "", f"{room}/a.cpp": '#include "draw/curves.hpp"\n'}
                self.bad(self.check, files, f"{room} may use no header that is not installed")


class Alone(Tree):
    check = staticmethod(hygiene.alone)

    def both(self, verdict, files, *more):
        for compiler in COMPILERS:
            verdict(self.check, files, *more, compiler)

    def test_complete(self):
        self.both(self.good, header("core/a", "#include <cstdint>\ninline std::uint32_t one() { return 1; }\n"))

    def test_leans_on_its_includer(self):
        self.both(self.bad, header("core/a", "inline std::uint32_t one() { return 1; }\n"), "core/a.hpp:1: alone")

    def test_throws_where_it_may_not(self):
        self.both(self.bad, header("core/a", "inline void f() { throw 1; }\n"), "core/a.hpp:1: alone")

    def test_throws_where_it_may(self):
        self.both(self.good, header("stream/text", "inline void f() { throw 1; }\n"))

    def test_warns(self):
        self.both(self.bad, header("stream/text", "inline short f(int i) { return i; }\n"), "text.hpp:1: alone")

    def test_every_compiler_sees_every_header(self):
        files = header("core/a") | header("stream/b", "#ifdef __clang__\n#error two\n#endif\n")
        if len(COMPILERS) == 2:
            for compilers in (COMPILERS, COMPILERS[::-1]):
                self.bad(self.check, files, "stream/b.hpp:1: ", *compilers)

    def test_nothing_compiled(self):
        self.bad(self.check, header("core/a"), "nothing to compile")


class Modules(Tree):
    """One run of clang decides as a compile per header does, also if another header includes what is missing."""

    VECTOR = header("core/a", "#include <vector>\ninline std::vector<int> a() { return {}; }\n")

    def complete(self, root):
        own = {str(path): root / path for path in hygiene.files(root, "include")}
        return [str(modules.complete(MODULES, [f"-I{root / 'include'}"], own, {"cstdint", "string", "string_view", "vector"}))]

    def decided(self, verdict, files):
        if not MODULES:
            self.skipTest("no clang reads this library as modules")
        self.assertEqual(self.run_check(self.complete, files), [str(verdict)])

    def test_complete(self):
        text = include("core/a") + "#include <cstdint>\n#include <string>\ninline std::vector<std::uint32_t> b(std::string) { return {}; }\n"
        self.decided(True, self.VECTOR | header("core/b", text))

    def test_leans(self):
        for text in (
            "inline std::vector<int> b() { return {}; }", "inline auto b() { return a(); }", "#include <string>\ninline auto b() { return a(); }",
            # These are declared by what it includes, and not defined.
            "#include <string_view>\ninline std::string b() { return {}; }", include("core/c") + "inline int b(C c) { return c.x; }",
            "#include <string_view>\ninline std::size_t b(const std::string& s) { return s.size(); }",
            "inline int b(int x) { assert(x); return MACRO; }",
        ):
            with self.subTest(text):
                rest = header("core/c", "struct C;\n") | header("core/cc", "#include <cassert>\n#define MACRO 1\nstruct C { int x; };\n")
                self.decided(False, self.VECTOR | rest | header("core/d", text + "\n"))


class Units(Tree):
    """A build of two sources in one group, with each compiler, and with a clang that reads modules."""

    HEADER = header("core/a", "#include <string>\ninline std::string a() { return {}; }\n")
    LEANS = "std::string b(); namespace { int same; } int c() { return same; }\n"

    def check(self, root, *compilers):
        build, sources = root / "build", [root / path for path in hygiene.files(root, "lib")]
        (build / "meson-info").mkdir(parents=True)
        (build / "x-unity0.cpp").write_text("".join(f"#include<{path}>\n" for path in sources))
        made = {"generated_sources": [str(build / "x-unity0.cpp")], "parameters": ["-std=c++20", f"-I{root / 'include'}", "-O2"]}
        (build / "meson-info" / "intro-targets.json").write_text(json.dumps([{"name": "x", "target_sources": [made]}]))
        return units.units(root, build, *compilers)

    def each(self, verdict, files, *more):
        for compilers in ([compiler] for compiler in (*COMPILERS, MODULES) if compiler):
            verdict(self.check, self.HEADER | files, *more, *compilers)

    def test_complete(self):
        self.each(self.good, {"lib/core/a.cpp": include("core/a"), "lib/core/b.cpp": "#include <string>\n" + self.LEANS})

    def test_leans_on_its_group(self):
        self.each(self.bad, {"lib/core/a.cpp": include("core/a"), "lib/core/b.cpp": self.LEANS}, "lib/core/b.cpp:1: alone")

    def test_a_name_recurs(self):
        same = "#include <string>\n" + self.LEANS
        self.each(self.bad, {"lib/core/a.cpp": same, "lib/core/b.cpp": same.replace("c()", "d()")}, "lib/core/a.cpp:1: with 1 others")

    def test_nothing_compiled(self):
        self.bad(self.check, self.HEADER | {"lib/core/a.cpp": ""}, "nothing to compile")


class Wire(Tree):
    check = staticmethod(hygiene.wire)

    def test_each_pattern(self):
        for line in (
            "auto op = header >> 24;", "x = sub << 8;", "x <<= 16;", "x = 1u << 31u;", "auto op = header & 0xff;",
            "auto op = 0x00ff'0000u & header;", "x |= 0x08000000;", "x &= ~0xf;", "v.dwords[0]", "auto op = dw[3];",
            "auto op = view.dwords()[1];", "x = 1ull << 40 | op << 24;",
        ):
            with self.subTest(line):
                found = self.run_check(self.check, header("engine/execute", line + "\n"))
                self.assertTrue(found)

    def test_innocent(self):
        for line in (
            "// op << 24 | sub << 8", 's << "a & 0xff";', "auto half = size >> 1;", "bytes & (size - 1)",
            "constexpr auto kEnd = 0xfff;", "if (a && 0xff == b)", "dwords[i]", "array<std::uint32_t, 8>", "x = 1u << 3",
            "auto gib = std::uint64_t{1} << 30;", "std::size_t max = std::size_t{1} << 28;", "x = 4ull << 30;", "x = std::uint64_t{192} << 30;",
        ):
            with self.subTest(line):
                self.good(self.check, header("engine/execute", line + "\n"))

    def test_the_packets_themselves_may(self):
        self.good(self.check, header("packets/encode", "x = op << 24;\n") | {"lib/packets/a.cpp": "x = d[1] & 0xff;\n"})

    def test_allowed_for_a_reason(self):
        allow = "include/sdma/queue/ring.hpp :: t & 0xff :: a ticket of eight bits\n"
        self.good(self.check, header("queue/ring", "x = t & 0xff;\n") | {WIRE_ALLOW: allow})

    def test_allowed_without_a_reason(self):
        allow = "include/sdma/queue/ring.hpp :: t & 0xff ::\n"
        self.bad(self.check, header("queue/ring", "x = t & 0xff;\n") | {WIRE_ALLOW: allow}, "no reason")

    def test_allowed_and_gone(self):
        allow = "include/sdma/queue/ring.hpp :: t & 0xff :: a ticket of eight bits\n"
        self.bad(self.check, header("queue/ring") | {WIRE_ALLOW: allow}, "no longer there")

    def test_allowed_elsewhere(self):
        allow = "include/sdma/queue/ring.hpp :: t & 0xff :: a ticket of eight bits\n"
        files = header("queue/ring", "x = t & 0xff;\n") | header("queue/dump", "x = t & 0xff;\n") | {WIRE_ALLOW: allow}
        self.bad(self.check, files, "dump.hpp:3")


class Length(Tree):
    check = staticmethod(hygiene.length)

    def test_500(self):
        self.good(self.check, {"lib/core/a.cpp": "\n" * 500, "tests/core/a.cpp": "\n" * 900})

    def test_501(self):
        self.bad(self.check, {"lib/core/a.cpp": "\n" * 501}, "501 lines")
        self.bad(self.check, {"tools/main.cpp": "\n" * 501}, "501 lines")


class Columns(Tree):
    check = staticmethod(hygiene.columns)

    def test_limits(self):
        good = {"lib/a.cpp": "//" + " x" * 59 + "\n", "docs/a.md": "x " * 69 + "xx\n"}
        self.good(self.check, good | {"tests/museum/a.cpp": "\n", "docs/museum.md": "x " * 90})

    def test_code(self):
        for line in (
            "//" + " x" * 60, "  /// " + "x" * 120, "  f(" + "x, " * 40 + "x);", "int x;  // " + "x" * 120,
            'f("x", ' + "x, " * 40 + "x);", '// "' + "x" * 120 + '"', "f(" + "x, " * 40 + '"x");',
            'f("' + "x" * 110 + '", x, x, x);', "c = '\"';  // " + "x" * 110 + '"',
        ):
            for path in ("include/sdma/core/a.hpp", "tests/core/a.cpp", "integration/runtime/a.h", "python/module/a.cpp"):
                with self.subTest(line):
                    self.bad(self.check, {path: f"int y;\n{line}\nint z;\n"}, f"{path}:2: {len(line)} columns; 120 at most")

    def test_literals(self):
        for text in (
            'f(x, "' + "x" * 120 + '");', "  puts(\n" + "    " + '"' + "x" * 120 + '\\"");', 'f("x", "' + "x" * 120 + '"sv}));',
            'f(R"(x\n' + "// " + "x " * 100 + '\nx)");', 'f(R"x(' + "x " * 100 + ')" )x");', "#error " + '"' + "x" * 120 + '"',
        ):
            with self.subTest(text):
                self.good(self.check, {"lib/core/a.cpp": text + "\n"})

    def test_tables_by_hand(self):
        row = "    {1, " + "x, " * 40 + "x},"
        table = f"  // clang-format off\nint a[] = {{\n{row}\n}};\n  // clang-format on\n"
        self.good(self.check, {"lib/core/a.cpp": table})
        self.bad(self.check, {"lib/core/a.cpp": table + row}, "a.cpp:6: ")
        self.bad(self.check, {"lib/core/a.cpp": table.replace(row, row + "\n    // " + "x" * 120)}, "a.cpp:4: ")

    def test_pages(self):
        for line in ("x " * 70 + "x", "- " + "x " * 70, "see [x](" + "x" * 140 + ")", "```\nx\n```\n" + "x " * 71):
            for path in ("README.md", "docs/journeys/a.md", "tests/core/README.md", "integration/runtime/README.md"):
                with self.subTest(line):
                    self.bad(self.check, {path: line}, f"{path}:{line.count(chr(10)) + 1}: ")

    def test_what_pages_may(self):
        long = "x " * 80
        for text in (f"| {long} |", f"  | {long} |", f"```\n{long}\n```", f"- x\n\n  ```sh\n  {long}\n  ```", "- [x](" + "x" * 140 + ").", f"[{long}](x)"):
            with self.subTest(text):
                self.good(self.check, {"docs/a.md": f"x\n{text}\nx\n"})


class Words(Tree):
    check = staticmethod(hygiene.words)

    def test_left_open(self):
        for word in ("TO" "DO", "FIX" "ME", "XX" "X"):
            with self.subTest(word):
                self.bad(self.check, {"docs/a.md": f"one\n{word}: later\n"}, f"docs/a.md:2: {word}")
        self.bad(self.check, {".ci/run": "# TO" "DO\n"}, ".ci/run:1")

    def test_own_machine(self):
        for path in ("/ho" "me/ada/x", "/Us" "ers/ada", "/ro" "ot/x", "/wo" "rk/x"):
            with self.subTest(path):
                self.bad(self.check, {"scripts/a": f"cp {path} .\n"}, "scripts/a:1")

    def test_innocent(self):
        text = "/dev/kfd $HOME/x build/work/x ${root}/work/ https://example.org/home/a /tmp/x\n"
        self.good(self.check, {"a.md": text, "build/x": "TO" "DO", ".git/x": "TO" "DO", "ring.bin": text})

    def test_wording(self):
        for line in (
            "0x1002 is no multiple of 4", "sizes are no longer than 4 and are no multiples", "a fence behind the copy",
            "strict, unless given", "packets that are looked at", "it looks at the doorbell", "what the driver says of it",
            "the host is told", "whoever rings", "nobody waits", "Somebody else does", "a poll stands at the head",
            "it holds back what is later", "All that is earlier lands", "Of two fences the last wins", "| a | Of boxes |",
            "sleep, for it is idle", "one a packet", "30 ns once a batch",
        ):
            for name in ("README.md", "docs/a.md"):
                with self.subTest(line):
                    self.bad(self.check, {name: f"one\n{line}\n"}, f"{name}:2: '")

    def test_plain_wording(self):
        for line in (
            "there is no lock", "it is no longer there", "a size is no more than 4", "one per packet", "`a behind b`",
            "copy-behind-fence", "says `of what\nis earlier` that", "[x](behind.md)", "Of course", "It stands for a GPU",
            "```\nwhoever\n```", "    nobody", "the end of a run", "a wait for it",
        ):
            with self.subTest(line):
                self.good(self.check, {"docs/a.md": f"one\n{line}\n"})

    def test_wording_elsewhere(self):
        self.good(self.check, {"notes.md": "behind\n", "tests/a.cpp": "// behind\n"})

    def test_wording_of_sources(self):
        text = 'int behind;  // before\nchar c[] = "before"; /* one\nbehind */ f("behind");\n'
        found = [number for number, line in hygiene.prose_lines(pathlib.PurePath("a.hpp"), text) if "behind" in line]
        self.assertEqual(found, [3])
        self.assertEqual(len(hygiene.prose_lines(pathlib.PurePath("a.hpp"), text)), len(text.split("\n")))


class Overlay(Tree):
    check = staticmethod(hygiene.overlay)

    def test_cast(self):
        self.bad(self.check, header("packets/a", "auto* p = reinterpret_cast<Copy*>(d);\n"), "a.hpp:3: reinterpret_cast")

    def test_bit_field(self):
        self.bad(self.check, header("packets/a", "struct A {\n  std::uint32_t op : 8;\n};\n"), "a.hpp:4: a bit-field")
        self.bad(self.check, header("packets/a", "struct A {\n  unsigned op:8;\n};\n"), "a.hpp:4: a bit-field")

    def test_innocent(self):
        text = "// reinterpret_cast would not do\nfor (std::uint32_t d : dwords) f(d);\nint x = y ? 1 : 2;\n"
        self.good(self.check, header("packets/a", text) | header("device/b", "reinterpret_cast<int*>(p)\n"))


class Licence(Tree):
    check = staticmethod(hygiene.licence)
    texts = {"LICENSE": "free\n", "include/sdma/LICENSE": "free\n"}

    def test_named(self):
        line = f"// {hygiene.SPDX}\n"
        self.good(self.check, self.texts | {"include/sdma/core/a.hpp": line, "lib/a.cpp": line, "docs/a.md": "no comment\n"})

    def test_not_named(self):
        for name in ("include/sdma/core/a.hpp", "tools/a.cpp", "lib/meson.build", "lib/trace/page/body.html"):
            with self.subTest(name):
                self.bad(self.check, self.texts | {name: "text\n"}, f"{name}:1: has no line SPDX")
        self.bad(self.check, self.texts | {"scripts/a": "#!/bin/sh\n"}, "scripts/a:1: has no line SPDX")

    def test_text_of_the_licence(self):
        for texts in ({"LICENSE": "free\n"}, self.texts | {"include/sdma/LICENSE": "other\n"}):
            self.bad(self.check, texts, "differs from LICENSE")


class Version(Tree):
    check = staticmethod(hygiene.version)
    texts = {
        "meson.build": "project('sdma',\n  version: '1.2.3',\n)\nreleased = true\n",
        "include/sdma/core/version.hpp": '#define SDMA_VERSION_STRING "1.2.3"\n',
        "CHANGELOG.md": "# Changelog\n\n## [1.2.3] - 2030-01-01\n\n## [1.2.2]\n",
        "debian/changelog": "sdma (1.2.3) unstable; urgency=medium\n",
        "CITATION.cff": "cff-version: 1.2.0\nversion: 1.2.3\n",
        "share/ci/github.yml": "env:\n  SDMA_TAG: v1.2.3\n",
    }
    lists = {"tests/stability/names.txt": "# of 1.2.3\n", "tests/stability/layouts.txt": "# of 1.2.3, inline namespace v1\n"}

    def test_one(self):
        self.good(self.check, self.texts)

    def test_several(self):
        for name, text in list(self.texts.items())[1:]:
            with self.subTest(name):
                self.bad(self.check, self.texts | {name: text.replace("1.2.3", "1.2.4")}, f"{name}:1: version 1.2.4, but meson.build has 1.2.3")

    def test_in_development(self):
        yet = {
            "meson.build": self.texts["meson.build"].replace("true", "false"),
            "CHANGELOG.md": "# Changelog\n\n## [1.2.3] - unreleased\n\n## [1.2.2] - 2030-01-01\n",
            "debian/changelog": "sdma (1.2.3~dev) unstable; urgency=medium\n",
        }
        self.good(self.check, self.texts | yet)
        for name in ("CHANGELOG.md", "debian/changelog"):
            with self.subTest(name):
                self.bad(self.check, self.texts | yet | {name: self.texts[name]}, f"{name}:1: says that 1.2.3 is released; meson.build says otherwise")
                self.bad(self.check, self.texts | {name: yet[name]}, f"{name}:1: says that 1.2.3 is not released; meson.build says otherwise")

    def test_last_release(self):
        self.good(self.check, self.texts | self.lists)
        for name, text in self.lists.items():
            with self.subTest(name):
                before = {name: text.replace("1.2.3", "1.2.2")}
                self.bad(self.check, self.texts | self.lists | before, f"{name}:1: says that 1.2.3 is not released; meson.build says otherwise")

    def test_none(self):
        self.bad(self.check, self.texts | {"debian/changelog": ""}, "debian/changelog:1: has no version")


class Requirements(Tree):
    check = staticmethod(hygiene.requirements)
    texts = {
        "debian/control": "Build-Depends:\n libfmt-dev (>= 9),\n libsqlite3-dev (>= 3.37),\n meson (>= 1.0),\n pybind11-dev (>= 2.10),\n python3-dev\n",
        "pyproject.toml": 'requires = ["meson-python>=0.12", "pybind11>=2.10"]\n',
        "share/cmake/sdmaConfig.cmake.in": "find_dependency(fmt 9)\n",
        "README.md": "It needs fmt 9 and nlohmann-json 3.11.\n",
        "meson.build": "meson_version: '>=1.0'\nfmt = dependency('fmt', version: '>=9', required: false)\nrequires: ['fmt >= 9']\n",
        "tests/fuzz/meson.build": "dependency('sqlite3', version: '>=3.37')\n",
        "build-asan/copy/meson.build": "dependency('fmt', version: '>=8')\n",
    }

    def test_one(self):
        self.good(self.check, self.texts)

    def test_several(self):
        for name, old, new in (("pyproject.toml", "pybind11>=2.10", "pybind11>=2.13"), ("README.md", "fmt 9", "fmt 10"), ("meson.build", "fmt >= 9", "fmt >= 10"),
                               ("share/cmake/sdmaConfig.cmake.in", "fmt 9", "fmt 9.1"), ("tests/fuzz/meson.build", "3.37", "3.40"),
                               ("meson.build", "meson_version: '>=1.0'", "meson_version: '>=1.1'")):  # fmt: skip
            with self.subTest(name):
                self.bad(self.check, self.texts | {name: self.texts[name].replace(old, new)}, "but debian/control:")

    def test_none(self):
        self.bad(self.check, self.texts | {"README.md": ""}, "no version of nlohmann-json was found")


class Paragraph(Tree):
    check = staticmethod(hygiene.paragraph)

    def test_said(self):
        self.good(self.check, header("core/a"))

    def test_nothing_said(self):
        for text in ("#pragma once\nint x;\n", "", "#pragma once\n// core\nint x;\n", "#pragma once\nint x;\n" + GOOD):
            with self.subTest(text):
                self.bad(self.check, {"include/sdma/core/a.hpp": text}, "no paragraph")


class Waits(Tree):
    check = staticmethod(hygiene.waits)
    answer = {"lib/device/shared_node.hpp": "auto d = Deadline::in(share::kAnswer);\n"}

    def test_callers(self):
        text = "run(Deadline::in(options.limit));\nDeadline deadline = Deadline::in(std::chrono::minutes(10));\n// Deadline::in(1s)\n"
        self.good(self.check, header("core/a", text + "std::chrono::nanoseconds limit{};\n"))

    def test_own(self):
        for text in ("wait(Deadline::in(10s));", "wait(Deadline::in(std::chrono::seconds(10)));", "wait(Deadline::in(kLong));"):
            with self.subTest(text):
                self.bad(self.check, {"lib/core/a.cpp": text}, "lib/core/a.cpp:1: ends at ")

    def test_named(self):
        manual = "include/sdma/device/memory.hpp"
        self.good(self.check, self.answer | {manual: "// waits at most ten seconds\n"})
        self.bad(self.check, self.answer | {manual: "// waits\n"}, f"{manual}:1: does not say that lib/device/shared_node.hpp waits")
        self.bad(self.check, {"lib/device/shared_node.hpp": ""}, "does not end at share::kAnswer")

    def test_timeout(self):
        self.bad(self.check, header("core/a", "std::chrono::nanoseconds exchange_timeout = d;\n"), "a timeout")
        self.good(self.check, {"lib/core/a.hpp": "std::chrono::nanoseconds timeout{};\n"})


class Drivers(Tree):
    check = staticmethod(hygiene.drivers)
    SAID = "- Tests: the ring.\n- Driver: `tests/support/cases.py` and `one.py`.\n- Run: `meson test --suite ring`\n"
    TREE = {"tests/support/cases.py": "", "tests/support/README.md": SAID.replace("ring`", "support`"),
            "tests/ring/one.py": "", "tests/support/one.py": ""}  # fmt: skip

    def test_said(self):
        self.good(self.check, self.TREE | {"tests/ring/README.md": self.SAID})

    def test_a_long_item_goes_on(self):
        self.good(self.check, self.TREE | {"tests/ring/README.md": self.SAID.replace("and `one", "and\n  `one")})
        self.bad(self.check, self.TREE | {"tests/ring/README.md": self.SAID.replace("and `one", "and\n  `two")}, "`two.py` is gone")

    def test_suite_of_another_name(self):
        said = {"tests/ring/README.md": self.SAID.replace("--suite ring", "--suite queue")}
        self.good(self.check, self.TREE | said | {"tests/ring/meson.build": "test('a', suite: 'queue')"})
        self.bad(self.check, self.TREE | said, "no suite queue")

    def test_nothing_said(self):
        self.bad(self.check, self.TREE, "tests/ring/README.md: missing")

    def test_more_or_less(self):
        for text in (self.SAID + "And more.\n", "- Tests: the ring.\n", self.SAID.replace("Run", "Start")):
            with self.subTest(text):
                self.bad(self.check, self.TREE | {"tests/ring/README.md": text}, "other lines")

    def test_a_driver_that_is_gone(self):
        said = {"tests/ring/README.md": self.SAID.replace("one.py", "two.py")}
        self.bad(self.check, self.TREE | said, "`two.py` is gone")

    def test_no_tests_there(self):
        self.good(self.check, self.TREE | {"tests/ring/README.md": self.SAID, "tests/pch/tests.hpp": ""})


class Standard(Tree):
    FIRST = {"include/sdma/core/standard.hpp": """#pragma once
#if __cplusplus < 202002L
#error "sdma needs C++20"
#endif
"""}

    def check(self, root):
        return hygiene.standard(root, *COMPILERS[:1])

    def test_first(self):
        b = '#pragma once\n#include "sdma/core/standard.hpp"\n'
        c = '#pragma once\n#include "sdma/core/b.hpp"\n#include <vector>\n'
        self.good(self.check, self.FIRST | {"include/sdma/core/b.hpp": b, "include/sdma/core/c.hpp": c})

    def test_late(self):
        late = '#pragma once\n#include <vector>\n#include "sdma/core/standard.hpp"\n'
        self.bad(self.check, self.FIRST | {"include/sdma/core/b.hpp": late}, "does not begin with")

    def test_code_before_it(self):
        early = '#pragma once\nconcept A = true;\n#include "sdma/core/standard.hpp"\n'
        self.bad(self.check, self.FIRST | {"include/sdma/core/b.hpp": early}, "does not begin with")

    def test_more_errors(self):
        # After the sentence, the compiler goes on and reports what only the newer standard has.
        more = '#pragma once\n#include "sdma/core/standard.hpp"\nint a = nothing;\nint b = nothing;\n'
        self.bad(self.check, self.FIRST | {"include/sdma/core/b.hpp": more}, "as C++17")


class Everything(Tree):
    PAGE = {"docs/embedding.md": f"clang under `{' '.join(hygiene.EVERYTHING)}`.\n"}

    def check(self, root):
        return hygiene.everything(root, *COMPILERS)

    def test_clean(self):
        self.good(self.check, self.PAGE | {"include/sdma/core/a.hpp": "#pragma once\nstruct A {\n  int a{};\n};\n"})

    def test_a_warning(self):
        if not any("clang" in compiler for compiler in COMPILERS):
            self.skipTest("no clang")
        narrow = "#pragma once\ninline int f(unsigned a) { return a; }\n"
        self.bad(self.check, self.PAGE | {"include/sdma/core/a.hpp": narrow}, "changes signedness")

    def test_flags_of_the_page(self):
        self.bad(self.check, {"docs/embedding.md": "clang\n", "include/sdma/core/a.hpp": "#pragma once\n"}, "does not give these flags")


class Attributes(Tree):
    check = staticmethod(hygiene.attributes)

    def test_own_words(self):
        for word in ("[[gnu::cold]]", "__attribute__((cold))", "__builtin_trap()", "__declspec(noinline)", "_mm_pause()"):
            with self.subTest(word):
                self.bad(self.check, header("core/a", f"{word};\n"), "give it a macro")

    def test_standard_words(self):
        self.good(self.check, header("core/a", "[[nodiscard]] int f();\n// __builtin_trap() in a comment\n"))
        self.good(self.check, header("core/compiler", "[[gnu::cold]] int f();\n"))


class Ranges(Tree):
    check = staticmethod(hygiene.ranges)

    def test_ranges(self):
        self.bad(self.check, {"lib/core/a.cpp": "void f() { std::ranges::copy(a, b); }\n"}, "takes iterators")
        self.bad(self.check, header("core/a", "auto v = std::views::iota(1);\n"), "takes iterators")
        self.good(self.check, {"lib/core/a.cpp": "// std::ranges::copy\nvoid f() { std::copy(a, b, c); }\n"})


class Weight(Tree):
    def check(self, root):
        return hygiene.weight(root, "g++")

    def test_light_and_heavy(self):
        self.good(self.check, header("queue/ring", "#include <vector>\nint a;\n"))
        heavy = "template <int N> struct A { static constexpr int v = A<N - 1>::v; };\n"
        heavy += "template <> struct A<0> { static constexpr int v = 0; };\n"
        heavy += "".join(f"template <> struct A<{1000 * n}> {{ static constexpr int v = {n}; }};\n" for n in range(1, 40))
        heavy += "".join(f"static_assert(A<{1000 * n + 800}>::v == {n});\n" for n in range(40))
        self.bad(self.check, header("queue/ring", heavy), "MB for it")


class Paths(Tree):
    check = staticmethod(hygiene.paths)
    TREE = {"lib/core/a.cpp": "", "lib/core/b.cpp": "", "tests/README.md": "", "docs/b.md": "", "lib/core/gen.hpp.in": ""}

    def test_there(self):
        for line in (
            "`lib/core/a.cpp`", "`lib/core/`", "`lib/core/{a,b}.cpp`", "`lib/core/*.cpp`", "`tests/README.md`", "[b](b.md#x)",
            "`lib/ROOM/FILE.cpp`", "[x](https://example.org/a) `core/a.cpp` lib/gone", "```\nlib/gone `lib/gone`\n```",
            "`meson test lib/gone`", "`lib/core/a.cpp --all`", "[top](#words)",
        ):
            with self.subTest(line):
                self.good(self.check, self.TREE | {"docs/a.md": f"{line}\n"})

    def test_gone(self):
        for line in (
            "`lib/core/c.cpp`", "see `lib/gone`.", "`lib/core/{a,c}.cpp`", "`lib/core/*.hpp`", "`tests/ROOM/x.py`", "[c](c.md)",
            "`scripts/gone --all`", "[b](../b.md)",
        ):
            for page in ("README.md", "CONTRIBUTING.md", "docs/a.md"):
                with self.subTest(line):
                    self.bad(self.check, self.TREE | {page: f"one\n{line}\n"}, f"{page}:2: ")

    def test_elsewhere(self):
        self.good(self.check, {"CHANGELOG.md": "`lib/gone.cpp`\n", "tests/README.md": "`lib/gone.cpp`\n"})


class Index(Tree):
    check = staticmethod(hygiene.index)
    LINES = {"docs/README.md": "- [A](a.md): what a is for\n- [B](journeys/b.md): what b\n  is for\n", "docs/a.md": "", "docs/journeys/b.md": ""}

    def test_listed(self):
        self.good(self.check, self.LINES)

    def test_forgotten(self):
        self.bad(self.check, self.LINES | {"docs/c.md": "see [c](c.md)\n"}, "does not list docs/c.md")
        self.bad(self.check, self.LINES | {"docs/journeys/a.md": ""}, "does not list docs/journeys/a.md")
        self.bad(self.check, {"docs/a.md": ""}, "does not list docs/a.md")

    def test_nothing_said(self):
        for line in ("- [A](a.md)\n", "- [A](a.md): \n", "Read [A](a.md): it is short.\n", "- [A](a.md#b): the end of a\n"):
            with self.subTest(line):
                self.bad(self.check, {"docs/README.md": line, "docs/a.md": ""}, "does not list docs/a.md")


class History(Tree):
    check = staticmethod(hygiene.history)
    LAST, LONG = "## [0.2.0] - 2026-11-23\n\n### Added\n\n- A line.\n\n", "### Added\n\n- A line.\n"
    NEXT = "# Changelog\n\n## [0.3.0] - unreleased\n\n### Added\n\n- A line.\n\n"

    def test_one_paragraph(self):
        for before in ("", "## [0.1.0]\n\nThe first\nversion.\n", "## [0.1.1]\n\nRepairs.\n\n## [0.1.0] - 2026-01-01\n\nThe first.\n"):
            with self.subTest(before):
                self.good(self.check, {"CHANGELOG.md": self.NEXT + self.LAST + before})

    def test_details(self):
        self.bad(self.check, {"CHANGELOG.md": self.NEXT + self.LAST + "## [0.1.0]\n\n" + self.LONG}, "[0.1.0]: more than one")
        released = self.NEXT.replace("unreleased", "2027-01-01")
        self.bad(self.check, {"CHANGELOG.md": released + self.LAST + "## [0.1.0]\n\nThe first.\n"}, "[0.2.0] - 2026-11-23: more than one")


class FileMap(Tree):
    check = staticmethod(file_map.file_map)
    PAGE = {"docs/files.md": f"# Files\n\n{file_map.MARKER}"}
    MADE = "\n## lib/queue\n\n| file | what it does |\n|---|---|\n"
    SAID = "// SPDX-License-Identifier: MIT\n#pragma once\n// Splits\n// rings: a* `b*`. Internal.\n//\n//   split(ring);\n"

    def page(self, text):
        return {"docs/files.md": self.PAGE["docs/files.md"] + text}

    def test_current(self):
        self.good(self.check, self.PAGE)
        rows = "| `split.{hpp,cpp}` | Splits rings: a\\* `b*`. |\n"
        self.good(self.check, {"lib/queue/split.hpp": self.SAID, "lib/queue/split.cpp": "int x;\n"} | self.page(self.MADE + rows))

    def test_public_header_speaks(self):
        self.good(self.check, header("queue/ring") | {"lib/queue/ring.cpp": "int x;\n"} | self.PAGE)
        self.bad(self.check, header("queue/ring") | {"lib/queue/soft/ring.cpp": self.SAID} | self.PAGE, "docs/files.md:4: is out of date")

    def test_out_of_date(self):
        files = {"lib/queue/split.hpp": self.SAID}
        self.bad(self.check, files | self.page(self.MADE + "| `split.hpp` | Splits queues. |\n"), "docs/files.md:9: is out of date")
        self.bad(self.check, files | self.page(self.MADE), "docs/files.md:9: is out of date")
        self.bad(self.check, self.page(self.MADE), "docs/files.md:4: is out of date")
        self.bad(self.check, {"docs/files.md": "# Files\n"}, "has no line <!--")

    def test_nothing_said(self):
        for text in ("int x;  // A word about x.\n", "#include <a>\nint x;\n// Later, a word.\n", "// Split.\n", "// no end\n", "//\n// Late.\n"):
            with self.subTest(text):
                self.bad(self.check, {"lib/queue/split.cpp": text} | self.page(self.MADE + "| `split.cpp` |  |\n"), "split.cpp:1: begins with no comment")

    def test_sentences(self):
        for said, first in (
            ("What may happen:\n//\n//   x()", "What may happen."), ("The add_32 ... add_64 codes. More.", "The add_32 ... add_64 codes."),
            ("Rules. rules.cpp checks them.", "Rules."), ("Is it there? Internal.", "Is it there?"), ("Version 2.31 or newer.", "Version 2.31 or newer."),
        ):
            with self.subTest(said):
                self.assertEqual(file_map.sentence(f"// {said}\n"), first if " " in first else "")

    def test_order_of_modules_and_writing(self):
        texts = {"lib/queue/a.cpp": self.SAID, "lib/core/b.cpp": self.SAID, "lib/pch/c.hpp": self.SAID} | self.PAGE

        def written(root):
            file_map.write(root)
            return file_map.file_map(root) or re.findall(r"## (.*)", (root / file_map.PAGE).read_text(encoding="utf-8"))

        self.assertEqual(self.run_check(written, texts), ["lib/core", "lib/queue", "lib/pch"])


class Sources(Tree):
    check = staticmethod(hygiene.sources)

    def test_named(self):
        for name, build in (
            ("lib/core/a.cpp", {"lib/core/meson.build": "files('a.cpp')"}), ("tests/x/a.cpp", {"tests/meson.build": "'x': ['a']"}),
            ("lib/device/kfd/a.cpp", {"lib/device/meson.build": "files('kfd/a.cpp')"}),
        ):
            with self.subTest(name):
                self.good(self.check, {name: ""} | build)

    def test_forgotten(self):
        for build in ({}, {"lib/core/meson.build": "files('ba.cpp', 'a.hpp')"}, {"lib/sync/meson.build": "files('a.cpp')"}):
            with self.subTest(build):
                self.bad(self.check, {"lib/core/a.cpp": ""} | build, "lib/core/a.cpp:1: no meson.build")


class Exports(Tree):
    check = staticmethod(hygiene.exports)

    def library(self, text):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        name = pathlib.Path(folder.name) / "libx.so"
        subprocess.run([COMPILERS[0], "-shared", "-fPIC", "-x", "c++", "-", "-o", name], input=text, text=True, check=True)
        return str(name)

    def test_own(self):
        template = "template <class T> T twice(T x) { return x + x; }"
        self.good(self.check, {}, self.library(template + " namespace sdma { int x; int f() { return twice(x); } }"))

    def test_stray(self):
        for stray in ("int x;", "int f() { return 1; }", 'extern "C" void f() {}', "extern const int x = 1;"):
            with self.subTest(stray):
                self.bad(self.check, {}, "which is not in sdma", self.library("namespace sdma { int y; } " + stray))

    def test_nothing(self):
        self.bad(self.check, {}, "no symbol", self.library(""))


if __name__ == "__main__":
    if "--" not in sys.argv or sys.argv[1] == "--":
        sys.exit(__doc__)
    end = sys.argv.index("--")
    COMPILERS, MODULES = sys.argv[1:end], (sys.argv[end + 1 :] or [""])[0]
    unittest.main(argv=sys.argv[:1])
