#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""XML of MSCCL where sdma takes a schedule: algorithms that are right are proved, run and simulated, and each mistake in one is
refuted, or refused, with its line in the XML.

  msccl.py SDMA PAGE     PAGE: docs/msccl.md, whose example is one
"""
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

from msccl_programs import GOOD, Program, allgather_pairs, allgather_ring, allreduce_pairs, allreduce_ring, alltoall, broadcast

PROVED, REFUTED, INPUT = 0, 1, 3
sdma, folder = sys.argv[1], pathlib.Path(tempfile.mkdtemp())
failures = []


def run(*words, stdin=None):
    done = subprocess.run([sdma, *map(str, words)], input=stdin, capture_output=True, text=True, timeout=120,
                          env={**os.environ, "NO_COLOR": "1"})
    return done.returncode, done.stdout, done.stderr


def expect(name, good, what):
    if not good:
        failures.append(name)
        print(f"FAILED {name}: {what}")


def write(name, text):
    path = folder / name
    path.write_text(text)
    return path


# Right ones
for name, (make, slots) in GOOD.items():
    path = write(name + ".xml", make().xml())
    given = ["--set", f"slots={slots}"] if slots else []
    for verb in (["check", "--strict"], ["run"], ["run", "--order=adversarial", "--seed=3"], ["simulate", "--no-sensitivity"],
                 ["simulate", "--no-sensitivity", "--contents", "--set", "bytes=48K"]):
        code, out, err = run(*verb, *given, path)
        expect(f"{name} {' '.join(verb)}", code == 0, f"exit {code}\n{out}{err}")
        adds = name.startswith(("allreduce", "reduce"))
        expect(f"{name} {verb[0]} names kernels", ("kernels with sums" in err) == adds, err)
    # The schedule that is printed says the same.
    code, text, _ = run("fmt", *given, path)
    expect(f"{name} fmt", code == 0 and text.startswith("sdma 1\n"), text)
    made = write(name + ".sdma", text)
    expect(f"{name} printed", run("check", "--strict", made)[0] == 0 and run("fmt", "--check", made)[0] == 0, text)
    expect(f"{name} flat", run("fmt", "--flat", *given, path)[1] == run("fmt", "--flat", made)[1], "differs")
    if not slots:
        code, out, err = run("check", "--set", "slots=3", "--assume", "poll_yields=yes", path)
        expect(f"{name} with slots", code == 0, f"exit {code}\n{out}{err}")


# Wrong ones: how a program is changed, the exit code, and what has the line.
def mutant(name, program, change, code, words, verb="check", slots=0):
    text_of = change(program)
    text = program.xml() if not isinstance(text_of, tuple) else text_of[1](program.xml())
    at = text_of[0] if isinstance(text_of, tuple) else text_of
    line = at if isinstance(at, int) else at.line
    path = write(name + ".xml", text)
    MUTANTS_BY_NAME[name] = text
    got, out, err = run(verb, *(["--set", f"slots={slots}"] if slots else []), path)
    expect(name, got == code, f"exit {got}, expected {code}\n{out}{err}")
    expect(name + " words", words in err, f"no '{words}' in\n{err}")
    expect(name + " line", f"{path}:{line}" in err or f"  {line}: " in err or f"  {line}  " in err or f"line {line}" in err,
           f"no line {line} in\n{err}")
    got, out, _ = run(verb, "--json", *(["--set", f"slots={slots}"] if slots else []), path)
    last = json.loads(out.splitlines()[-1])
    expect(name + " json", got == code and last["exit_code"] == code, out)
    # As every other finding, it has a rule and a line in SARIF.
    if verb == "check":
        log = json.loads(run("check", "--sarif", *(["--set", f"slots={slots}"] if slots else []), path)[1])["runs"][0]
        errors = [r for r in log["results"] if r["level"] == "error"]
        lines = [r["locations"][0]["physicalLocation"]["region"].get("startLine", 0) for r in errors]
        rules = {r["ruleId"] for r in errors}
        expect(name + " sarif", lines and all(1 <= n <= len(text.splitlines()) for n in lines), f"{lines}")
        expect(name + " sarif rule", rules == {"unreadable"} if code == INPUT else rules and "unreadable" not in rules, f"{rules}")
        expect(name + " sarif notes", not any(r["ruleId"] == "unreadable" for r in log["results"] if r["level"] == "note"), log["results"])
    # fmt prints nothing of what has no schedule.
    got, out, _ = run("fmt", path)
    expect(name + " fmt", got == 0 or out == "", out)


def step(program, gpu, block, n):
    return program.gpus[gpu].blocks[block].steps[n]


def put(at, **values):
    for key, value in values.items():
        setattr(at, key, value)
    return at


def algo(program, **values):
    program.algo.update(values)
    return program


def swap(program, gpu, block, a, b):
    steps = program.gpus[gpu].blocks[block].steps
    steps[a], steps[b] = steps[b], steps[a]
    return steps[a]


def no_dep(at):
    at.dep = None
    return at


def cut(program):
    return len(program.xml()[:600].split("\n")), lambda text: text[:600]


ring, pairs = allgather_ring, allgather_pairs
MUTANTS = [
    ("wrong_offset", ring(), lambda p: put(step(p, 1, 0, 0), src=("o", 0)), REFUTED, ""),
    ("wrong_target", pairs(), lambda p: put(step(p, 1, 0, 0), dst=("o", 5)), REFUTED, ""),
    ("no_dependency", ring(), lambda p: no_dep(step(p, 0, 0, 1)), REFUTED, "race"),
    ("hasdep_0", ring(), lambda p: (put(step(p, 0, 1, 0), hasdep=0), step(p, 0, 0, 1))[1], REFUTED, "hasdep=0"),
    ("swapped_steps", ring(), lambda p: swap(p, 2, 1, 0, 1), REFUTED, ""),
    ("wrong_peer", alltoall(), lambda p: put(p.gpus[0].blocks[0], send=2), REFUTED, "too"),
    ("cnt_differs", broadcast(), lambda p: put(step(p, 1, 0, 0), cnt=2), REFUTED, "cnt=2"),
    ("bounds", pairs(), lambda p: put(step(p, 0, 0, 0), dst=("o", 7), cnt=2), REFUTED, "ends outside"),
    ("unmatched_send", pairs(), lambda p: (p.gpus[1].blocks[0].steps.clear(), step(p, 0, 1, 0))[1], REFUTED, "nothing receives it"),
    ("unmatched_receive", pairs(), lambda p: (p.gpus[1].blocks[1].steps.clear(), step(p, 0, 0, 0))[1], REFUTED, "nothing sends it"),
    ("duplicate", pairs(), lambda p: put(p.gpus[0].blocks[2], chan=0), REFUTED, "on channel 0, too"),
    ("deadlock", allreduce_ring(), lambda p: step(p, 0, 0, 0), REFUTED, "deadlock"),
    ("cycle", ring(), lambda p: put(step(p, 0, 0, 0), dep=step(p, 0, 1, 2)), REFUTED, "hasdep=0"),
    ("cycle_published", ring(), lambda p: [put(step(p, g, 0, 0), dep=step(p, g, 1, 0)) for g in range(4)][0], REFUTED, "deadlock"),
    ("no_own_chunk", ring(), lambda p: (p.gpus[3].blocks.pop(), p)[1], REFUTED, "wrong-result"),
    ("added_twice", allreduce_pairs(), lambda p: put(step(p, 0, 6, 4), src=("s", 1)), REFUTED, "wrong-result"),
    ("dependency_of_nothing", ring(), lambda p: put(step(p, 0, 0, 1), dep=(1, 9)), REFUTED, "is not a step of gpu0"),
    ("dependency_of_nop", allreduce_pairs(), lambda p: put(step(p, 0, 7, 0), dep=step(p, 0, 6, 0)), REFUTED, "never announces itself"),
    ("last_nop", allreduce_pairs(), lambda p: no_dep(step(p, 0, 6, 2)) and step(p, 0, 6, 1), REFUTED, "no dependency of its own"),
    ("no_peer", ring(), lambda p: (put(p.gpus[0].blocks[1], recv=-1), step(p, 0, 1, 0))[1], REFUTED, "needs a peer"),
    ("chunks", ring(), lambda p: algo(p, nchunksperloop=5), REFUTED, "not a multiple"),
    ("more_chunks", ring(), lambda p: put(p.gpus[2], chunks=[1, 5, 0]), REFUTED, "o_chunks=5"),
    ("self", ring(), lambda p: put(p.gpus[1].blocks[0], send=1), INPUT, "is the GPU of this tb"),
    ("custom", ring(), lambda p: algo(p, coll="alltonext"), INPUT, "has no form here"),
    ("alltoallv", ring(), lambda p: algo(p, coll="alltoallv"), INPUT, "has no form here"),
    ("gpus", ring(), lambda p: algo(p, ngpus=5), INPUT, "4 gpu elements"),
    ("too_many_gpus", ring(), lambda p: algo(p, ngpus=1025), INPUT, "at most 1024"),
    ("neither", ring(), lambda p: algo(p, outofplace=0), INPUT, "no call may use"),
    ("unknown_type", ring(), lambda p: put(step(p, 2, 0, 1), kind="rrx"), INPUT, "'rrx' is not a type"),
    ("unknown_buffer", ring(), lambda p: put(step(p, 2, 0, 1), src=("x", 0)), INPUT, "is not a buffer"),
    ("channel", ring(), lambda p: put(p.gpus[2].blocks[0], chan=8), INPUT, "'chan=8'"),
    ("cut", ring(), cut, INPUT, "not well-formed"),
    ("renumbered", ring(), lambda p: (step(p, 0, 1, 1), lambda t: t.replace('<step s="1" type="r"', '<step s="2" type="r"', 1)), INPUT,
     "in the order of the file"),
    ("unknown_attribute", ring(), lambda p: (p, lambda t: t.replace(' coll=', ' colour="red" coll=', 1)), INPUT, "no attribute 'colour'"),
    ("missing_attribute", ring(), lambda p: (p, lambda t: t.replace(' proto="Simple"', "", 1)), INPUT, "needs 'proto='"),
    ("not_a_number", ring(), lambda p: (p, lambda t: t.replace('ngpus="4"', 'ngpus="4x"', 1)), INPUT, "is not a number"),
    ("unknown_element", ring(), lambda p: (p.gpus[0], lambda t: t.replace("<gpu ", "<cpu ", 1)), INPUT, "unexpected element 'cpu'"),
    ("text", ring(), lambda p: (p.gpus[0], lambda t: t.replace("<gpu ", "hello <gpu ", 1)), INPUT, "text between"),
    ("entities", ring(), lambda p: (2, lambda t: t.replace("<algo ", '<!DOCTYPE algo [<!ENTITY a "b"><!ENTITY c SYSTEM "/etc/passwd">]>\n<algo ', 1)),
     INPUT, "document type"),
]
MUTANTS_BY_NAME = {}
for name, program, change, code, words in MUTANTS:
    program.xml()  # each step has a line
    mutant(name, program, change, code, words)
mutant("too_few_slots", ring(), lambda p: p.xml() and put(step(p, 0, 0, 1), dep=None), REFUTED, "race", slots=2)

# Right as long as a send waits: with slots, the last step of gpu1 may overwrite what its first one reads.
relies = Program("broadcast", 2, 2, (2, 2, 2))
first, second = relies.gpus[0].block(send=1), relies.gpus[0].block(send=1, chan=1)
sent = first.add("s", ("i", 0))
second.add("s", ("i", 1), after=(sent,))
relies.gpus[0].block().add("cpy", ("i", 0), ("o", 0), 2)
first, second = relies.gpus[1].block(recv=0), relies.gpus[1].block(recv=0, chan=1)
read = first.add("cpy", ("o", 1), ("s", 0))
first.add("r", dst=("o", 0))
second.add("r", dst=("o", 1))
path = write("relies.xml", relies.xml())
expect("blocking", run("check", path)[0] == PROVED, "refuted")
code, _, err = run("check", "--set", "slots=1", path)
expect("not blocking", code == REFUTED and "error[race]" in err and f"{path}:{read.line}" in err or f"  {read.line}:" in err, err)

# The page
example = pathlib.Path(sys.argv[2]).read_text().split("```xml\n")[1].split("```")[0]
expect("example", run("check", "--strict", write("example.xml", example))[0] == PROVED, "refuted")
lines = example.splitlines()
lines[6] = lines[6].replace('dstoff="1"', 'dstoff="0"')
code, _, err = run("check", write("example_wrong.xml", "\n".join(lines)))
expect("example, wrong", code == REFUTED and "race" in err and "line 7 receives what line 12 sends" in err, err)

# Settings
path = write("ring.xml", ring().xml())
for words, says in ((["slots=x"], "'x' is not a number from 0 to 1024"), (["inplace=1"], "no such call may use it"), (["bytes=10"], "multiple of 16"),
                    (["chunk=4K"], "there is no param 'chunk'")):
    for verb in ("check", "run", "simulate", "fmt"):
        code, out, err = run(verb, "--set", *words, path, *(["--flat"] if verb == "fmt" else []))
        expect(f"{verb} {words}", code == INPUT and says in err, f"exit {code}\n{out}{err}")
expect("sweep", "proved for 2 of 2 values" in run("check", "--sweep", "bytes=16K,32K", path)[1], "")
expect("simulate --sweep", run("simulate", "--no-sensitivity", "--sweep", "bytes=16K..64K", path)[0] == 0, "")
for words, says in (("slots=0..3", "proved for 4 of 4 values"), ("slots=0,2000", "proved for 1 of 2 values, errors in the text for 1"),
                    ("inplace=0..1", "proved for 1 of 2 values")):  # fmt: skip
    code, out, err = run("check", "--assume", "poll_yields=yes", "--sweep", words, path)
    expect(f"check --sweep {words}", says in out, out + err)
code, out, err = run("check", "--sweep", "slots=0..1", write("unmatched.xml", MUTANTS_BY_NAME["unmatched_send"]))
expect("sweep of a wrong one", code == REFUTED, out + err)
code, out, err = run("simulate", "--no-sensitivity", "--set", "bytes=1M", "--sweep", "slots=0,1,4", path)
times = [line.split()[1] for line in out.splitlines()[1:]]
expect("simulate --sweep slots", code == 0 and len(times) == 3 and times[1] != times[0] != times[2], out + err)
for n, time in zip((0, 1, 4), times):
    expect(f"slots={n}", f" {time} us" in run("simulate", "--no-sensitivity", "--set", "bytes=1M", "--set", f"slots={n}", path)[1], time)
code, out, err = run("simulate", "--no-sensitivity", "--sweep", "slots=0,2", path, write("ring.sdma", run("fmt", path)[1]))
expect("a schedule without slots", code == INPUT and "there is no param 'slots'" in err, out + err)
expect("stdin", run("check", "-", stdin=ring().xml())[0] == 0, "")
code, out, _ = run("reduce", folder / "no_dependency.xml")
expect("reduce", code == 0 and out.count("copy_linear") in (1, 2) and "sdma 1" in out, out)
expect("explore", "leaves nothing open" in run("explore", path)[2], "")
before = path.read_text()
expect("fmt --write", run("fmt", "--write", path)[0] == INPUT and path.read_text() == before, "changed")
expect("two files", run("check", path, write("two.xml", pairs().xml()))[0] == 0, "")
code, out, _ = run("run", "--test", path, folder / "deadlock.xml")
expect("run --test", code == REFUTED and f"passed: {path}" in out, out)

# Any bytes: an error or an answer, never a crash, and nothing on standard output after an error of fmt.
chance = random.Random(7)
text = allreduce_pairs().xml().encode()
for n in range(150):
    data = bytearray(text)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(30, len(data))
        if chance.random() < 0.3:
            del data[at:at + chance.randint(1, 200)]
        else:
            data[min(at, len(data) - 1)] = chance.choice(b'0123456789-"<>/=&;osinrpc \xff')
    path = folder / "any.xml"
    path.write_bytes(bytes(data))
    code, out, err = run("fmt", path)
    expect(f"any bytes {n}", code == 0 or (code == INPUT and not out and err), f"exit {code}\n{out[:200]}{err[:400]}")

print(f"{len(failures)} failures")
sys.exit(1 if failures else 0)
