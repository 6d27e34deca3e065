#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What no C++ program can see of itself: the fences that publish emits, and that a doorbell is one 64-bit store.

  instructions.py INCLUDE COMPILER...     exit code 1 and a line each where it is otherwise, 77 on other machines than x86-64
"""
import platform
import re
import subprocess
import sys
import tempfile

PROGRAM = """
#include "sdma/queue/ring.hpp"
using namespace sdma;
template <Caching C> struct Fixed : order::Native {
  static void before_wptr(Caching, const std::uint32_t* last) noexcept { order::Native::before_wptr(C, last); }
  static void before_doorbell(Caching) noexcept { order::Native::before_doorbell(C); }
};
template <Producers K, Caching C> using Of = Ring<K, Fixed<C>>;
#define PUBLISH(name, K, C) \\
  extern "C" [[gnu::flatten]] void name(Of<Producers::K, Caching::C>& r, const Slot& s) { r.publish(s); }
PUBLISH(one_back, one, write_back)
PUBLISH(one_combining, one, write_combining)
PUBLISH(one_vram, one, vram)
PUBLISH(many_back, many, write_back)
PUBLISH(many_combining, many, write_combining)
"""

# What matters of an instruction, in one letter each. A store without displacement goes through a pointer: to wptr, then to
# the doorbell; those to the Ring itself have one.
LETTERS = [
    ("F", r"sfence"),
    ("S", r"mov\s+QWORD PTR \[r\w+\],r\w+$"),
    ("X", r"xchg\s.*\["),
    ("R", r"(mov|test|cmp)\s.*\bDWORD PTR \[r\w+(\+r\w+\*4-0x4)?\]"),  # the last dword of the slot, read back
    ("?", r"mov\s+(BYTE|WORD|DWORD) PTR \[r\w+\],|v?mov[a-z]*\s+(XMM|YMM)?WORD PTR \[r\w+\],"),  # a word in pieces
]
WANTED = {
    "one_back": ("^SS$", "wptr, doorbell, no fence: x86 keeps the order of stores to write-back memory"),
    "one_combining": ("^FSFS$", "a fence, wptr, a fence, the doorbell"),
    "one_vram": ("^FRSFS$", "a fence, the last dword read back, wptr, a fence, the doorbell"),
    "many_back": ("^XSSX$", "the slot, if its turn has not come; wptr, doorbell, no fence; the turn of the next"),
    "many_combining": ("^FXSFSX$", "a fence before the slot is told of, one between wptr and doorbell"),
}


def letters(lines):
    out = ""
    for line in lines:
        for letter, pattern in LETTERS:
            if re.search(pattern, line):
                out += letter
                break
    return out


def functions(compiler, include, directory):
    source, built = f"{directory}/publish.cpp", f"{directory}/publish.o"
    with open(source, "w", encoding="utf-8") as file:
        file.write(PROGRAM)
    # Clang obeys `flatten` for small functions only.
    version = subprocess.run([compiler, "--version"], check=True, capture_output=True, text=True).stdout
    inline = ["-mllvm", "-inline-threshold=10000"] if "clang" in version else []
    subprocess.run([compiler, *inline, "-std=c++20", "-O2", "-DNDEBUG", f"-I{include}", "-c", source, "-o", built], check=True)
    text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", "-M", "intel", built],
                          check=True, capture_output=True, text=True).stdout
    found, name = {}, None
    for line in text.split("\n"):
        if match := re.match(r"[0-9a-f]+ <(\w+)(\.\w+)?>:", line):
            name = None if match.group(2) else match.group(1)
            found.setdefault(name, [])
        elif name and "\t" in line:
            found[name].append(line.strip())
    return found


def main(include, *compilers):
    if platform.machine() != "x86_64":
        print("these instructions are those of x86-64")
        return 77
    bad = []
    for compiler in compilers:
        with tempfile.TemporaryDirectory() as directory:
            found = functions(compiler, include, directory)
        for name, (wanted, why) in WANTED.items():
            got = letters(found.get(name, []))
            print(f"{compiler}: {name}: {got}")
            if not re.search(wanted, got):
                bad.append(f"{compiler}: {name}: {got} and not {wanted}: {why}\n  " + "\n  ".join(found.get(name, [])))
    print(*bad, sep="\n")
    return 1 if bad else 0


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
