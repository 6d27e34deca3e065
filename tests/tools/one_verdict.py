#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every way of asking for a verdict gives the same one, for every schedule of the tree.

  one_verdict.py SOURCE SDMA

Compares, for each *.sdma file: the exit code of `sdma check`, its text, its JSON, and the severities of its findings; the same with
--strict; `sdma run --test` of files that expect a finding; and, for what `sdma explore` writes, `sdma check` of the file. The suite
`python` compares the package with the JSON, and the suite `playground` the page with the command line.
"""
import concurrent.futures
import json
import pathlib
import subprocess
import sys
import tempfile

CODES = {"proved": 0, "refuted": 1, "unproved": 4, "unread": 3}
KINDS = ("expects", "proved", "refuted", "unproved", "unread", "advice", "explored")


class Verdicts:
    def __init__(self, source, sdma):
        self.source, self.sdma = pathlib.Path(source), sdma
        self.seen = dict.fromkeys(KINDS, 0)

    def run(self, *words, cwd=None):
        done = subprocess.run([self.sdma, *map(str, words)], capture_output=True, text=True, timeout=300, check=False, cwd=cwd)
        return done.returncode, done.stdout, done.stderr

    def complaints(self, path):
        """What differs, in sentences; of one file."""
        code, out, _ = self.run("check", path)
        json_code, lines, messages = self.run("check", "--json", path)
        if not lines:  # the file cannot be read
            if not code == json_code == 3:
                yield f"exit codes {code} and {json_code} without an answer: {messages}"
            return
        *findings, answer = [json.loads(line) for line in lines.splitlines()]
        severities = [f["severity"] for f in findings]
        verdict = answer["verdict"]
        self.seen[verdict] += 1
        if not code == json_code == answer["exit_code"]:
            yield f"exit code {code}, with --json {json_code}, and in the answer {answer['exit_code']}"
        if (answer["errors"], answer["warnings"]) != (severities.count("error"), severities.count("warning")):
            yield f"{severities} are not {answer['errors']} errors and {answer['warnings']} warnings"
        if verdict == "unread":
            if code != 3:
                yield f"exit code {code} of an unread text"
            return
        wanted = "refuted" if "error" in severities else "unproved" if "warning" in severities else "proved"
        if verdict != wanted:
            yield f"{verdict}, with findings {severities}"
        expects = "expected" in answer
        if code != (int(not answer["as_expected"]) if expects else CODES[verdict]):
            yield f"exit code {code} of {verdict}"
        if out != ("" if code == 1 else answer["summary"] + "\n"):
            yield f"text says {out!r}, JSON {answer['summary']!r}"
        if not expects and ("no race, no deadlock, no missing wait" in answer["summary"]) != (code == 0):
            yield f"exit code {code} of '{answer['summary']}'"
        self.seen["advice"] += "note" in severities
        advice = any(f["severity"] == "note" and f["rule"] != "not-shown" for f in findings)
        if not expects:
            strict, _, _ = self.run("check", "--strict", path)
            if strict != (1 if advice else code):
                yield f"exit code {code}, and {strict} with --strict; findings {severities}"
        else:
            self.seen["expects"] += 1
            tested, said, _ = self.run("run", "--test", path)
            if tested != code:
                yield f"exit code {code} of check, and {tested} of run --test: {said}"

    def explored(self, path):
        """What explore calls proved is proved."""
        with tempfile.TemporaryDirectory() as folder:
            code, _, messages = self.run("explore", "--tries=30", "--write", folder, path)
            if code == 3:  # it leaves nothing open
                return
            if code != 0:
                yield f"explore: exit code {code}: {messages}"
            for written in sorted(pathlib.Path(folder).glob("*.sdma")):
                self.seen["explored"] += 1
                checked, _, said = self.run("check", written)
                if checked != 0:
                    yield f"explore proves {written.name}, and check ends with {checked}: {said}"


def main(source, sdma):
    verdicts = Verdicts(source, sdma)
    paths = sorted(p for p in verdicts.source.rglob("*.sdma") if not any(part.startswith(("build", ".")) for part in p.relative_to(source).parts))
    jobs = [(verdicts.complaints, p) for p in paths] + [(verdicts.explored, p) for p in paths if "choose " in p.read_text(errors="replace")]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda job: [f"{job[1].relative_to(source)}: {text}" for text in job[0](job[1])], jobs))
    wrong = [line for lines in found for line in lines]
    wrong += [f"no file shows '{kind}', so nothing was compared" for kind, n in verdicts.seen.items() if n == 0 and kind != "unread"]
    print(*wrong, f"{len(paths)} schedules: " + ", ".join(f"{n} {kind}" for kind, n in verdicts.seen.items()), sep="\n")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
