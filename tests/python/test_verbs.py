# SPDX-License-Identifier: MIT
"""Each verb, beside what the program prints with --json; and the manuals (verbs.py: that each verb has one)."""
import array
import ast
import inspect
import json
import operator
import os
import re
import subprocess

import pytest
import sdma
from sdma import packets

ALL_GATHER = "2_allgather_b2b.sdma"
OPEN = "9_allgather_open.sdma"


@pytest.fixture(scope="session")
def tool():
    def call(*words, code=0):
        done = subprocess.run([os.environ["SDMA_TOOL"], *map(str, words)], capture_output=True, text=True)
        assert done.returncode == code, done.stderr
        return done.stdout

    return call


@pytest.fixture(scope="session")
def all_gather(schedules):
    return sdma.Schedule.read(schedules / ALL_GATHER, N=8, chunk="64K")


def public(of):
    return {name: value for name, value in vars(of).items() if not name.startswith("_")}


def test_the_public_names():
    modules = {"packets", "arguments", "errors", "devices", "files", "manual", "matrices", "program", "results", "schedules", "traces", "verbs"}
    assert set(public(sdma)) - modules | {"packets"} == set(sdma.__all__)


def test_what_is_written_in_python_has_a_docstring_and_types():
    def examine(what, function):
        parameters = inspect.signature(function).parameters.values()
        assert [p.name for p in parameters if p.annotation is p.empty and p.name != "self"] == [], what
        assert inspect.signature(function).return_annotation is not inspect.Signature.empty or what.endswith("__init__"), what

    for name in set(sdma.__all__) - {"EPOCH", "fmt", "packets"} - set(EXTENSION):
        value = getattr(sdma, name)
        assert inspect.getdoc(value), name
        if inspect.isfunction(value):
            examine(name, value)
            continue
        for member, function in (public(value) | {"__init__": vars(value).get("__init__")}).items():
            function = function.fget if isinstance(function, property) else function
            if inspect.isfunction(function):
                examine(f"{name}.{member}", function)


EXTENSION = ("Machine", "Queue", "Schedule", "Script", "Trace")


def test_the_manual_of_the_extension_has_the_names_and_parameters_of_its_classes(root):
    manual = ast.parse((root / "python/sdma/_sdma.pyi").read_text())
    classes = {n.name: n for n in manual.body if isinstance(n, ast.ClassDef)}
    assert set(classes) == set(EXTENSION)
    for name, described in classes.items():
        value, members = getattr(sdma, name), {n.name: n for n in described.body if isinstance(n, ast.FunctionDef)}
        assert set(public(value)) == {n for n in members if not n.startswith("_")}, name
        for member, node in members.items():
            words = [getattr(d, "id", "") for d in node.decorator_list]
            if "property" in words or member.startswith("__"):
                continue
            given = [a.arg for a in [*node.args.posonlyargs, *node.args.args, node.args.vararg, *node.args.kwonlyargs, node.args.kwarg] if a]
            given = given if "staticmethod" in words else given[1:]
            have = list(inspect.signature(getattr(value, member)).parameters)
            # A method that Python adds shows its object, one of the extension does not.
            assert given == have[len(have) - len(given) :] and len(have) - len(given) <= 1, (name, member, have)


def test_every_function_method_and_property_has_a_docstring(root):
    """What `sdma.simulate?` shows, and help(): of the package, of its classes with what they inherit from each other, and of packets."""
    def examine(what, value):
        words = inspect.getdoc(value)
        assert words and words.strip(), f"{what} has no docstring"
        # A class of the language has one, which would say nothing here.
        assert words not in map(inspect.getdoc, (object, dict, int, str, property)), what
        return words

    found = 0
    of_packets = {f"packets.{name}" for name, value in public(packets).items() if inspect.isclass(value) and issubclass(value, sdma.Packet)}
    for name in sorted(set(sdma.__all__) | of_packets):
        value = operator.attrgetter(name)(sdma)
        examine(name, value)
        for each in value.__mro__ if inspect.isclass(value) else ():
            for member in public(each) if each.__module__.startswith("sdma") else ():
                attribute = vars(each)[member]
                if callable(attribute) or inspect.isdatadescriptor(attribute) or isinstance(attribute, staticmethod):
                    examine(f"{name}.{member}", getattr(each, member) if isinstance(attribute, staticmethod) else attribute)
                    found += 1
    assert found > 90

    # Those of the extension say what its manual says.
    manual = ast.parse((root / "python/sdma/_sdma.pyi").read_text())
    for described in (n for n in manual.body if isinstance(n, ast.ClassDef)):
        value = getattr(sdma, described.name)
        assert inspect.getdoc(value) == ast.get_docstring(described)
        for node in (n for n in described.body if isinstance(n, ast.FunctionDef) and not n.name.startswith("_")):
            attribute = inspect.getattr_static(value, node.name)
            attribute = getattr(value, node.name) if isinstance(attribute, staticmethod) else attribute
            assert inspect.getdoc(attribute) == ast.get_docstring(node), (described.name, node.name)


def test_check_answers_as_the_program(root, schedules):
    verdicts = set()
    # Build folders have copies of the tree, which other tests write and remove.
    for path in sorted(path for folder in ("examples", "share", "tests") for path in (root / folder).rglob("*.sdma")):
        done = subprocess.run([os.environ["SDMA_TOOL"], "check", "--json", path], capture_output=True, text=True)
        *findings, answer = [json.loads(line) for line in done.stdout.splitlines()]
        if answer["verdict"] == "unread":
            with pytest.raises(sdma.Error):
                sdma.check(path)
            continue
        have = sdma.check(path)
        assert {k: v for k, v in have.items() if k != "findings"} == answer
        assert have["findings"] == findings
        assert have["exit_code"] == done.returncode
        assert have.proved == (have["verdict"] == "proved")
        verdicts.add(have["verdict"])
    assert verdicts == {"proved", "unproved", "refuted"}
    assert "<table>" in sdma.check(schedules / "7_race.sdma")._repr_html_()


def test_check_takes_the_options_of_the_program(all_gather):
    assert sdma.check(all_gather, profile="strict", assume=["poll_yields=no"])["assumed"]["options"]
    assert sdma.check(all_gather, topology="mi300x:8")["verdict"] == "proved"
    for wrong, words in (({"profile": "none"}, "conservative"), ({"assume": ["x=y"]}, "poll=full")):
        with pytest.raises(ValueError, match=words):
            sdma.check(all_gather, **wrong)
    with pytest.raises(TypeError, match="pass a Schedule"):
        sdma.check(7)


def test_simulate_answers_as_the_program(tool, schedules, all_gather):
    words = ("--set", "N=8", "--set", "chunk=64K", schedules / ALL_GATHER)
    answer = json.loads(tool("simulate", "--json", *words))
    have = sdma.simulate(all_gather)
    assert {k: have[k] for k in answer} == answer
    assert have["uncertainty_ns"] > 0
    assert "uncertainty_ns" not in sdma.simulate(all_gather, sensitivity=False)
    answer = json.loads(tool("simulate", "--json", "--machine=mi300x:8", "--parameter", "engine.poll_ns=9000", *words))
    machine = sdma.Machine("mi300x:8")
    machine["engine.poll_ns"] = 9000
    assert sdma.simulate(all_gather, machine)["ns"] == answer["ns"]


def test_a_simulation_draws_what_it_was_of(all_gather):
    s = all_gather.copy()
    answer = sdma.simulate(s, sensitivity=False)
    s.add_host("later").wait(s["host.done"] if "host.done" in [g["name"] for g in s.signals] else s.signals[0]["address"], "eq", 99)
    assert answer._repr_svg_().startswith("<svg") and len(answer.trace()) > 100


def test_pictures_have_a_title_a_size_and_other_schedules(schedules, all_gather):
    ours = sdma.simulate(all_gather, sensitivity=False)
    other = sdma.simulate(schedules / "5_allgather_prelaunch.sdma", sensitivity=False)
    svg = ours.to_svg("two ways", size=(900, 2000), beside=[other.trace()])
    assert 'width="900" height="2000"' in svg and ">two ways<" in svg
    assert ALL_GATHER in svg and "5_allgather_prelaunch.sdma" in svg
    assert "5_allgather_prelaunch" not in ours.to_svg() and "simulated" in ours.to_svg()
    sweep = sdma.sweep(schedules / ALL_GATHER, "chunk=4K,64K", N=2)
    assert sweep.to_svg() == sweep.svg
    assert ">mine<" in sweep.to_svg("mine") and 'width="500" height="300"' in sweep.to_svg(size=(500, 300))
    for wrong in ((100, 300), (300, 1e9), (float("nan"), 300)):
        with pytest.raises(ValueError, match="from 200 to 10000 pixels"):
            sweep.to_svg(size=wrong)
        with pytest.raises(ValueError, match="from 200 to 10000 pixels"):
            ours.to_svg(size=wrong)


def test_sweep_answers_as_the_program(tool, schedules):
    path = schedules / ALL_GATHER
    answer = json.loads(tool("simulate", "--json", "--set", "N=4", "--sweep", "chunk=4K..1M*4", path))
    have = sdma.sweep(path, "chunk=4K..1M*4", N=4)
    assert have == answer
    assert [row["chunk"] for row in have.rows] == [4096, 16384, 65536, 262144, 1048576]
    assert have._repr_svg_().startswith("<svg")
    again = sdma.Schedule.read(path, N=2)
    assert sdma.sweep(again, "chunk=4K,8K") == sdma.sweep(path, "chunk=4K,8K", N=2) != sdma.sweep(again, "chunk=4K,8K", N=8)
    with pytest.raises(ValueError, match="different values of N"):
        sdma.sweep([again, sdma.Schedule.read(path, N=8)], "chunk=4K,8K")
    two = sdma.sweep([path, sdma.Schedule.read(schedules / "5_allgather_prelaunch.sdma")], "chunk=4K,8K", "engine.poll_ns=500,1000", N=4)
    assert len(two.rows) == 8 and {"chunk", "engine.poll_ns", "file", "ns", "uncertainty_ns", "speed_up", "speed_up_uncertainty", "tie"} == set(two.rows[0])
    assert all(row["uncertainty_ns"] > 0 for row in two.rows)
    for axes in ((), ("chunk",), ("chunk=4K", "chunk=8K"), ("a=1", "b=2", "c=3"), ("engine.nothing=1",)):
        with pytest.raises(sdma.Error):
            sdma.sweep(path, *axes)
    # One that was built, or changed, has no params, and machines vary all the same.
    built = sdma.Schedule.parse(str(again))
    built.add_signal("more")
    assert built.source is None and not built.given
    assert [row["ns"] for row in sdma.sweep(built, "engine.poll_ns=500,1000").rows] == [
        row["ns"] for row in sdma.sweep(again, "engine.poll_ns=500,1000").rows]
    with pytest.raises(sdma.Error, match="there is no param 'chunk'"):
        sdma.sweep(built, "chunk=4K")


def test_explore_answers_as_the_program(tool, schedules):
    path = schedules / OPEN
    answer = json.loads(tool("explore", "--json", "--set", "N=4", "--tries=12", "--best=2", path))
    have = sdma.explore(path, N=4, tries=12, best=2)
    assert have == answer
    assert sdma.explore(sdma.Schedule.read(path, N=2), tries=12) == sdma.explore(path, N=2, tries=12) != answer
    assert len(have.schedules) == 2 and all(sdma.check(s).proved for s in have.schedules)
    with pytest.raises(sdma.Error, match="leaves nothing open"):
        sdma.explore(schedules / ALL_GATHER, tries=3)
    assert sdma.explore(path, N=4, tries=3, assume=["fence=full"])["searches"][0]["assumes"] == ["fence=full"]
    with pytest.raises(ValueError, match="cannot be assumed"):
        sdma.explore(path, N=4, tries=3, assume=["fence=none"])


def test_run_answers_as_the_program(tool, schedules):
    path = schedules / ALL_GATHER
    (file,) = json.loads(tool("run", "--json", "--set", "N=4", path))["files"]
    (answer,) = file["runs"]
    have = sdma.run(sdma.Schedule.read(path, N=4))
    times = {"elapsed_ns", "round_ns"}
    assert times <= set(have)
    # The host may see the last completion before the engine's last rptr, so these differ from run to run.
    read = [q.pop("read_all") for q in have["queues"] + answer["queues"]]
    assert len(read) == 8 and all(isinstance(each, bool) for each in read)
    assert {k: v for k, v in have.items() if k not in times} == {k: answer[k] for k in have if k not in times}
    assert len(have["queues"]) == 4 and have["expectations"]


def test_speed_ups(schedules, all_gather):
    (same,) = sdma.speed_ups(all_gather, [all_gather])
    assert same["value"] == 1 and same["tie"]


def test_compare_and_trace(tool, schedules, tmp_path, all_gather):
    path = tmp_path / "run.jsonl"
    tool("run", "--set", "N=8", "--set", "chunk=64K", "--trace", path, schedules / ALL_GATHER)
    t = sdma.trace(path)
    assert len(t) > 50 and t.lost == 0 and t.lines[0]["events"] == len(t)
    for name, begin in (("a.json", "{"), ("a.html", "<!"), ("a.jsonl", '{"sdma_trace"')):
        t.save(tmp_path / name)
        assert (tmp_path / name).read_text().startswith(begin)
    assert (tmp_path / "a.jsonl").read_text() == path.read_text()
    assert t._repr_svg_().startswith("<svg")
    answer = sdma.compare(t, all_gather)
    assert {"origin", "run", "queues", "differences"} <= set(answer)
    assert sdma.compare(path, path)["differences"] == []
    with pytest.raises(ValueError, match="perfetto"):
        t.to_string("png")
    with pytest.raises(sdma.Error):
        sdma.Trace.parse("{}")
    with pytest.raises(FileNotFoundError):
        sdma.trace(tmp_path / "none.jsonl")


def test_machines(tool, tmp_path):
    m = sdma.Machine()
    assert json.loads(m.to_json()) == m.to_dict() == json.loads(tool("simulate", "--show-machine", "--json"))
    assert str(m) == tool("simulate", "--show-machine")
    path = tmp_path / "m.json"
    path.write_text(m.to_json())
    assert sdma.Machine.read(path) == m
    other = m.copy()
    other["engine.poll_ns"] = m["engine.poll_ns"] * 2
    assert other != m and other["engine.poll_ns"] == 2 * m["engine.poll_ns"]
    other["xgmi.rate"] = 50
    for wrong, error in (("engine.pol_ns", KeyError), ("engine.poll_ns", ValueError)):
        with pytest.raises(error):
            other[wrong] = -1
    with pytest.raises(KeyError, match="each link"):
        m["xgmi.rate"]
    with pytest.raises(sdma.Error, match="name of a layout"):
        sdma.Machine("nothing")
    with pytest.raises(sdma.Error, match="mine.json"):
        sdma.Machine.parse("{", "mine.json")


def test_a_link_of_unknown_rate_has_no_default(tool, schedules):
    node = json.loads(tool("topology", "--gpus=2", "--json"))
    for link in node["links"]:
        link["mb_per_s"] = 0
    machine = sdma.Machine.parse(json.dumps(node), "node.json")
    copy = sdma.Schedule.read(schedules / "1_copy.sdma")
    with pytest.raises(sdma.Error, match="whose rate is unknown: node.json does not state it"):
        sdma.simulate(copy, machine)
    machine["xgmi.rate"] = machine["pcie.rate"] = 64
    assert sdma.simulate(copy, machine)["ns"] == sdma.simulate(copy)["ns"]
    assert sdma.simulate(copy, machine)["defaults"] == ["all parameters are those of mi300x.json"]
    assert sdma.sweep(schedules / "1_copy.sdma", "pcie.rate=64", machine=machine)["defaults"] == ["all parameters are those of mi300x.json"]


@pytest.mark.parametrize("name", ["kfd", "cuda", "rocr"])
def test_a_node_by_the_name_of_a_device(name):
    """The hardware, or why there is none; a FileNotFoundError would mean that the name is taken for a file."""
    try:
        assert sdma.topology(name)["gpus"]
    except sdma.Error as e:
        assert "hint: " in str(e)


def test_topology(tool):
    for words in ((), ("ring:4",)):
        assert sdma.topology(*words) == json.loads(tool("topology", "--json", *words))
        assert str(sdma.topology(*words)) == tool("topology", *words)


def test_calibrate(tool, root):
    table = root / "share/measured/two-h200/mechanisms/visit3.csv"
    assert sdma.calibrate(table, predict=True) == json.loads(tool("calibrate", "--predict", "--json", "--from", table))
    with pytest.raises(ValueError, match="seconds"):
        sdma.calibrate(table, limit=0)


def test_plan():
    p = sdma.plan("all_to_all", bytes="64K", gpus=4, variant="swap", in_place=True, offsets=[4, 8])
    assert p.variant == "swap" and p.notes and sdma.run(p.schedule)
    assert sdma.plan("all_gather", bytes=4096, gpus=2).variant in ("pcpy", "bcst", "b2b")
    for wrong in ({"gpus": 1}, {"variant": "best"}, {"nothing": 3}):
        with pytest.raises(sdma.Error):
            sdma.plan("all_gather", **{"bytes": 4096, **wrong})


def test_plan_of_a_matrix():
    numpy = pytest.importorskip("numpy")
    rows = [[0, 1 << 20], [4096, 0]]
    p = sdma.plan("alltoallv", matrix=rows, variant="pcpy")
    assert str(p.schedule) == str(sdma.plan("alltoallv", bytes=1 << 20, gpus=2, sizes=[0, 1 << 20, 4096, 0], variant="pcpy").schedule)
    assert sdma.simulate(p.schedule, sensitivity=False)["bytes"] == (1 << 20) + 4096
    flat = array.array("Q", [0, 1 << 20, 4096, 0])
    for same in (numpy.array(rows), numpy.array(rows, numpy.int32)[:, :], tuple(map(tuple, rows)), [[0, "1M"], ["4K", 0]],
                 [array.array("Q", r) for r in rows], memoryview(flat).cast("B").cast("Q", (2, 2))):
        assert str(sdma.plan("alltoallv", matrix=same, variant="pcpy").schedule) == str(p.schedule)
    # What the matrix says may be said again; bytes scale it, as in the program.
    assert str(sdma.plan("alltoallv", matrix=rows, gpus=2, bytes="1M", variant="pcpy").schedule) == str(p.schedule)
    half = sdma.plan("alltoallv", matrix=rows, bytes="512K", variant="pcpy")
    assert sdma.simulate(half.schedule, sensitivity=False)["bytes"] == (1 << 19) + 2048
    with pytest.raises(sdma.Error, match="3 GPUs need 9 sizes"):
        sdma.plan("alltoallv", matrix=rows, gpus=3)
    with pytest.raises(TypeError):
        sdma.plan("all_gather")


@pytest.mark.parametrize("wrong, error, words", [
    ([[0, 1], [2]], ValueError, "matrix, row 1: it has 1 column, and the matrix has 2 rows"),
    ([[0, 1, 2], [2, 0, 1]], ValueError, "matrix, row 0: it has 3 columns, and the matrix has 2 rows"),
    ([[0, 1], 5], TypeError, "matrix, row 1: pass a list of numbers, not 5"),
    ([[0, 1], [4096.0, 0]], TypeError, "matrix, row 1, column 0: pass a number or text such as '64K', not 4096.0: convert it to integers first"),
    ([[0, None], [1, 0]], TypeError, "matrix, row 0, column 1: pass a number or text such as '64K', not None"),
    ("moe.csv", TypeError, "matrix: pass rows of numbers, as nested lists or as an array, not str"),
    ([[0, -1], [1, 0]], ValueError, "matrix, row 0, column 1: -1 is not a number of bytes"),
    ([[0, 1], [1 << 63, 0]], ValueError, "matrix, row 1, column 0: 9223372036854775808 is not a number of bytes"),
    ([[0, float("nan")], [1, 0]], TypeError, "matrix, row 0, column 1: pass a number or text such as '64K', not nan"),
    ([[]], ValueError, "matrix, row 0: it has 0 columns, and the matrix has 1 row"),
])
def test_an_error_of_a_matrix_names_row_and_column(wrong, error, words):
    with pytest.raises(error) as raised:
        sdma.plan("alltoallv", matrix=wrong)
    assert words in str(raised.value)


def test_a_param_takes_a_list_a_table_or_an_array():
    numpy = pytest.importorskip("numpy")
    text = """sdma 1
param moe = [[0, 4K], [8K, 0]]
param extra = [1]
gpus len(moe)
for i in 0..len(moe)
  for d in 0..len(moe)
    when moe[i, d] > 0: buffer gpu{i}.to{d} bytes=moe[i, d]*sum(extra)
  end
end
"""
    def sizes(**params):
        return [b["bytes"] for b in sdma.Schedule.parse(text, **params).buffers]

    assert sizes() == [4096, 8192]
    rows = [[0, 1, 2], [3, 0, 4], [5, 6, 0]]
    for moe in (rows, numpy.array(rows), [["0", "1", 2], [3, 0, 4], [5, 6, 0]]):
        assert sizes(moe=moe, extra=(1, 1)) == [2, 4, 6, 8, 10, 12]
    with pytest.raises(ValueError, match="param moe, row 2: it has 1 column, and row 0 has 3"):
        sizes(moe=[*rows[:2], [5]])
    with pytest.raises(TypeError, match="param extra, number 1: pass a number or text such as '64K', not 0.5"):
        sizes(extra=[1, 0.5])


def test_doctor(tmp_path, tool):
    text = "poll_mem addr=0x7f0000001000 func=eq reference=1\nfence addr=0x7f0000001008 value=1\n"
    lines = "".join(f"{d:08x} " for d in sdma.dis(sdma.as_(text))[0].dwords)
    path = tmp_path / "ring.txt"
    path.write_text(f"rptr=0x0 wptr=0x18\n{lines}\n")
    answer = sdma.doctor(path)
    assert answer["verdict"] in ("hung", "undecided") and "ring.txt" in str(answer)
    assert sdma.doctor(path.read_bytes())["findings"]
    with pytest.raises(sdma.Error):
        sdma.doctor()


def test_emulate(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="install the tools"):
        sdma.emulate(["true"])
    program = tmp_path / "sdma"
    program.write_text('#!/bin/sh\necho "$@"\n')
    program.chmod(0o755)
    done = sdma.emulate(["rocminfo", "-v"], gpus=4, capture_output=True, text=True)
    assert done.stdout == "emulate --gpus=4 -- rocminfo -v\n"


@pytest.fixture
def in_path(monkeypatch):
    monkeypatch.setenv("PATH", os.path.dirname(os.environ["SDMA_TOOL"]), prepend=os.pathsep)


def test_each_verb_of_the_program_can_be_called(in_path, tool):
    verbs = re.findall(r"(?m)^  (\w+) {3,}", tool("--help").partition("Subcommands:")[2].partition("Exit codes:")[0])
    assert len(verbs) > 14
    for verb in verbs:
        assert callable(getattr(sdma, "as_" if verb == "as" else verb))


def test_a_verb_without_a_function_runs_the_program(monkeypatch, tmp_path):
    program = tmp_path / "sdma"
    program.write_text("""#!/bin/sh
case $1 in
  --help) printf 'Subcommands:\\n  nap        sleep\\n\\nExit codes:\\n  0    slept\\n' ;;
  nap) shift; printf '{"words": "%s"}' "$*" ;;
esac
""")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert sdma.nap("a", tmp_path, deep=True, light=False, for_ms=3, dream=["x", "y"]) == {
        "words": f"--json --deep --for-ms=3 --dream=x --dream=y a {tmp_path}"}  # fmt: skip
    with pytest.raises(AttributeError, match="no attribute 'nup'"):
        sdma.nup
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    with pytest.raises(AttributeError, match="no attribute 'nap'"):
        sdma.nap
    with pytest.raises(FileNotFoundError, match="install the tools"):
        sdma.tool("nap")


def test_tool(in_path, tmp_path):
    path = tmp_path / "ring.bin"
    path.write_bytes(sdma.as_("fence addr=0x1001 value=1\nnop\n"))
    assert [packet["packet"] for packet in sdma.tool("dis", path)] == ["fence", "nop"]
    *_, verdict = sdma.tool("check", path, ring_bytes="4K")
    assert verdict["verdict"] == "refuted" and verdict["exit_code"] == 1
    assert sdma.tool("topology", gpus=2) == sdma.topology("mi300x:2")
    with pytest.raises(sdma.Error, match="(?s)^.*: error: .*hint: ") as error:
        sdma.tool("topology", tmp_path / "missing")
    assert error.value.diagnostics[0]["message"] == error.value.message
    with pytest.raises(sdma.Error, match="did you mean '--gpus'"):
        sdma.tool("topology", gpu=2)


def test_dis_agrees_with_the_program(tool, tmp_path):
    data = sdma.as_("copy_linear bytes=4K src=0x1000 dst=0x2000\n.dword 0x00000003\nfence addr=0x1000 value=-1\n")
    path = tmp_path / "ring.bin"
    path.write_bytes(data)
    lines = [json.loads(line) for line in tool("dis", "--json", path).splitlines()]
    have = sdma.dis(data)
    assert [p.name for p in have] == [line["packet"] for line in lines]
    assert [p.dwords for p in have] == [[int(d, 16) for d in line["dwords"]] for line in lines]
    for p, line in zip(have, lines):
        for name, value in line.get("fields", {}).items():
            assert p.fields[name] == (int(value, 16) if isinstance(value, str) and value.startswith("0x") else value)
    assert isinstance(have[1], packets.Unknown)


@pytest.mark.parametrize("wrong, words", [
    (lambda s: sdma.check(s, profil="rocr"), "check(): there is no argument 'profil'; did you mean 'profile'?"),
    (lambda s: sdma.check(s, max_findings=-1), "check(): max_findings cannot be negative: -1"),
    (lambda s: sdma.check(s, assume="poll=full"), "assume is a list: pass ['poll=full']"),
    (lambda s: sdma.simulate(s, seed="x"), "simulate(): seed is a whole number, not 'x'"),
    (lambda s: sdma.simulate(s, sensitivity=False).to_svg("t", size=5), "Trace.to_svg(): size or beside has a type that this does not take"),
    (lambda s: sdma.run(s, timeout="1s"), "run(): timeout is a number, not '1s'"),
    (lambda s: sdma.run(s, gpus=4), "gpus is a list of GPUs of the device: pass [4], or none for the first"),
    (lambda s: sdma.plan(3, bytes=1), "plan() takes the name of a collective, such as 'all_gather', not 3"),
    (lambda s: sdma.as_(5), "pass text, or packets of sdma.packets, not int"),
    (lambda s: sdma.Machine().__setitem__("engine.poll_ns", "x"), "Machine.__setitem__(): value is a number, not 'x'"),
    # A number is not a path: it would be a file that the caller has open.
    *[(lambda s, f=f: f(0), "expected str, bytes or os.PathLike object, not int") for f in (sdma.trace, sdma.topology, sdma.doctor, sdma.Machine.read)],
])
def test_a_type_error_names_the_argument(schedules, wrong, words):
    with pytest.raises(TypeError) as raised:
        wrong(sdma.Schedule.read(schedules / ALL_GATHER, N=2))
    assert str(raised.value) == words


def test_an_empty_file_is_not_a_node(tmp_path, schedules):
    empty = tmp_path / "empty"
    empty.write_text("\n")
    for use in (sdma.topology, lambda node: sdma.check(schedules / ALL_GATHER, topology=node)):
        with pytest.raises(ValueError, match="empty: this file is empty: name one such as `sdma topology --json` prints"):
            use(empty)


def test_an_unknown_layout_is_told_which_there_are(schedules):
    for use in (sdma.topology, lambda name: sdma.simulate(schedules / ALL_GATHER, name)):
        with pytest.raises(FileNotFoundError, match="or a layout: mi300x:8, ring:8") as raised:
            use("mi300")
        assert raised.value.filename == "mi300"


def test_speed_ups_take_one_schedule_by_itself(schedules):
    path = schedules / ALL_GATHER
    assert sdma.speed_ups(path, sdma.Schedule.read(path)) == sdma.speed_ups(path, str(path)) == sdma.speed_ups(path, [path])
