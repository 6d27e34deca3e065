#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Headers of two versions in one process, each with a ring of its own: neither disturbs the other.

  two_versions.py INCLUDE COMPILER...

The other version is a copy of the headers with another inline namespace, in which RingMemory, Ring and Fence have other layouts: as a program
that was built with another release. Each compiler links both into one program, in both orders and at three levels of optimisation, and
makes a shared object of each with default visibility, which one program loads. No symbol of one object may be one of the other.
"""
import itertools
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

PART = """
#include "sdma/sdma.hpp"
#include "sdma/stream/reader.hpp"
#include "sdma/stream/frame.hpp"
#include <chrono>
#include <cstdio>
using namespace sdma;
alignas(256) static std::uint32_t dwords[1024];
alignas(64) static std::uint64_t read_pointer[2], write_pointer, doorbell, word;
int NAME() {
  auto* ring = new Ring<Producers::many>(RingMemory{
      .dwords = dwords, .rptr = read_pointer, .wptr = &write_pointer, .doorbell = &doorbell, .caching = Caching::write_back});
  const Errc e = ring->submit(Fence{.addr = GpuVa{0x1000}, .value = 7});
  Writer writer{std::span(dwords).subspan(512)};
  const Errc copied = writer.copy({.src = GpuVa{0x1000}, .dst = GpuVa{0x2000}, .bytes = std::uint64_t{1} << 31});
  int packets = 0;
  for (Reader reader{writer.written()}; reader; ++packets)
    if (!reader.next().is<CopyLinear>()) packets = -100;
  const bool waited = wait(Signal{.word = &word, .va = GpuVa{}}, Compare::ge, 1, Deadline::in(std::chrono::milliseconds(1)), *ring).has_value();
  std::printf("%s: %d %d, wptr %u, doorbell %u, %d packets\\n", NAMED, int(e), int(copied), unsigned(write_pointer), unsigned(doorbell), packets);
  delete ring;
  return e != Errc::ok || copied != Errc::ok || write_pointer != 16 || doorbell != 16 || packets != 3 || waited;
}
"""
MAIN = "int use_this(); int use_other(); int main() { const int a = use_other(), b = use_this(); return a * 2 + b; }\n"
# In the other version, before the first member.
GROWN = {"struct RingMemory {": "std::uint64_t one_more{};", "class Ring {": "std::uint64_t one_more_{};"}


def other_version(include, to):
    """The other version's headers, and its inline namespace."""
    shutil.copytree(include, to)
    changed = set()
    for header in to.rglob("*.hpp"):
        text = header.read_text("utf-8")
        text = re.sub(r"\bv0_\d+\b|\bv[1-9]\d*\b(?= \{)", "v9", text) if "inline namespace" in text else text
        for before, member in GROWN.items():
            if before in text:
                changed.add(before)
                text = text.replace(before, f"{before}\n  {member}", 1)
        header.write_text(text, "utf-8")
    if changed != set(GROWN):
        sys.exit(f"the headers have no {sorted(set(GROWN) - changed)}: nothing would grow")


def run(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        return f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stdout}{done.stderr}"
    return ""


def symbols(file):
    """What other objects see of it and that is ours."""
    said = subprocess.run(["nm", "--defined-only", "--extern-only", "--format=posix", file], capture_output=True, text=True, check=True).stdout
    return {line.split()[0] for line in said.split("\n") if "4sdma" in line}


def main(include, *compilers):
    bad, programs = [], 0
    with tempfile.TemporaryDirectory() as work:
        work = pathlib.Path(work)
        other_version(include, work / "other")
        (work / "part.inc").write_text(PART)
        (work / "main.cpp").write_text(MAIN)
        parts = {"this": include, "other": work / "other"}
        for name in parts:
            (work / f"{name}.cpp").write_text(f'#define NAME use_{name}\n#define NAMED "{name}"\n#include "part.inc"\n')
        for compiler, level in itertools.product(compilers, ("-O0", "-O1", "-O2")):
            options = [compiler, "-std=c++20", level, "-fPIC"]
            objects = {name: work / f"{name}.o" for name in parts}
            failed = [run(*options, f"-I{headers}", "-c", work / f"{name}.cpp", "-o", objects[name]) for name, headers in parts.items()]
            failed.append(run(*options, "-c", work / "main.cpp", "-o", work / "main.o"))
            if any(failed):
                sys.exit("".join(failed))
            if common := symbols(objects["this"]) & symbols(objects["other"]):
                bad.append(f"{compiler} {level}: {len(common)} symbols are those of both versions: {sorted(common)[:5]}")
            shared = {name: work / f"lib{name}.so" for name in parts}
            for name in parts:
                bad += filter(None, [run(compiler, "-shared", objects[name], "-o", shared[name])])
            for order in itertools.permutations(parts):
                for what in (objects, shared):
                    program = work / "program"
                    linked = run(compiler, work / "main.o", *(what[name] for name in order), f"-Wl,-rpath,{work}", "-o", program)
                    programs += 1
                    if said := linked or run(program):
                        bad.append(f"{compiler} {level}, {' then '.join(order)}, {'objects' if what is objects else 'shared objects'}: {said}")
    print(*bad, f"{programs} programs, {len(bad)} complaints", sep="\n")
    return 1 if bad else 0


if __name__ == "__main__":
    if len(sys.argv) < 3 or not os.path.isdir(sys.argv[1]):
        sys.exit(__doc__)
    sys.exit(main(pathlib.Path(sys.argv[1]).resolve(), *sys.argv[2:]))
