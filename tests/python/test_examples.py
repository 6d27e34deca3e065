# SPDX-License-Identifier: MIT
"""The programs of examples/python, and each snippet of docs/python.md."""
import os
import re
import shutil
import subprocess
import sys

import pytest

EXAMPLES = ["hung_ring", "own_algorithm", "paper_figure", "sweep"]


def test_every_example_is_run(root):
    assert sorted(p.stem for p in (root / "examples/python").glob("*.py")) == EXAMPLES


@pytest.mark.parametrize("name, words", [
    ("hung_ring", ("wait for each other", "PollMem(")),
    ("own_algorithm", ("no race, no deadlock", "before gpu0.ring has written it", "+-")),
    ("paper_figure", ("b2b+pl", "~")),
    ("sweep", ("5_allgather_prelaunch", "poll: ")),
])
def test_example(root, tmp_path, name, words):
    output = {"paper_figure": "out.csv", "sweep": "out.svg"}.get(name)
    done = subprocess.run([sys.executable, root / f"examples/python/{name}.py", *([output] if output else [])], cwd=tmp_path,
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for word in words:
        assert word in done.stdout, word
    if output:
        begin = "bytes,variant" if name == "paper_figure" else "<svg"
        assert (tmp_path / output).read_text().startswith(begin)


def test_every_snippet_of_the_page(root, schedules, tmp_path, monkeypatch):
    page = (root / "docs/python.md").read_text()
    snippets = re.findall(r"^```python\n(.*?)^```", page, flags=re.M | re.S)
    assert len(snippets) >= 10
    shutil.copy(schedules / "2_allgather_b2b.sdma", tmp_path)
    monkeypatch.chdir(tmp_path)
    scope = {}
    for i, snippet in enumerate(snippets):
        exec(compile(snippet, f"docs/python.md, snippet {i + 1}", "exec"), scope)
    assert os.path.getsize("run.html") > 1000
