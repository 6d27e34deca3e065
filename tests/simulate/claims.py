#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Pages claim of published measurements what the tables of share/published and the model give.

  claims.py SOURCE BENCH_REPRODUCE        each claim that does not hold; the exit code is 1 if there is one

1. The tables of docs/reproduction.md are those that bench-reproduce prints: so each has all rows of its table in share/published.
2. No other table of README.md and docs has published figures, unless SUMMARIES says of what it is a summary.
3. A table that share/published does not have has no errors. README.md's figures are the means of fitted and of predicted cells.
4. The head of each table says which rows of its sources are left out, or that none is.
"""
import csv
import pathlib
import re
import subprocess
import sys

PAGE = "docs/reproduction.md"
# (page, first cell of the header): of what it is a summary
SUMMARIES = {
    (PAGE, "claim"): "the tables of the same page, in words of the paper",
    (PAGE, "what the paper claims"): "claims that no table can judge",
    ("docs/museum.md", "bug"): "bugs, which have no figures",
}
# Tables that the model cannot be judged by.
UNJUDGED = {"rccl.csv": "kernels of MI355X"}


def tables(text):
    """(heading, rows) of each table; a row is the list of its cells."""
    heading, rows = "", []
    for line in [*text.splitlines(), ""]:
        if line.startswith("|"):
            rows.append([cell.strip() for cell in line.strip().strip("|").split("|")])
            continue
        if rows:
            yield heading, rows
            rows = []
        if line.startswith("#"):
            heading = line.lstrip("# ")


def published(path):
    lines = path.read_text().splitlines()
    head = " ".join(line for line in lines if line.startswith("#"))
    return head, list(csv.DictReader(line for line in lines if line and not line.startswith("#")))


def main(source, bench):
    source, wrong = pathlib.Path(source), []
    made = dict(tables(subprocess.run([bench], check=True, capture_output=True, text=True).stdout))
    page = dict(tables((source / PAGE).read_text()))
    for heading, rows in made.items():
        if page.get(heading) != rows:
            wrong.append(f"{PAGE}: the table '{heading}' is not what {bench} prints: ninja -C build bless")
    cells = {}
    for path in sorted((source / "share/published").glob("*.csv")):
        head, rows = published(path)
        cells[path.name] = rows
        if not re.search(r"[Ll]eft out|[Nn]ot here|[Aa]ll rows|[Aa]re not here|sizes that the fit does not use", head):
            wrong.append(f"{path.name}: its head does not say which rows of its sources are left out")
        if path.name in UNJUDGED or path.name == "dma-latte.csv":
            continue
        there = [row[0] for row in page.get(f"Cells of {path.name}", [])[2:]]
        if there != [f"{row['schedule']} {row['settings']}" for row in rows]:
            wrong.append(f"{PAGE}: 'Cells of {path.name}' does not have the {len(rows)} rows of that table")
    gathers = [row for row in cells["dma-latte.csv"] if row["what"] == "speed_up"]
    columns = [cell for rows in (page["All-gather, fitted: model (published, error)"],) for row in rows[2:] for cell in row if "%" in cell]
    if len(columns) != len(gathers):
        wrong.append(f"{PAGE}: {len(columns)} cells of the all-gather, and the table has {len(gathers)}")
    if any("%" in cell for row in page["All-to-all: the model alone"] for cell in row):
        wrong.append(f"{PAGE}: errors of a table that share/published does not have")
    for path in [source / "README.md", *sorted((source / "docs").rglob("*.md"))]:
        name = str(path.relative_to(source))
        for heading, rows in tables(path.read_text()):
            figures = any(re.search(r"\b(published|public)\b", cell) for cell in rows[0])
            if figures and not (name == PAGE and heading in made) and (name, rows[0][0]) not in SUMMARIES:
                wrong.append(f"{name}: the table of '{rows[0][0]}' has published figures, and no test compares it with share/published")
    means = {state: [float(row[3].rstrip(" %")) for heading, rows in made.items() if heading.startswith("Cells of ")
                     and "hip" not in heading and "rccl" not in heading for row in rows[2:] if row[4] == state] for state in ("fitted", "predicted")}
    means["fitted"] = [abs(float(re.search(r"([+-]\d+) %", cell)[1])) for cell in columns]
    said = re.search(r"([\d.]+) % mean error of (\d+) fitted cells, and ([\d.]+) % of (\d+) predicted ones", (source / "README.md").read_text())
    if not said:
        wrong.append("README.md: does not say how far fitted cells are off, and predicted ones")
    else:
        for state, mean, count in (("fitted", said[1], said[2]), ("predicted", said[3], said[4])):
            found = [abs(v) for v in means[state]]
            if len(found) != int(count) or abs(sum(found) / len(found) - float(mean)) > 0.3:
                wrong.append(f"README.md: {mean} % of {count} {state} cells; it is {sum(found) / len(found):.1f} % of {len(found)}")
    print(*wrong, sep="\n")
    return 1 if wrong else 0


sys.exit(main(*sys.argv[1:]))
