#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compiles the headers as device code, without a toolkit, and reads the assembly.

  device_code.py COMPILER ROOT TARGET [--print]      exit code 77: this compiler does not know the target

COMPILER is a clang; TARGET is a GPU (gfx942, sm_90). --print: the numbers, too. What must hold:

  - what a kernel may use compiles, and loads no table of a packet's description;
  - encoding takes at most 1.2 times the instructions of the same stores by hand;
  - on an AMD GPU, for flags and slots with each level of optimisation: a write-back of L2 is followed by the wait for it, before any other
    access to memory, branch or call. The stores that a write-back is for come later: what they announce is there;
  - kernels that store a flag or publish a slot write back once, and call nothing;
  - a put takes at most 1.5 (one producer) or 2.5 times (many) the instructions of one by hand, calls nothing, and has no
    stack (bench/put.hip; of the newest compiler).
"""
import pathlib
import re
import subprocess
import sys

ENCODING = 1.2  # times the instructions by hand
PUTS = {"one": 1.5, "many": 2.5}
MOST_VGPRS = 64  # up to here, they do not limit how many waves run on a compute unit
HIP = ["-x", "hip", "--cuda-device-only", "-nogpulib", "-nogpuinc"]
# On every machine without a folder of CUDA, from which clang would take the version of PTX.
CUDA = ["-x", "cuda", "--cuda-device-only", "-nocudainc", "-nocudalib", "--cuda-path=/nonexistent", "--cuda-feature=+ptx80"]
WRITE_BACK = re.compile(r"buffer_wbl2|global_wb\b")
WAIT = re.compile(r"s_waitcnt\b.*\bvmcnt\(0\)|s_wait_storecnt (0x)?0\b")
HARMLESS = re.compile(r"s_(waitcnt|wait_\w+|nop|mov|add|and|or|sub|lshl|lshr|cselect|cmp|delay_alu|clause)|v_(mov|add|and|or|lshl|cndmask)|s_load")
CALL = re.compile(r"^\ts_swap_?pc", re.M)
COUNTED = 1  # write-backs of each kernel of signals.hip and each put, where the target has such an instruction


def assembly(compiler, root, target, source, level):
    how = [*HIP, f"--offload-arch={target}"] if target.startswith("gfx") else [*CUDA, f"--cuda-gpu-arch={target}"]
    command = [compiler, *how, "-std=c++20", level, "-DNDEBUG", "-Wall", "-Wextra", "-Werror", f"-I{root / 'include'}", "-S", source,
               "-o", "-"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0 and re.search(r"(unknown|unsupported|invalid).*(gpu|cuda|hip|target|arch|feature)", done.stderr, re.I):
        print(done.stderr.split("\n", 1)[0])
        sys.exit(77)
    if done.returncode != 0:
        sys.exit(f"{source} for {target}:\n{done.stderr[-3000:]}")
    return done.stdout


def body(text, kernel, target):
    """The assembly of one kernel; empty if there is none."""
    if target.startswith("gfx"):
        found = re.search(rf"^{kernel}:(.*?)^\.Lfunc_end", text, re.M | re.S)
    else:
        found = re.search(rf"\.entry {kernel}\(.*?\n\{{(.*?)^\}}", text, re.M | re.S)
    return found[1] if found else ""


def instructions(text, kernel, target):
    """How many instructions a kernel has."""
    pattern = r"^\t[a-z]\w+" if target.startswith("gfx") else r"^\t(?:@\S+ )?[a-z][\w.]+ ?.*;"
    return len(re.findall(pattern, body(text, kernel, target), re.M))


def metadata(text, kernel, name):
    """A number that the assembly says of a kernel, such as vgpr_count."""
    for entry in text.split("\n  - .")[1:]:
        if re.search(rf"\.name: +{kernel}$", entry, re.M):
            found = re.search(rf"\.?{name}: +(\w+)", entry)
            return found[1] if found else None
    return None


def unwaited(text):
    """The write-backs that something else follows before the wait."""
    lines = [line.split(";")[0].strip() for line in text.split("\n")]
    found = []
    for at, line in enumerate(lines):
        if not WRITE_BACK.match(line):
            continue
        after = (other for other in lines[at + 1:] if other and not other.startswith("."))
        stop = next((other for other in after if WAIT.match(other) or not HARMLESS.match(other)), "the end")
        if not WAIT.match(stop):
            found.append(f"{line} -> {stop}")
    return found


def check_signals(text, target, wrong):
    for kernel in ("set", "add", "publish_one", "publish_many", "tile_then_flag", "tile_then_word"):
        code = body(text, kernel, target)
        if not code:
            wrong.append(f"{target}: kernel {kernel} of signals.hip is not found")
        if calls := len(CALL.findall(code)):
            wrong.append(f"{target}: {kernel} calls {calls} times")
        backs = len(re.findall(rf"^\t(?:{WRITE_BACK.pattern})", code, re.M))
        if WRITE_BACK.search(text) and backs != COUNTED:
            wrong.append(f"{target}: {kernel} writes back {backs} times, and not once")


def check_puts(text, target, tells, wrong):
    for kind, most in PUTS.items():
        hand, ours = (instructions(text, f"{by}_{kind}", target) for by in ("hand", "ours"))
        code = body(text, f"ours_{kind}", target)
        stack, dynamic = (metadata(text, f"ours_{kind}", name) for name in ("private_segment_fixed_size", "uses_dynamic_stack"))
        vgprs = metadata(text, f"ours_{kind}", "vgpr_count")
        if tells:
            print(f"{target}: a put by {kind}: {ours} instructions, {vgprs} VGPRs, {stack} bytes of stack; by hand {hand} and "
                  f"{metadata(text, f'hand_{kind}', 'vgpr_count')}: {ours / max(hand, 1):.2f}")
        if hand < 50 or ours < 50 or vgprs is None or stack is None:
            wrong.append(f"{target}: kernels of put.hip are not found")
            continue
        if ours > most * hand:
            wrong.append(f"{target}: {ours} instructions for a put by {kind}, {hand} by hand: at most {most} times")
        if int(vgprs) > MOST_VGPRS:
            wrong.append(f"{target}: {vgprs} VGPRs for a put by {kind}: at most {MOST_VGPRS}")
        if stack != "0" or dynamic == "true" or CALL.search(code):
            wrong.append(f"{target}: a put by {kind} has a stack of {stack} bytes (dynamic: {dynamic}), or calls something")
        backs = len(re.findall(rf"^\t(?:{WRITE_BACK.pattern})", code, re.M))
        if WRITE_BACK.search(text) and backs != COUNTED:
            wrong.append(f"{target}: a put by {kind} writes back {backs} times, and not once")


def main(compiler, root, target, *rest):
    root = pathlib.Path(root)
    here = root / "tests/kernels"
    amd, tells = target.startswith("gfx"), "--print" in rest
    newest = not re.search(r"clang version (\d|1\d)\.", subprocess.run([compiler, "--version"], capture_output=True, text=True).stdout)
    wrong = []
    for source in [*sorted(here.glob("*.hip")), *sorted((root / "share/sdma/kernels").glob("*.hip")), root / "bench/put.hip"]:
        text = assembly(compiler, root, target, source, "-O2")
        tables = [line.strip() for line in text.split("\n") if "layout" in line]
        if tables:
            wrong.append(f"{source.name} for {target} reads the description of a packet: {tables[0][:120]}")
        levels = ("-O0", "-O1", "-O2", "-O3", "-Os") if source.name == "signals.hip" else ("-O2",)
        for level in levels if amd else ():
            code = text if level == "-O2" else assembly(compiler, root, target, source, level)
            wrong += [f"{target}, {level}, {source.name}: no wait for a write-back: {what}" for what in unwaited(code)]
        if source.name == "signals.hip" and amd:
            check_signals(text, target, wrong)
        if source.parent.name == "bench" and amd and newest:
            check_puts(text, target, tells, wrong)
        if source.name != "put.hip" or source.parent.name == "bench":
            continue
        hand, ours = (instructions(text, kernel, target) for kernel in ("by_hand", "by_headers"))
        if tells:
            print(f"{target}: {ours} instructions, {hand} by hand")
        if hand < 10 or ours < 10:
            wrong.append(f"{target}: kernels of {source.name} are not found")
        elif newest and ours > ENCODING * hand:
            wrong.append(f"{target}: {ours} instructions for a copy and a fence, {hand} by hand: at most {ENCODING} times")
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    if len(sys.argv) not in (4, 5):
        sys.exit(__doc__)
    main(*sys.argv[1:])
