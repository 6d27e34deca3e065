#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The cases print what they must, and what they print with --json is what share/schemas says: no more, no less.

  schemas.py [--verb=VERB] PROGRAM SCHEMAS CASES...

Runs the cases (tests/support/cases.py) with a program in place of PROGRAM that also keeps what each call with --json prints.
With --verb, the schemas of other verbs are left alone. Then checks that

  - standard output is valid for the schema of the verb, and each line of standard error for message.json;
  - each verb has a schema, and each schema a verb;
  - each verb has a case that succeeds, one with findings if it has an exit code for them, and one for an error;
  - each property of each schema is seen in some case, and each has a description.

Exit code 1, with a diff for each case that differs, and a line for each complaint.
"""
import json
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

import jsonschema

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import cases  # noqa: E402

# Schemas that belong to no verb.
OTHERS = {
    "message": "what all verbs say on standard error",
    "version": "sdma --version",
    "interrupted": "what Ctrl-C leaves of an answer",
}
# Verbs without an answer of their own.
NO_ANSWER = {"emulate": "standard output is that of the program that it runs"}
# Verbs whose answer is a line for each thing in the input, which may be empty.
MAY_BE_EMPTY = {"dis"}
# What no case can show of a verb, with the reason.
NO_CASE = {
    ("latency", "with findings"): "a software device copies no wrong byte, and gives up no wait",
    ("fetch", "with findings"): "a software device copies no wrong byte, and gives up no wait",
    ("streams", "that succeeds"): "it needs two NVIDIA GPUs: scripts/silicon, on the stand-in, too",
    ("streams", "with findings"): "it needs two NVIDIA GPUs",
}
# Properties that no case can show, by "SCHEMA.json POINTER", with the reason.
INTERRUPTED = "no case is interrupted: interrupted.py shows it"
UNSEEN = {
    f"{place}/properties/complete": INTERRUPTED
    for place in (
        "calibrate.json /$defs/fit",
        "explore.json /$defs/searched",
        "interrupted.json ",
        "reduce.json ",
        "run.json ",
    )
}
UNSEEN |= {
    f"streams.json {place}": "it needs two NVIDIA GPUs"
    for place in ("/properties/iterations", "/properties/graph", "/properties/runs", "/properties/rows", *(
        f"/properties/rows/items/properties/{name}" for name in ("kind", "bytes", "us")))
}  # fmt: skip
UNSEEN["doctor.json /$defs/page_fault/properties/gpu"] = "only a process on a node has it: tests/emulator"
FINDINGS = (1, 4)
ERRORS = (2, 3)

# Keeps the words, the output and the exit code of each call that asks for JSON.
KEEPER = """#!/bin/bash
case " $* " in
  *" --json "* | *" --format=json "* | *" --format json "*) ;;
  *) exec {program} "$@" ;;
esac
kept=$(mktemp -d {folder}/XXXXXX)
printf '%s\\0' "$@" >"$kept/words"
{program} "$@" >"$kept/out" 2>"$kept/err"
code=$?
echo "$code" >"$kept/code"
cat "$kept/out"
cat "$kept/err" >&2
exit "$code"
"""


class Call:
    def __init__(self, folder):
        self.words = (folder / "words").read_text().split("\0")[:-1]
        self.out, self.err = (self.text(folder / name) for name in ("out", "err"))
        self.code = int((folder / "code").read_text())
        self.verb = self.words[0]

    @staticmethod
    def text(path):
        return path.read_bytes().decode("utf-8", "backslashreplace")

    def __str__(self):
        return "sdma " + shlex.join(self.words)

    def is_ours(self):
        """False if the words after the verb are those of a program, whose output may be anything."""
        return self.verb not in NO_ANSWER and not (self.verb == "doctor" and "--" in self.words)


def keep(program, all_cases):
    """Runs the cases. Returns their exit code, and the calls that ask for JSON."""
    with tempfile.TemporaryDirectory() as folder:
        records = pathlib.Path(folder, "calls")
        records.mkdir()
        keeper = pathlib.Path(folder, "sdma")
        keeper.write_text(KEEPER.format(program=shlex.quote(str(program)), folder=shlex.quote(str(records))))
        keeper.chmod(0o755)
        code = cases.run([keeper], all_cases, bare=True)
        return code, [Call(each) for each in sorted(records.iterdir()) if (each / "code").exists()]


def values(text):
    """The JSON values of a text, one after another."""
    decoder, at = json.JSONDecoder(), 0
    while True:
        at = len(text) - len(text[at:].lstrip())
        if at == len(text):
            return
        value, at = decoder.raw_decode(text, at)
        yield value


class Schemas:
    def __init__(self, folder):
        self.all = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))}
        for schema in self.all.values():
            jsonschema.Draft202012Validator.check_schema(schema)
        base = "https://sdma.invalid/"
        store = {f"{base}{name}.json": schema for name, schema in self.all.items()}
        self.validators = {
            name: jsonschema.Draft202012Validator(
                schema, resolver=jsonschema.RefResolver(f"{base}{name}.json", schema, store=store))
            for name, schema in self.all.items()
        }  # fmt: skip
        self.seen = set()

    def resolve(self, node, name, at):
        """The node behind references, the schema that it is in, and its place there."""
        while "$ref" in node:
            file, _, at = node["$ref"].partition("#")
            name = file[: -len(".json")] if file else name
            node = self.all[name]
            for key in filter(None, at.split("/")):
                node = node[key]
        return node, name, at

    def properties(self):
        """(schema, place, node) of each property."""

        def walk(node, name, at):
            if isinstance(node, list):
                for number, each in enumerate(node):
                    yield from walk(each, name, f"{at}/{number}")
            if not isinstance(node, dict):
                return
            for key, each in node.items():
                if key == "properties":
                    for word, value in each.items():
                        yield name, f"{at}/properties/{word}", value
                        yield from walk(value, name, f"{at}/properties/{word}")
                else:
                    yield from walk(each, name, f"{at}/{key}")

        for name, schema in self.all.items():
            yield from walk(schema, name, "")

    def cover(self, node, name, at, value):
        """Notes each property of the schema that this valid value has."""
        node, name, at = self.resolve(node, name, at)
        for number, branch in enumerate(node.get("oneOf", [])):
            if self.validators[name].evolve(schema=branch).is_valid(value):
                self.cover(branch, name, f"{at}/oneOf/{number}", value)
        if isinstance(value, dict):
            for key, each in value.items():
                if key in node.get("properties", {}):
                    here = f"{at}/properties/{key}"
                    self.seen.add((name, here))
                    self.cover(node["properties"][key], name, here, each)
                else:
                    for pattern, which in node.get("patternProperties", {}).items():
                        self.cover(which, name, f"{at}/patternProperties/{pattern}", each)
                    if isinstance(node.get("additionalProperties"), dict):
                        self.cover(node["additionalProperties"], name, f"{at}/additionalProperties", each)
        elif isinstance(value, list) and "items" in node:
            for each in value:
                self.cover(node["items"], name, f"{at}/items", each)

    def complaints(self, name, value):
        errors = list(self.validators[name].iter_errors(value))
        if not errors:
            self.cover(self.all[name], name, "", value)
            return []
        worst = jsonschema.exceptions.best_match(errors)
        place = "/".join(map(str, worst.absolute_path))
        return [f"not valid for {name}.json at '{place}': {worst.message[:300]}"]


def check_call(call, schemas):
    """Complaints about what a call printed."""
    name = "version" if call.verb.startswith("-") else call.verb
    bad, answers = [], []
    if call.is_ours() and name in schemas.all:
        try:
            answers = list(values(call.out))
        except ValueError as e:
            return [f"standard output is not JSON: {e}"]
        for value in answers:
            bad += schemas.complaints(name, value)
        if call.code == 0 and not answers and call.verb not in MAY_BE_EMPTY and "-o" not in call.words:
            bad.append("it succeeds without an answer")
    # The errors of a text are in the answer, whose verdict says that there is none.
    messages = sum(v.get("verdict") == "unread" for v in answers)
    for line in call.err.splitlines():
        if not call.is_ours() and not line.startswith('{"rule":'):
            continue
        try:
            value = json.loads(line)
        except ValueError:
            bad.append(f"standard error has a line that is not JSON: {line}")
            continue
        bad += schemas.complaints("message", value)
        messages += value.get("severity") == "error"
    if call.is_ours() and call.code in ERRORS and messages == 0:
        bad.append("it fails without a message")
    return bad


def verbs_of(program):
    """The verbs, and those that have an exit code for findings."""
    text = subprocess.run([program, "--help"], capture_output=True, text=True, check=True).stdout
    verbs = re.findall(r"^  ([a-z]+) ", text.partition("Subcommands:\n")[2].partition("Exit codes:")[0], re.M)
    with_findings = set()
    for verb in verbs:
        codes = subprocess.run([program, verb, "--help"], capture_output=True, text=True, check=True).stdout
        if re.search(r"(?m)^  [14] ", codes[codes.find("Exit codes:") :]):
            with_findings.add(verb)
    return verbs, with_findings


def main(program, folder, *paths, only=None):
    program = pathlib.Path(program).resolve()
    code, calls = keep(program, [case for path in paths for case in cases.found_in(pathlib.Path(path))])
    schemas = Schemas(pathlib.Path(folder))
    bad = [f"{call}: {complaint}" for call in calls for complaint in check_call(call, schemas)]
    verbs, with_findings = verbs_of(program)
    for verb in verbs if only is None else [only]:
        if verb not in schemas.all and verb not in NO_ANSWER:
            bad.append(f"sdma {verb}: there is no {verb}.json")
        codes = {call.code for call in calls if call.verb == verb}
        wanted = {"that succeeds": (0,), "for an error": ERRORS}
        if verb in with_findings:
            wanted["with findings"] = FINDINGS
        for what, any_of in wanted.items():
            if verb not in NO_ANSWER and (verb, what) not in NO_CASE and not codes.intersection(any_of):
                bad.append(f"sdma {verb}: no case {what} uses --json")
    for name in schemas.all:
        if name not in verbs and name not in OTHERS:
            bad.append(f"{name}.json: there is no such verb")
    unseen = {where: why for where, why in UNSEEN.items() if only is None or where.startswith(f"{only}.json ")}
    for name, at, node in schemas.properties():
        if only not in (None, name):
            continue
        where = f"{name}.json {at}"
        if "description" not in schemas.resolve(node, name, at)[0] and "description" not in node:
            bad.append(f"{where}: it has no description")
        if (name, at) in schemas.seen:
            if unseen.pop(where, None):
                bad.append(f"{where}: a case has it, so it is no exception")
        elif not unseen.pop(where, None):
            bad.append(f"{where}: no case has it")
    bad += [f"{where}: there is no such property, so it is no exception" for where in unseen]
    print(*bad, f"{len(calls)} calls, {len(schemas.seen)} properties, {len(bad)} complaints", sep="\n")
    return 1 if bad else code


if __name__ == "__main__":
    given = sys.argv[1:]
    only = given.pop(0).removeprefix("--verb=") if given and given[0].startswith("--verb=") else None
    sys.exit(main(*given, only=only))
