# SPDX-License-Identifier: MIT
"""What doxygen reads in the public headers: for the pages of the site, and for the test that no public name is lost."""
import pathlib
import subprocess
import xml.etree.ElementTree as xml

from filter import filtered

SITE = pathlib.Path(__file__).resolve().parent


def compounds(include, work):
    """The compounds of the headers below INCLUDE, as XML elements, and what doxygen complains about. Files are relative to INCLUDE."""
    headers = pathlib.Path(work, "headers")
    for header in pathlib.Path(include).rglob("*.hpp"):
        to = headers / header.relative_to(include)
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_text(filtered(header.read_text(encoding="utf-8")), encoding="utf-8")
    settings = (SITE / "Doxyfile.in").read_text(encoding="utf-8")
    for word, value in {"INCLUDE": headers, "OUTPUT": work}.items():
        settings = settings.replace(f"@{word}@", str(value))
    done = subprocess.run(["doxygen", "-"], input=settings, capture_output=True, text=True)
    found = [c for path in sorted(pathlib.Path(work, "xml").glob("*.xml")) for c in xml.parse(path).getroot().iter("compounddef")]
    return found, f"doxygen: exit code {done.returncode}\n{done.stderr}" if done.returncode != 0 or done.stderr else ""
