#!/usr/bin/env python3
"""`sdma emulate` as a program: what it cannot run, how it ends, and what it shows. programs.py SDMA PROGRAM (lifetime)."""
import json
import os
import signal
import struct
import subprocess
import sys
import tempfile
import time

sdma, program = map(os.path.abspath, sys.argv[1:])


def emulate(*words, **more):
    return subprocess.run([sdma, "emulate", *words], capture_output=True, text=True, timeout=60, **more)


def refused(code, words, *options):
    run = emulate(*options)
    assert run.returncode == code and not run.stdout, (options, run)
    for word in words:
        assert word in run.stderr, (options, run.stderr)


def elf(bits):
    """A program that loads no libraries: a header and no program headers."""
    return b"\x7fELF" + bytes([bits // 32, 1, 1]) + bytes(9) + struct.pack("<HHI", 2, 62, 1) + bytes(40)


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    for name, data, mode in (("static", elf(64), 0o755), ("narrow", elf(32), 0o755), ("setuid", b"#!/bin/sh\n", 0o4755),
                             ("plain", b"text\n", 0o644)):
        with open(name, "wb") as f:
            f.write(data)
        os.chmod(name, mode)

    # What cannot be run, said plainly.
    refused(3, ["linked statically", "no library can be loaded"], "./static")
    refused(3, ["no 64-bit program"], "./narrow")
    refused(3, ["rights of its owner"], "./setuid")
    refused(3, ["there is no program 'no-such-program'"], "no-such-program")
    refused(3, ["there is no program './nowhere'"], "./nowhere")
    refused(3, ["cannot run './plain'", "Permission denied"], "./plain")
    for vram in ("", "0", "12Q", "-4G", "G", "1.5G", "64GB", "99999999999999999999", "4096G", "4K"):
        refused(2, ["--vram"], f"--vram={vram}", "true")
    for gpus in ("0", "9", "two"):
        refused(2, ["--gpus"], f"--gpus={gpus}", "true")
    refused(2, ["--gpu", "gfx942|gfx90a"], "--gpu=gfx900", "true")
    refused(2, ["PROGRAM"])
    refused(2, ["PROGRAM"], "--gpus=2", "--")

    # Its arguments, to the letter.
    assert emulate("--", "/bin/echo", "[a]", "--help", "--", "[b c]").stdout == "[a] --help -- [b c]\n"
    assert emulate("--gpus=2", "/bin/echo", "[a]", "--", "-n").stdout == "[a] -- -n\n"
    assert emulate("/bin/echo", "--foo", "-x", "--gpus=3").stdout == "--foo -x --gpus=3\n"
    refused(3, ["cannot write"], "--trace=/nowhere/run.jsonl", "true")

    # The tree can be copied, as a tool copies files: what is opened is what was looked at.
    run = emulate("--gpus=2", "--", "cp", "-r", "/sys/devices/virtual/kfd/kfd/topology", "tree")
    assert run.returncode == 0 and not run.stderr, run.stderr[:500]
    with open("tree/nodes/1/properties") as f:
        assert "num_sdma_xgmi_engines 14\n" in f.read()

    # How a program ends, with and without a picture to draw afterwards.
    for options in ((), ("--trace=end.json",)):
        assert emulate(*options, "--", "sh", "-c", "exit 42").returncode == 42
        assert emulate(*options, "--", "sh", "-c", "kill -SEGV $$").returncode == -signal.SIGSEGV
        assert emulate(*options, "--", "sh", "-c", "kill -KILL $$").returncode == -signal.SIGKILL
        p = subprocess.Popen([sdma, "emulate", *options, "--", program, "wait"])
        time.sleep(0.3)
        p.send_signal(signal.SIGTERM)
        assert p.wait(timeout=10) == -signal.SIGTERM
    # Its input, output and variables are the program's.
    run = emulate("--", "sh", "-c", "read x; echo $x $Y $SDMA_EMULATE_GPUS", input="in\n", env={**os.environ, "Y": "there"})
    assert run.stdout == "in there 1\n", run

    # Watched: queues, doorbells and packets, decoded, as they happen.
    run = emulate("--gpus=2", "--watch", "--", program, "copy")
    assert run.returncode == 0, run
    for word in ("gpu0", "engine 0 queue 0", "queue created, a ring of 4096 bytes", "doorbell ", "@0 copy_linear bytes=512K src=0x",
                 "@28 fence addr=0x", "done", "queue destroyed, read up to"):
        assert word in run.stderr, (word, run.stderr)

    # Followed from elsewhere while it runs, until it ends; the file is whole whenever that is.
    assert emulate("--trace=run.jsonl", "--", program, "copy").returncode == 0
    text = subprocess.run([sdma, "trace", "--format=text", "run.jsonl"], capture_output=True, text=True, timeout=60)
    follow = subprocess.run([sdma, "trace", "--follow", "run.jsonl"], capture_output=True, text=True, timeout=60)
    assert follow.returncode == 0 and follow.stdout == text.stdout and "copy_linear" in text.stdout, (text, follow)
    busy = subprocess.Popen([sdma, "emulate", "--trace=live.jsonl", "--", program, "wait"])
    time.sleep(0.2)
    live = subprocess.Popen([sdma, "trace", "--follow", "live.jsonl"], stdout=subprocess.PIPE, text=True)
    seen = ""
    while "poll_mem" not in seen:
        seen = live.stdout.readline()
        assert seen, "the view ended before the program"
    busy.kill()
    busy.wait()
    live.communicate(timeout=30)
    assert live.returncode == 0

    # A picture: a process a GPU, a thread a queue of an engine, packets as bars; also of a program that was killed.
    for how, code in (("copy", 0), ("kill", -signal.SIGKILL), ("children", 0)):
        assert emulate("--gpus=2", f"--trace={how}.json", "--", program, how).returncode == code
    for how in ("copy", "kill"):
        with open(f"{how}.json") as f:
            events = json.load(f)["traceEvents"]
        names = [e["args"]["name"] for e in events if e["name"] == "thread_name"]
        assert "engine 0 queue 0" in names, names
        assert how == "kill" or any(e["ph"] == "X" and e["name"] == "copy_linear" for e in events), events
    pictures = [f for f in os.listdir(".") if f.startswith("children.json")]
    assert len(pictures) == 4, pictures  # each child has a node of its own; the parent has none
    assert emulate("--trace=copy.html", "--", program, "copy").returncode == 0
    with open("copy.html") as f:
        assert f.read(15) == "<!doctype html>"
    assert not [f for f in os.listdir(".") if ".lines" in f]
