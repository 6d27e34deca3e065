# SPDX-License-Identifier: MIT
"""The verbs of the program `sdma` that the extension does, as functions."""
import os

from . import _sdma, results
from .devices import Device
from .schedules import Schedule, settings
from .traces import Trace

__all__ = ["Machine", "Plan", "calibrate", "check", "compare", "doctor", "explore", "plan", "reduce", "run", "simulate", "speed_ups", "sweep",
           "topology", "trace"]
Machine = _sdma.Machine


def _file(path):
    with open(path, "rb") as file:
        return file.read()


def _read_machine(path):
    return Machine.parse(_file(path), os.fspath(path))


Machine.read = staticmethod(_read_machine)
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


def _node(node):
    """(device or layout, text, file) for the extension."""
    if node is None:
        return "", "", ""
    if isinstance(node, str) and _sdma.names_node(node):
        return node, "", ""
    return "", _file(node), os.fspath(node)


def check(schedule, *, profile="conservative", assume=(), topology=None, max_findings=20, open=False, strict=False):
    return results.Check(_sdma.check(_schedule(schedule), profile, list(assume), *_node(topology), max_findings, open, strict))


def simulate(schedule, machine=None, *, sensitivity=True, contents=False, seed=0):
    schedule, machine = _schedule(schedule).copy(), _machine(machine).copy()
    answer = results.Simulation(_sdma.simulate(schedule, machine, sensitivity, contents, seed))
    answer._record = lambda: _sdma.simulate_trace(schedule, machine)
    return answer


def speed_ups(baseline, schedules, machine=None):
    return _sdma.speed_ups(_schedule(baseline), [_schedule(s) for s in schedules], _machine(machine))


def _source(schedule, given):
    """The file and the text of a schedule that is read again. Adds the params that it was read with to `given`."""
    if not isinstance(schedule, Schedule):
        return os.fspath(schedule), _file(schedule)
    if schedule.source is None:
        raise TypeError("this reads its schedules again for each value: pass the path of a text, or a schedule that was read")
    for name, value in schedule.given.items():
        if given.setdefault(name, value) != value:
            raise ValueError(f"the schedules were read with different values of {name}: pass {name}=... here, and paths")
    return schedule.file, schedule.source


def sweep(schedules, *axes, machine=None, **params):
    if isinstance(schedules, (str, os.PathLike, Schedule)):
        schedules = [schedules]
    given = {}
    files = [_source(s, given) for s in schedules]
    answer, svg = _sdma.sweep(files, list(axes), _machine(machine), settings({**given, **params}))
    answer = results.Sweep(answer)
    answer.svg = svg
    return answer


def explore(schedule, *, machine=None, tries=0, budget=None, best=5, seed=0, **params):
    given = {}
    file, source = _source(schedule, given)
    if budget is None:
        budget = 0 if tries else 10
    answer, texts = _sdma.explore(source, file, _machine(machine), settings({**given, **params}), tries, budget, best, seed)
    answer = results.Explore(answer)
    answer.schedules = [Schedule.parse(text) for text in texts]
    return answer


def reduce(schedule, *, rule="", tries=5000, profile="conservative", assume=(), **params):
    given = {}
    file, source = _source(schedule, given)
    answer = results.Reduced(_sdma.reduce(source, file, settings({**given, **params}), profile, list(assume), rule, tries))
    answer.schedule = Schedule.parse(answer["text"])
    return answer


def run(schedule, *, device="soft", order="strict", gpus=(), seed=0, timeout=10, inputs=None, outputs=None, trace=False):
    words = (list(gpus), seed, timeout, list((inputs or {}).items()), list((outputs or {}).items()))
    if isinstance(device, Device):
        raise TypeError("this device is open: use device.run(schedule)")
    report, diagnosis, recording = _sdma.run(_schedule(schedule), device, order, *words, trace)
    answer = results.Run(report)
    answer.diagnosis, answer.trace = diagnosis, recording
    return answer


def compare(measured, other, *, machine=None):
    measured = _trace(measured)
    if isinstance(other, Schedule):
        return _sdma.compare(measured, _sdma.simulate_trace(other, _machine(machine)), True)
    return _sdma.compare(measured, _trace(other), False)


def trace(source):
    return _trace(source)


def _trace(source):
    if isinstance(source, Trace):
        return source
    return Trace.read(source)


def topology(node=None):
    answer, text = _sdma.topology(*_node(node))
    answer = results.Text(answer)
    answer._text = text
    return answer


def calibrate(table, *, start=None, predict=False, limit=600):
    path, start = os.fspath(table), _machine(start)
    if predict:
        return results.Calibration(_sdma.predicted(path, start))
    answer, machine = _sdma.fitted(path, start, limit)
    answer = results.Calibration(answer)
    answer.machine = machine
    return answer


def doctor(*sources):
    traces, dumps = [], []
    for i, source in enumerate(sources):
        if isinstance(source, Trace):
            traces.append(source)
        elif isinstance(source, (bytes, bytearray, memoryview)):
            dumps.append((f"source {i + 1}", bytes(source)))
        else:
            data = _file(source)
            if data.startswith(b'{"sdma_trace"'):
                traces.append(Trace.parse(data, os.fspath(source)))
            else:
                dumps.append((os.fspath(source), data))
    answer, text = _sdma.diagnose(traces, dumps)
    answer = results.Text(answer)
    answer._text = text
    return answer


def plan(collective, *, bytes, gpus=8, **options):
    words = [("collective", collective), ("bytes", str(bytes)), ("gpus", str(gpus))]
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

    def __init__(self, schedule, variant, notes):
        self.schedule, self.variant, self.notes = schedule, variant, notes

    def __repr__(self):
        return f"<Plan {self.variant}: {self.schedule!r}>"
