# SPDX-License-Identifier: MIT
"""Pages of the public headers: from doxygen's XML to Markdown, a page for each header.

  PAGES/queue/ring.md        the manual with which include/sdma/queue/ring.hpp opens, then each public name
  PAGES/README.md            all headers, by module
  PAGES/names.json           each public name, its page, and whether a comment says what it is

A name counts as documented if one of these says what it is:
  its own comment, or that of an overload, of a declaration in the same line, or of the function that it overrides;
  a packet's layout, in which each field has its meaning;
  the manual of its header, for what a namespace contains, if the manual uses the name;
  the comment of its class, if that has the name in back quotes; of its enumeration, if that uses the name of a value,
    or has a pattern for it in back quotes, such as `*_32`;
  its class, for constructors, assignments, conversions and operators, and for functions that are deleted.
"""
import collections
import fnmatch
import html
import json
import pathlib
import re

import blocks
import filter as headers

Name = collections.namedtuple("Name", "kind full file line signature comment note values")
FIELD = re.compile(r"<&(\w+)::(\w+)>\s*\(\"\w+\",[^\"]*\"([^\"]+)\"")
SECTIONS = {"class": "Classes", "concept": "Concepts", "enum": "Enumerations", "function": "Functions", "variable": "Constants", "typedef": "Types", "define": "Macros"}


def text(element):
    """Plain text of doxygen's markup; code keeps its quotes."""
    if element is None:
        return ""
    parts = [element.text or ""]
    for child in element:
        inner = text(child)
        if child.tag == "verbatim":
            code = re.sub(r"(?m)^ *///   ", "", inner).strip()
            inner = f"\n\n```cpp\n{code}\n```\n\n"
        parts.append(f"`{inner}`" if child.tag == "computeroutput" else f"{inner}\n\n" if child.tag == "para" else inner)
        parts.append(child.tail or "")
    return "".join(parts)


def comment(element):
    said = [text(element.find(part)).strip() for part in ("briefdescription", "detaileddescription", "inbodydescription")]
    return "\n\n".join(part for part in said if part)


def signature(member):
    """What the header declares, on one line."""
    kind = member.get("kind")
    name, definition, arguments = (text(member.find(part)) for part in ("name", "definition", "argsstring"))
    if kind == "enum":
        return f"enum class {name}" if member.get("strong") == "yes" else f"enum {name}"
    if kind == "define":
        names = ", ".join(text(p.find("defname")) for p in member.findall("param"))
        return f"#define {name}" + (f"({names})" if member.find("param") is not None else "")
    scope = definition.rsplit(" ", 1)[-1].rsplit("::" + name, 1)[0] if "::" + name in definition else ""
    line = definition.replace("sdma::", "") if kind == "typedef" else f"{text(member.find('type'))} {name}".strip().replace("sdma::", "")
    initial = text(member.find("initializer")) if kind == "variable" else ""
    line += arguments + (f" {initial}" if initial and "\n" not in initial and len(initial) < 60 else "")
    parameters = ", ".join((text(p.find("type")) + " " + text(p.find("declname"))).strip() for p in member.findall("templateparamlist/param"))
    return (f"template <{parameters}> " if parameters else "") + " ".join(line.split())


def read(compounds, source):
    """Every public name, in the order of files and lines."""
    found = []
    # A macro in place of values: the comment of such an enumeration speaks for them.
    macros = {name for path in pathlib.Path(source, "include").rglob("*.hpp") for name in re.findall(r"#undef (\w+)", path.read_text(encoding="utf-8"))}
    for compound in compounds:
        kind, scope = compound.get("kind"), text(compound.find("compoundname"))
        if kind not in ("class", "struct", "union", "concept", "file", "namespace") or compound.get("prot", "public") != "public":
            continue
        place = compound.find("location")
        if kind in ("class", "struct", "union", "concept"):
            what = "concept" if kind == "concept" else "class"
            found.append(Name(what, scope, place.get("file"), int(place.get("line")), f"{kind} {scope.split('::')[-1]}", comment(compound), "", ()))
        # Members of a namespace are those of the namespace, not of a file, or they would be found twice.
        members = [m for m in compound.iter("memberdef") if kind != "file" or m.get("kind") == "define"]
        for member in members:
            if member.get("prot") != "public" or member.get("kind") not in ("function", "variable", "typedef", "enum", "define"):
                continue
            place, name = member.find("location"), text(member.find("name"))
            if name in macros:
                continue  # the header itself uses it, and nobody else can
            full = name if member.get("kind") == "define" else f"{scope}::{name}"
            line = signature(member)
            note = "class" if line.endswith(("=delete", "=default")) or re.match(r"~|operator\b", name) or name == re.sub(r"<.*", "", scope).split("::")[-1] else ""
            note = "base" if member.find("reimplements") is not None else note
            values = tuple((text(v.find("name")), " ".join(text(v.find("initializer")).split()), comment(v)) for v in member.findall("enumvalue")
                           if text(v.find("name")) not in macros)
            found.append(Name(member.get("kind"), full, place.get("file"), int(place.get("line")), line, comment(member), note, values))
    return sorted(set(found), key=lambda n: (n.file, n.line, n.full))


def explain(names, source):
    """The names with a comment for each that something says, and where that is if it is not the name's own comment."""
    overloads, lines, result = {}, {}, []
    for n in names:
        if n.comment:
            overloads.setdefault(n.full, n.comment)
            lines.setdefault((n.file, n.line), n.comment)
    manuals, fields = {}, {}
    for file in {n.file for n in names}:
        whole = (source / "include" / file).read_text(encoding="utf-8")
        manuals[file] = set(re.findall(r"\w+", "\n".join(headers.manual(whole))))
        fields.update({(p, f): meaning for p, f, meaning in FIELD.findall(whole)})
    for n in names:
        scope, name = (n.full.split("::")[-2:] if "::" in n.full else ("", n.full))
        said, note = n.comment, n.note
        if not said:
            said = fields.get((scope, name)) or overloads.get(n.full) or overloads.get(re.sub(r" ?<.*", "", n.full)) or (lines.get((n.file, n.line)) if n.kind in ("variable", "typedef", "function") else "") or ""
        bare = re.sub(r"<.*", "", name).strip()
        top = n.kind in ("class", "concept", "define") or scope in ("sdma", "trace", "doctor", "hsa", "grammar", "order")
        if not said and not note and f"`{name}`" in overloads.get(n.full.rpartition("::")[0], ""):
            note = "class"
        if not said and not note and top and bare in manuals[n.file]:
            note = "manual"
        result.append(n._replace(comment=said, note="" if said else note))
    return result


def undocumented(names):
    for n in names:
        if not n.comment and not n.note:
            yield n.full, n
        words = set(re.findall(r"\w+", n.comment))
        patterns = re.findall(r"`(\w*\*\w*)`", n.comment)
        for value, _, said in n.values:
            if not said and value not in words and not any(fnmatch.fnmatchcase(value, p) for p in patterns):
                yield f"{n.full}::{value}", n


def escape(said):
    """Prose of a comment as Markdown: only code has a meaning."""
    pieces = re.split(r"(```.*?```|`[^`\n]*`)", said, flags=re.S)
    return "".join(p if p.startswith("`") else re.sub(r"([\\*_<>\[\]#|])", r"\\\1", html.unescape(p)) for p in pieces)


def manual_page(lines):
    """Prose becomes paragraphs; what is indented stays as it is, as code or as a drawing."""
    out = []
    for block in blocks.of_manual(lines, 1):
        if block.kind == "prose":
            # A list needs an empty line before it, or Markdown continues the paragraph.
            out.append(escape(re.sub(r"(?m)^(?!- |  )(.*\n)(?=- )", r"\1\n", block.text)) + "\n")
        else:
            out.append(f"```{block.kind}\n{block.text}\n```\n")
    return "\n".join(out)


def anchor(full):
    spelled = re.sub(r"[~=<>!*&|+()\[\]-]", lambda match: f"-{ord(match[0]):x}", full.lower().replace("sdma::", ""))
    return re.sub(r"[^a-z0-9]+", "-", spelled).strip("-")


def entry(group, level):
    """One heading for all overloads of a name."""
    first = group[0]
    name = first.full.removeprefix("sdma::")
    out = [f"{'#' * level} `{name}` {{ #{anchor(first.full)} }}\n", "```cpp", *dict.fromkeys(n.signature for n in group), "```\n"]
    out += dict.fromkeys(escape(n.comment) + "\n" for n in group if n.comment)
    if first.note == "manual":
        out.append("Described in [the manual](#manual).\n")
    if first.values:
        cell = lambda said: escape(" ".join(said.split()))
        out += ["| value | meaning |", "|---|---|", *(f"| `{v}`{' `' + i + '`' if i else ''} | {cell(said)} |" for v, i, said in first.values), ""]
    return out


def header_page(file, names, source, up):
    lines = headers.manual((source / "include" / file).read_text(encoding="utf-8"))
    out = [f"# {file}\n", f"[`#include \"{file}\"`]({up}source/include/{file}.html)\n", "## Manual { #manual }\n", manual_page(lines)]
    classes = [n for n in names if n.kind == "class"]
    scopes = {n.full for n in classes}
    inside = collections.defaultdict(list)
    for n in names:
        if n.kind != "class" and n.full.rpartition("::")[0] in scopes:
            inside[n.full.rpartition("::")[0]].append(n)
    for kind, title in SECTIONS.items():
        groups = collections.defaultdict(list)
        for n in names:
            if n.kind == kind and (kind == "class" or n.full.rpartition("::")[0] not in scopes):
                groups[re.sub(r"< .*", "", n.full) if kind == "variable" else n.full].append(n)
        if groups:
            out.append(f"## {title}\n")
        for group in groups.values():
            out += entry(group, 3)
            members = collections.defaultdict(list)
            for n in inside[group[0].full] if kind == "class" else ():
                members[n.full].append(n)
            fields = [g[0] for g in members.values() if g[0].kind == "variable"]
            if fields:
                out += ["| member | meaning |", "|---|---|"]
                out += [f"| `{re.sub(r'[|]', chr(92) + '|', n.signature)}` | {escape(' '.join(n.comment.split()))} |" for n in fields] + [""]
            for g in members.values():
                if g[0].kind != "variable":
                    out += entry(g, 4)
    return "\n".join(out) + "\n"


def main(compounds, source, pages):
    source, pages = pathlib.Path(source), pathlib.Path(pages)
    names = explain(read(compounds, source), source)
    files = sorted((str(p.relative_to(source / "include")) for p in (source / "include/sdma").rglob("*.hpp")), key=lambda f: (f.count("/"), f))
    index = ["# The library, header by header\n", "Each page has the manual of a header and all its public names. [Architecture](../docs/architecture.md) says what the modules are.\n"]
    module = ""
    for file in files:
        page = pages / pathlib.PurePath(file).relative_to("sdma").with_suffix(".md")
        page.parent.mkdir(parents=True, exist_ok=True)
        below = page.relative_to(pages)
        page.write_text(header_page(file, [n for n in names if n.file == file], source, "../" * len(below.parts)), encoding="utf-8")
        if below.parent.name != module:
            module = below.parent.name
            index += [f"\n## {module}\n"]
        whole = " ".join(headers.manual((source / "include" / file).read_text(encoding="utf-8")))
        first = re.match(r".*?[.:](?= |$)", whole)
        index.append(f"- [{file}]({below}): {escape(first[0] if first else whole[:100])}")
    (pages / "README.md").write_text("\n".join(index) + "\n", encoding="utf-8")
    bare = sorted({full: f"include/{n.file}:{n.line}" for full, n in undocumented(names)}.items())
    every = sorted({n.full for n in names} | {f"{n.full}::{v[0]}" for n in names for v in n.values})
    (pages / "names.json").write_text(json.dumps({"names": every, "undocumented": bare}, indent=1), encoding="utf-8")
    return len(files), len(every), bare
