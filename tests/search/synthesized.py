#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The table of docs/explore.md: what `sdma explore --synthesize` makes for each collective, node and size.

  synthesized.py PROGRAM [--page PAGE | --bless PAGE] [--quick]

Prints the table. With --page, it has to be that of the page; --bless writes it there. --quick takes the nodes and sizes whose
schedules are made in a second each. Each schedule is also checked and simulated again, from its text, and must not be slower than the
best hand-written one. Exit code 1, with what is wrong.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

COLLECTIVES = ("all_gather", "all_to_all", "broadcast", "reduce_scatter")
SIZES = ("64K", "256M")
LONG = ("--budget", "3600s")  # no search is ended by its time, so that each has the same result on each machine
BEGIN, END = "<!-- synthesized -->\n", "<!-- end of synthesized -->\n"


def run(program, *arguments):
    done = subprocess.run([program, *arguments], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(arguments)}: exit {done.returncode}: {done.stderr}{done.stdout}")
    return done.stdout


def nodes(program, folder):
    """Names, and what --machine takes: layouts, and files that are made of them."""
    mesh = json.loads(run(program, "topology", "mesh:8", "--json"))
    between = {("gpu0", "gpu1"), ("gpu1", "gpu0")}

    def is_between(link):
        return (link["from"], link["to"]) in between

    gone = dict(mesh, name="gone", links=[link for link in mesh["links"] if not is_between(link)])
    half = dict(mesh, name="half", links=[
        dict(link, mb_per_s=link["mb_per_s"] // 2) if is_between(link) else link for link in mesh["links"]])
    shared = json.loads(run(program, "topology", "nodes:2x4", "--json"))
    shared["name"] = "shared"
    # Paths of a NIC are two for each GPU, out and in: those of an odd GPU become those of the GPU before it.
    for link in shared["links"]:
        if "shares" in link:
            link["shares"] = [path // 4 * 4 + path % 2 for path in link["shares"]]
    out = [(name, name) for name in ("mesh:8", "ring:8", "switch:16", "nodes:2x4")]
    for name, node in (("mesh:8, one link gone", gone), ("mesh:8, one link at half rate", half),
                       ("nodes:2x4, two GPUs share a NIC", shared)):
        path = folder / (node["name"] + ".json")
        path.write_text(json.dumps(node))
        out.append((name, str(path)))
    return out


def cell(program, collective, machine, size, folder, wrong):
    answer = json.loads(run(program, "explore", "--synthesize", collective, "--machine", machine, "--bytes", size, "--json", *LONG))
    path = folder / "made.sdma"
    path.write_text(answer["schedule"])
    again = json.loads(run(program, "simulate", "--machine", machine, "--no-sensitivity", "--json", str(path)))
    where = f"{collective} of {size} on {machine}"
    if not answer["hand_written"] and again["at_least"]["times"] != answer["at_least"]["times"]:
        wrong.append(f"{where}: its text takes {again['at_least']}, not {answer['at_least']}")
    subprocess.run([program, "check", "--topology", machine, str(path)], check=True, capture_output=True)
    best = answer["best_hand_written"]
    if best and answer["ns"] > best["ns"] * 1.000001:
        wrong.append(f"{where}: {answer['ns']} ns, and {best['name']} takes {best['ns']}")
    return answer


def table(program, folder, quick, wrong):
    rows = ["| collective | node | size | us | at least | times | hand-written |", "|---|---|---|---|---|---|---|"]
    for collective in COLLECTIVES:
        for name, machine in nodes(program, folder)[:2 if quick else None]:
            for size in SIZES[:1] if quick else SIZES:
                a = cell(program, collective, machine, size, folder, wrong)
                best = a["best_hand_written"]
                other = f"{best['ns'] / 1000:.1f} ({best['name']})" if best else "none fits"
                rows.append(f"| {collective} | {name} | {size} | {a['ns'] / 1000:.1f} | {a['at_least']['ns'] / 1000:.1f} "
                            f"| {a['at_least']['times']:.2f} | {other} |")
                print(rows[-1], flush=True)
    return "\n".join(rows) + "\n"


def main(arguments):
    program, quick, wrong = arguments[0], "--quick" in arguments, []
    page = next((pathlib.Path(arguments[i + 1]) for i, a in enumerate(arguments) if a in ("--page", "--bless")), None)
    with tempfile.TemporaryDirectory() as folder:
        made = table(program, pathlib.Path(folder), quick, wrong)
    if page:
        text = page.read_text()
        begin, end = text.index(BEGIN) + len(BEGIN), text.index(END)
        if "--bless" in arguments:
            page.write_text(text[:begin] + made + text[end:])
        else:
            known = text[begin:end].splitlines()
            wrong += [f"{page}: not in its table: {row}" for row in made.splitlines() if row not in known]
    print("\n".join(wrong), file=sys.stderr, end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
