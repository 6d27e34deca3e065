# SPDX-License-Identifier: MIT
"""The verbs of the program `sdma` that the extension does, as functions.

A `schedule` is a Schedule, or the path of a file. A `machine` is a Machine, the name of a layout such as "ring:8", the path of a file, or
None: eight MI300X. A node is the name of a layout, "kfd", "cuda", the path of a file, or None: eight MI300X.
"""
from __future__ import annotations

import os
from typing import Any, Mapping, Sequence

from . import _sdma, arguments, manual, matrices, results
from ._sdma import Machine
from .devices import Device
from .files import contents, layout_or_contents
from .schedules import Schedule, settings
from .traces import Trace

__all__ = ["Machine", "Plan", "calibrate", "check", "compare", "doctor", "explore", "plan", "reduce", "run", "simulate", "speed_ups", "sweep",
           "topology", "trace"]


def _read_machine(path):
    return Machine.parse(layout_or_contents(path, "`sdma simulate --show-machine`"), os.fspath(path))


_set_parameter = Machine.__setitem__


@arguments.explained
def _set_item(self, name: str, value: float):
    _set_parameter(self, name, value)


manual.add(Machine, "read", _read_machine, static=True)
manual.add(Machine, "__setitem__", _set_item)
Machine.__repr__ = lambda machine: f"<Machine {machine.name}>"


def _is_layout(word):
    return isinstance(word, str) and _sdma.names_layout(word)


def _machine(machine):
    if machine is None:
        return Machine()
    if isinstance(machine, Machine):
        return machine
    return Machine(machine) if _is_layout(machine) else Machine.read(machine)


def _schedule(schedule):
    if isinstance(schedule, Schedule):
        return schedule
    if isinstance(schedule, (str, os.PathLike)):
        return Schedule.read(schedule)
    raise TypeError(f"pass a Schedule or the path of one, not {type(schedule).__name__}")


def _assumed(assume):
    if isinstance(assume, str):
        raise TypeError(f"assume is a list: pass [{assume!r}]")
    return list(assume)


def _node(node):
    """(device or layout, text, file) for the extension."""
    if node is None:
        return "", "", ""
    if isinstance(node, str) and _sdma.names_node(node):
        return node, "", ""
    text = layout_or_contents(node, "`sdma topology --json`")
    if not text.strip():
        raise ValueError(f"{os.fspath(node)}: this file is empty: name one such as `sdma topology --json` prints")
    return "", text, os.fspath(node)


@arguments.explained
def check(schedule: _sdma.AnySchedule, *, profile: str = "conservative", assume: Sequence[str] = (), topology: _sdma.Node = None,
          max_findings: int = 20, open: bool = False, strict: bool = False) -> results.Check:
    """Finds races, deadlocks and missing waits, or proves that there are none.

    `profile` and `assume`: what is assumed about engines, as `sdma check` takes it: "rocr", ["poll=full"]. `open`: other programs
    may satisfy polls. The verdict is "proved", "unproved" or "refuted"; what was not examined is never "proved". Notes are advice,
    which changes no verdict; `strict` makes them errors. `exit_code` is that of `sdma check`.
    """
    return results.Check(_sdma.check(_schedule(schedule), profile, _assumed(assume), *_node(topology), max_findings, open, strict))


@arguments.explained
def simulate(schedule: _sdma.AnySchedule, machine: _sdma.AnyMachine = None, *, sensitivity: bool = True, contents: bool = False,
             seed: int = 0) -> results.Simulation:
    """How long a schedule takes on a machine: a prediction, with its uncertainty.

    `sensitivity=False` leaves out the uncertainty, which takes many simulations. `contents`: also moves the bytes, and checks the
    expectations of the schedule.
    """
    schedule, machine = _schedule(schedule).copy(), _machine(machine).copy()
    answer = results.Simulation(_sdma.simulate(schedule, machine, sensitivity, contents, seed))
    answer._record = lambda: _sdma.simulate_trace(schedule, machine)
    return answer


def _several(schedules):
    """Schedules, of which one may be passed by itself."""
    return [schedules] if isinstance(schedules, (str, os.PathLike, Schedule)) else list(schedules)


def speed_ups(baseline: _sdma.AnySchedule, schedules: _sdma.AnySchedule | Sequence[_sdma.AnySchedule],
              machine: _sdma.AnyMachine = None) -> list[dict[str, Any]]:
    """How many times as fast each schedule is as the baseline, with the uncertainty; `tie` if the model cannot tell."""
    return _sdma.speed_ups(_schedule(baseline), [_schedule(s) for s in _several(schedules)], _machine(machine))


def _source(schedule, given):
    """The file and the text of a schedule that is read again; of one that was built, the text without params. Adds the params that it was read with to `given`."""
    if not isinstance(schedule, Schedule):
        return os.fspath(schedule), contents(schedule)
    if schedule.source is None:  # built or changed here
        return schedule.file, str(schedule)
    for name, value in schedule.given.items():
        if given.setdefault(name, value) != value:
            raise ValueError(f"the schedules were read with different values of {name}: pass {name}=... here, and paths")
    return schedule.file, schedule.source


def sweep(schedules: _sdma.AnySchedule | Sequence[_sdma.AnySchedule], *axes: str, machine: _sdma.AnyMachine = None, **params: _sdma.Params) -> results.Sweep:
    """The times of schedules for each value of one parameter or two: "chunk=1K..1G", "engine.poll_ns=500,1000".

    Schedules are read again for each value, with the params that they were read with and those given here.
    """
    given = {}
    files = [_source(s, given) for s in _several(schedules)]
    answer, draw = _sdma.sweep(files, list(axes), _machine(machine), settings({**given, **params}))
    answer = results.Sweep(answer)
    answer.svg, answer._draw = draw("", None), draw
    return answer


@arguments.explained
def explore(schedule: _sdma.AnySchedule, *, machine: _sdma.AnyMachine = None, tries: int = 0, budget: float | None = None, best: int = 5,
            seed: int = 0, profile: str = "conservative", assume: Sequence[str] = (), **params: _sdma.Params) -> results.Explore:
    """The fastest of the schedules that a text leaves open (docs/explore.md).

    `budget`: seconds; the default is 10, or no limit with `tries`, which makes the result repeatable. `profile` and `assume`: what proofs
    may rest on, as of `check`.
    """
    given = {}
    file, source = _source(schedule, given)
    if budget is None:
        budget = 0 if tries else 10
    answer, texts = _sdma.explore(source, file, _machine(machine), settings({**given, **params}), tries, budget, best, seed,
                                   profile, _assumed(assume))
    answer = results.Explore(answer)
    answer.schedules = [Schedule.parse(text) for text in texts]
    return answer


@arguments.explained
def reduce(schedule: _sdma.AnySchedule, *, rule: str = "", tries: int = 5000, profile: str = "conservative", assume: Sequence[str] = (),
           **params: _sdma.Params) -> results.Reduced:
    """The smallest schedule in which the checker still finds this rule; "": the first error or warning (docs/check.md)."""
    given = {}
    file, source = _source(schedule, given)
    answer = results.Reduced(_sdma.reduce(source, file, settings({**given, **params}), profile, _assumed(assume), rule, tries))
    answer.schedule = Schedule.parse(answer["text"])
    return answer


@arguments.explained
def run(schedule: _sdma.AnySchedule, *, device: str = "soft", order: str = "strict", gpus: Sequence[int] = (), seed: int = 0,
        timeout: float = 10, inputs: Mapping[str, _sdma.Bytes] | None = None, outputs: Mapping[str, _sdma.Bytes] | None = None,
        trace: bool | int = False) -> results.Run:
    """Runs a schedule on a device of its own, and checks its expectations.

    `inputs`: the first bytes of buffers, by name: {"gpu0.in": array}. `outputs`: arrays that receive those of buffers after the run.
    `timeout`: seconds from the beginning of the run to its deadline. `trace`: record the run, on a software device; a number: with room
    for so many events, of which True has 262,144. `lost` of the recording says how many had none. A run that fails is an answer, not an
    exception.
    """
    if hasattr(gpus, "__index__"):
        raise TypeError(f"gpus is a list of GPUs of the device: pass [{gpus}], or none for the first")
    words = (list(gpus), seed, timeout, list((inputs or {}).items()), list((outputs or {}).items()))
    if isinstance(device, Device):
        raise TypeError("this device is open: use device.run(schedule)")
    report, diagnosis, recording = _sdma.run(_schedule(schedule), device, order, *words, None if trace is False else 0 if trace is True else trace)
    answer = results.Run(report)
    answer.diagnosis, answer.trace = diagnosis, recording
    return answer


def compare(measured: Trace | str | os.PathLike[str], other: Schedule | Trace | str | os.PathLike[str], *,
            machine: _sdma.AnyMachine = None) -> dict[str, Any]:
    """A recorded run beside the simulation of its Schedule, or beside another recording."""
    measured = _trace(measured)
    if isinstance(other, Schedule):
        return _sdma.compare(measured, _sdma.simulate_trace(other, _machine(machine)), True)
    return _sdma.compare(measured, _trace(other), False)


def trace(source: Trace | str | os.PathLike[str]) -> Trace:
    """The recording in a file that `sdma run --trace NAME.jsonl` or Trace.save has written."""
    return _trace(source)


def _trace(source):
    if isinstance(source, Trace):
        return source
    return Trace.read(source)


def topology(node: _sdma.Node = None) -> dict[str, Any]:
    """The GPUs, engines and links of a node. `str` of it is a table."""
    answer, text = _sdma.topology(*_node(node))
    answer = results.Text(answer)
    answer._text = text
    return answer


@arguments.explained
def calibrate(table: str | os.PathLike[str], *, start: _sdma.AnyMachine = None, predict: bool = False, limit: float = 600) -> results.Calibration:
    """Fits a machine to the measurements of a table, whose lines name the free parameters. `limit`: seconds.

    `predict`: fit nothing, and compare what `start` predicts with the table.
    """
    path, start = os.fspath(table), _machine(start)
    if predict:
        return results.Calibration(_sdma.predicted(path, start))
    answer, machine = _sdma.fitted(path, start, limit)
    answer = results.Calibration(answer)
    answer.machine = machine
    return answer


def doctor(*sources: Trace | bytes | str | os.PathLike[str]) -> dict[str, Any]:
    """Why queues hang: from recordings, `.ring` files and dumps as text. `str` of it is the report. The verdict is "hung",
    "undecided", "waits" (for the host) or "healthy". After a run that failed, `Run.diagnosis` has the answer already. Core files,
    processes and the kernel's log are read by the program: `sdma doctor`.
    """
    traces, dumps = [], []
    for i, source in enumerate(sources):
        if isinstance(source, Trace):
            traces.append(source)
        elif isinstance(source, (bytes, bytearray, memoryview)):
            dumps.append((f"source {i + 1}", bytes(source)))
        else:
            data = contents(source)
            if data.startswith(b'{"sdma_trace"'):
                traces.append(Trace.parse(data, os.fspath(source)))
            else:
                dumps.append((os.fspath(source), data))
    answer, text = _sdma.diagnose(traces, dumps)
    answer = results.Text(answer)
    answer._text = text
    return answer


def plan(collective: str, *, bytes: _sdma.Params | None = None, gpus: int | None = None, matrix: Sequence[Sequence[int]] | Any = None,
         **options: Any) -> Plan:
    """The schedule of a collective (docs/collectives.md): plan("all_gather", bytes="1M", variant="b2b", prelaunch="shared").

    `gpus`: 8, if nothing says how many. `matrix`: of an alltoallv: GPU i sends matrix[i][d] bytes to GPU d. It is a list of rows, or an
    array (NumPy, PyTorch, or what has a buffer), and says how many GPUs there are. `bytes` scales it, as in `sdma plan`: the GPU that sends
    the most sends so many.
    """
    if not isinstance(collective, str):
        raise TypeError(f"plan() takes the name of a collective, such as 'all_gather', not {collective!r}")
    words = [("collective", collective)]
    if matrix is not None:
        words.append(("matrix", ",".join(matrices.sizes("matrix", matrix))))
    elif bytes is None:
        raise TypeError("plan() needs bytes=, or matrix= for an alltoallv")
    elif gpus is None:
        gpus = 8
    words += [(name, str(value)) for name, value in (("bytes", bytes), ("gpus", gpus)) if value is not None]
    for name, value in options.items():
        if isinstance(value, bool):
            value = "yes" if value else "no"
        elif isinstance(value, (list, tuple)):
            value = ",".join(str(v) for v in value)
        words.append((name, str(value)))
    schedule, variant, notes = _sdma.plan(words)
    return Plan(schedule, variant, notes)


class Plan:
    """The schedule of a collective, the variant that was chosen, and notes about fallbacks."""

    def __init__(self, schedule: Schedule, variant: str, notes: list[str]):
        self.schedule, self.variant, self.notes = schedule, variant, notes

    def __repr__(self):
        return f"<Plan {self.variant}: {self.schedule!r}>"
