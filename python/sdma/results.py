# SPDX-License-Identifier: MIT
"""Answers: dicts with the members that `sdma VERB --json` prints. Some draw themselves in a notebook."""
from __future__ import annotations

from typing import Any, Callable, Sequence

from . import _sdma

Answer = dict[str, Any]


def _escape(text):
    import html  # Rarely needed, and an import should be fast.

    return html.escape(text)


def _table(rows, columns):
    head = "".join(f"<th>{_escape(c)}</th>" for c in columns)
    cell = lambda value: _escape("" if value is None else str(value)).replace("\n", "<br>")
    body = "".join("<tr>" + "".join(f"<td style='text-align:left'>{cell(r.get(c))}</td>" for c in columns) + "</tr>" for r in rows)
    return f"<table><tr>{head}</tr>{body}</table>"


def _findings(title, findings):
    text = f"<p><b>{_escape(title)}</b></p>"
    return text + (_table(findings, ("severity", "rule", "where", "message", "hint")) if findings else "")


class Check(Answer):
    """verdict, findings, what was assumed: the members of `sdma check --json`."""

    @property
    def proved(self) -> bool:
        """True only if no execution has a race, a deadlock or a missing wait."""
        return self["verdict"] == "proved"

    def _repr_html_(self):
        return _findings(self["summary"], self["findings"])


class Run(Answer):
    """passed, findings, expectations, queues: what `sdma run --json` says of one run. True if everything holds."""

    diagnosis: Answer | None = None
    """Why queues hang, as `sdma doctor --json` says it; None if everything holds."""
    trace: _sdma.Trace | None = None
    """The recording, if one was asked for."""

    def __bool__(self):
        return self["passed"]

    def _repr_html_(self):
        return _findings("everything holds" if self else "the run failed", self["findings"])


class Simulation(Answer):
    """ns, uncertainty_ns, at_least, phases, path, busy, defaults: the members of `sdma simulate --json`. A notebook shows the timeline."""

    _record: Callable[[], _sdma.Trace]

    def trace(self) -> _sdma.Trace:
        """The recording of this simulation. The simulation runs again, with the same result."""
        return self._record()

    def to_svg(self, title: str = "", *, size: tuple[float, float] | None = None, beside: Sequence[_sdma.Trace] = ()) -> str:
        """The timeline of this simulation, as Trace.to_svg draws it."""
        return self.trace().to_svg(title or self._title(), size=size, beside=beside)

    def _title(self):
        return f"{self['ns'] / 1000:.2f} us, simulated"

    def _repr_svg_(self):
        return self.to_svg()


class Sweep(Answer):
    """param, files, points, defaults: the members of `sdma simulate --sweep --json`. A notebook shows the curves."""

    svg = ""
    """The curves: speed-ups over the first schedule, or the times of a single one."""
    _draw: Callable[[str, tuple[float, float] | None], str]

    def to_svg(self, title: str = "", *, size: tuple[float, float] | None = None) -> str:
        """The curves with this title, and of this size: (width, height) in pixels."""
        return self._draw(title, size)

    @property
    def rows(self) -> list[dict[str, Any]]:
        """One dict per point and schedule, for pandas.DataFrame(sweep.rows): the values, file, ns, uncertainty_ns, speed_up,
        speed_up_uncertainty and tie."""
        names = self["param"] if isinstance(self["param"], list) else [self["param"]]
        rows = []
        for point in self["points"]:
            values = point["value"] if isinstance(point["value"], list) else [point["value"]]
            for file, ns, off, faster in zip(self["files"], point["ns"], point["uncertainty_ns"], point["speed_up"]):
                rows.append({**dict(zip(names, values)), "file": file, "ns": ns, "uncertainty_ns": off, "speed_up": faster["value"],
                             "speed_up_uncertainty": faster["uncertainty"], "tie": faster["tie"]})
        return rows

    def _repr_svg_(self):
        return self.svg


class Explore(Answer):
    """machine, defaults, searches: the members of `sdma explore --json`."""

    schedules: Sequence[_sdma.Schedule] = ()
    """The best, with nothing left open; the fastest first. All are proved."""


class Reduced(Answer):
    """text, rule, before, after: the members of `sdma reduce --json`."""

    schedule: _sdma.Schedule
    """The text, as a schedule."""

    def _repr_html_(self):
        return f"<pre>{_escape(self['text'])}</pre>"


class Text(Answer):
    """An answer whose `str` is the report that the program prints."""

    _text = ""

    def __str__(self):
        return self._text

    def _repr_html_(self):
        return f"<pre>{_escape(self._text)}</pre>"


class Calibration(Answer):
    """A fit to measurements, or predictions of them: the members of `sdma calibrate --json`."""

    machine: _sdma.Machine | None = None
    """The fitted machine; None if nothing was fitted."""
