#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""sdma trace --schedule of databases of rocpd: what is read of each schema, and that a broken or hostile database gives an
error with a cause, within 256 MiB, and never a crash.

  rocpd.py SDMA [RUNS]     RUNS: databases with changed bytes (default: 150)
"""
import io
import os
import pathlib
import random
import sqlite3
import sys
import tarfile
import tempfile

MIB = 256
GUID = "_0190ab12_0000_7000_8000_000000000001"
OTHER = "_0190ab12_0000_7000_8000_000000000002"
AGENTS = [(0, "CPU", "EPYC"), (4, "GPU", "gfx942"), (5, "GPU", "gfx942")]
# id, begin, end, from, to, size, source, destination, process, stream
COPIES = [
    (1, 1000, 2000, 0, 4, 65536, 0x5000, -0x7FFFFFFFF000, 41, 7),
    (2, 2500, 3000, 4, 5, 4096, -0x7FFFFFFFF000, 0x9000, 41, 7),
    (3, 2600, 2900, 5, 0, 4096, 0x9000, 0x6000, 41, 8),
    (4, 4000, 4100, None, 4, 64, None, None, 41, 8),
]


def make(path, guids=(GUID,), tracks=False, copies=COPIES, more=""):
    """A database as the tool's documents describe it, with the tables that are read."""
    path.unlink(missing_ok=True)
    db = sqlite3.connect(path)
    for guid in guids:
        db.execute(f"CREATE TABLE rocpd_info_agent{guid} (id INTEGER, guid TEXT, type TEXT, name TEXT, extdata TEXT)")
        db.executemany(f"INSERT INTO rocpd_info_agent{guid} VALUES (?, '{guid}', ?, ?, '{{}}')", AGENTS)
        lane = "track_id" if tracks else "pid, stream_id"
        db.execute(f'CREATE TABLE rocpd_memory_copy{guid} (id, guid, start, "end", src_agent_id, dst_agent_id, size, '
                   f"src_address, dst_address, {lane})")
        if tracks:
            db.execute(f"CREATE TABLE rocpd_track{guid} (id, pid, stream_id)")
            db.executemany(f"INSERT INTO rocpd_track{guid} VALUES (?, 41, ?)", [(7, 7), (8, 8)])
        marks = "?,?" if not tracks else "?"
        for c in copies:
            row = c[:8] + (c[8:] if not tracks else (c[9],))
            db.execute(f"INSERT INTO rocpd_memory_copy{guid} VALUES (?,'{guid}',?,?,?,?,?,?,?,{marks})", row)
        db.execute(f'CREATE TABLE rocpd_memory_allocate{guid} (id, type, address, size, start, "end", agent_id, pid)')
        db.execute(f"INSERT INTO rocpd_memory_allocate{guid} VALUES (1, 'ALLOC', 20480, 65536, 1, 2, 0, 41)")
    if more:
        db.executescript(more)
    db.commit()
    db.close()


# begin, end, thread, category, correlation, message: two ranges of roctx, a mark, calls of copies 1 and 3, and one of none
REGIONS = [
    (50, 900, 71, "MARKER_CORE_RANGE_API", 21, '{"message": "forward"}'),
    (60, 200, 71, "MARKER_CORE_RANGE_API", 22, '{"message": "layer \\"3\\""}'),
    (60, 200, 71, "MARKER_CORE_RANGE_API", 23, "{broken"),
    (100, 110, 71, "HIP_RUNTIME_API_EXT", 11, "{}"),
    (300, 310, 72, "HSA_AMD_EXT_API", 13, "{}"),
    (350, 360, 71, "HIP_RUNTIME_API_EXT", 99, "{}"),
]


def add_regions(path, guid=GUID, spine=False, regions=REGIONS):
    """Events of the copies, and regions, of which schema 4 keeps the times (spine) and threads in tables of their own."""
    db = sqlite3.connect(path)
    db.execute(f"CREATE TABLE rocpd_string{guid} (id INTEGER PRIMARY KEY, string TEXT)")
    db.execute(f"CREATE TABLE rocpd_event{guid} (id INTEGER PRIMARY KEY, category_id, stack_id, extdata)")
    categories = sorted({r[3] for r in regions} | {"MEMORY_COPY"})
    db.executemany(f"INSERT INTO rocpd_string{guid} VALUES (?, ?)", list(enumerate(categories)))
    db.execute(f"ALTER TABLE rocpd_memory_copy{guid} ADD COLUMN event_id")
    db.execute(f"UPDATE rocpd_memory_copy{guid} SET event_id = id")
    db.execute(f"INSERT INTO rocpd_event{guid} SELECT id, {categories.index('MEMORY_COPY')}, 10 + id, '{{}}' FROM rocpd_memory_copy{guid}")
    if spine:
        for table in ("memory_copy", "memory_allocate"):
            db.execute(f"ALTER TABLE rocpd_{table}{guid} ADD COLUMN start_id")
            db.execute(f"ALTER TABLE rocpd_{table}{guid} ADD COLUMN end_id")
        db.execute(f"CREATE TABLE rocpd_timestamp{guid} (id INTEGER PRIMARY KEY, value)")
        db.execute(f"ALTER TABLE rocpd_track{guid} ADD COLUMN tid")
        db.executemany(f"INSERT INTO rocpd_track{guid} VALUES (?, 41, NULL, ?)", [(71, 71), (72, 72)])
        for table in ("memory_copy", "memory_allocate"):
            for row, begin, end in db.execute(f'SELECT id, start, "end" FROM rocpd_{table}{guid}').fetchall():
                ids = [db.execute(f"INSERT INTO rocpd_timestamp{guid} (value) VALUES (?)", (t,)).lastrowid for t in (begin, end)]
                db.execute(f"UPDATE rocpd_{table}{guid} SET start_id = ?, end_id = ? WHERE id = ?", (*ids, row))
            for name in ("start", "end"):
                db.execute(f'ALTER TABLE rocpd_{table}{guid} DROP COLUMN "{name}"')
        db.execute(f"CREATE TABLE rocpd_region{guid} (id, track_id, start_id, end_id, event_id)")
    else:
        db.execute(f'CREATE TABLE rocpd_region{guid} (id, tid, start, "end", event_id)')
    for i, (begin, end, thread, category, correlation, message) in enumerate(regions):
        event = 1_000_000 + i
        db.execute(f"INSERT INTO rocpd_event{guid} VALUES (?, ?, ?, ?)", (event, categories.index(category), correlation, message))
        times = begin, end
        if spine:
            times = [db.execute(f"INSERT INTO rocpd_timestamp{guid} (value) VALUES (?)", (t,)).lastrowid for t in times]
        db.execute(f"INSERT INTO rocpd_region{guid} VALUES (?, ?, ?, ?, ?)", (i, thread, *times, event))
    db.commit()
    db.close()


def run(sdma, *words, stdin=os.devnull):
    """Exit code, both outputs, and the largest memory in MiB."""
    with open(stdin, "rb") as into, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        pid = os.posix_spawn(sdma, [sdma, *map(str, words)], os.environ,
                             file_actions=[(os.POSIX_SPAWN_DUP2, f.fileno(), n) for n, f in enumerate((into, out, err))])
        _, status, usage = os.wait4(pid, 0)
        texts = []
        for f in (out, err):
            f.seek(0)
            texts.append(f.read().decode(errors="replace"))
        return os.waitstatus_to_exitcode(status), *texts, usage.ru_maxrss / 1024


def check(what, holds, *seen):
    if not holds:
        print("\n".join(map(str, seen)), file=sys.stderr)
        sys.exit(f"failed: {what}")


def read(sdma, path):
    for tracks in (False, True):
        make(path, tracks=tracks)
        code, out, err, _ = run(sdma, "trace", "--schedule", path)
        check("a database is read", code == 0, code, out, err)
        for line in ("gpus 2  # gpu0 is node 4 (gfx942); gpu1 is node 5 (gfx942)", "buffer host.b2 bytes=64K init=random  # 0x5000",
                     "# 0xffff800000001000", "  poll_mem addr=host.copy0 func=eq reference=1", "stream 7 of process 41",
                     "copy 4: a copy whose agents are neither named nor given by a direction"):
            check(f"the schedule has: {line}", line in out, out)
        check("one poll: the copies of stream 8 overlap nothing of theirs", out.count("poll_mem") == 1, out)
    make(path, guids=(GUID, OTHER))
    code, out, err, _ = run(sdma, "trace", "--schedule", path)
    check("two runs in one database stay apart", code == 0 and out.count("poll_mem") == 2 and out.count("# 0x5000") == 2, out, err)
    make(path)
    code, out, err, _ = run(sdma, "compare", "--json", "--measured", path)
    check("a recording is compared with the machine", code == 0 and '"alone_ns"' in out and '"not_compared": 0' in out, out, err)


def phases(sdma, path):
    """Ranges of roctx around the calls of copies, in the two forms of the schema."""
    for spine in (False, True):
        make(path, tracks=spine)
        add_regions(path, spine=spine)
        code, out, err, _ = run(sdma, "trace", "--schedule", path)
        check("a database with ranges of roctx is read", code == 0, code, out, err)
        check("a copy is in the ranges of its call", '# 1000 ns, for 1000 ns, in forward > layer "3"' in out, out)
        check("another thread is in no range", "# 2600 ns, for 300 ns\n" in out, out)
        check("calls that lack are counted", "phases: ranges of roctx are recorded, but not the calls of 2 copies" in err, err)
        check("allocations are read", run(sdma, "doctor", path)[0] in (0, 1, 4), out)
    # Without ranges, nothing is said of them.
    make(path)
    add_regions(path, regions=[r for r in REGIONS if not r[3].startswith("MARKER")])
    code, out, err, _ = run(sdma, "trace", "--schedule", path)
    check("no ranges, no phases", code == 0 and "phases" not in err and ", in " not in out, code, out, err)
    # More ranges than are read: the copies are read, and a note says so.
    make(path)
    add_regions(path, regions=[(i, i + 1, 71, "MARKER_CORE_RANGE_API", 21, "{}") for i in range(1, 3)])
    db = sqlite3.connect(path)
    db.execute(f"""INSERT INTO rocpd_region{GUID} WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200000)
        SELECT i, 71, 1, 9000, 1000000 FROM n""")
    db.execute(f"""UPDATE rocpd_event{GUID} SET extdata = '{{"message": "r"}}'""")
    db.commit()
    db.close()
    code, out, err, mib = run(sdma, "trace", "--schedule", path)
    check("too many ranges are a note", code == 0 and "there are 200000 ranges of roctx or more" in err and mib < MIB, code, err, mib)
    # Nearly the most copies and ranges, with long names, are read within the memory.
    many = range(1, 190_000)
    make(path, copies=[(i, 1000 * i, 1000 * i + 900, 0, 4, 64, 0x5000, 0x9000, "p", "s") for i in many])
    copies = path.read_bytes()
    for length, word in ((80, ""), (130, "phases: their names have more than 16 MiB, so copies have none")):
        path.write_bytes(copies)
        message = '{"message": "%s"}' % ("r" * length)
        add_regions(path, regions=[(1000 * i - 600, 1000 * i, 71, "MARKER_CORE_RANGE_API", 10_000_000 + i, message) for i in many] +
                    [(1000 * i - 500, 1000 * i - 400, 71, "HIP_RUNTIME_API_EXT", 10 + i, "{}") for i in many])
        code, out, err, mib = run(sdma, "trace", "--schedule", path)
        check("many ranges are read within the memory", code == 0 and word in err and mib < MIB, code, err[-500:], mib)
        check("phases are those of all copies or of none", out.count(", in r") == (0 if word else len(many)), out[:1000])


FAULT = """[ 4100.100067] amdgpu 0000:c3:00.0: amdgpu: [gfxhub0] no-retry page fault (src_id:0 ring:0 vmid:8 pasid:32773)
[ 4100.100070] amdgpu 0000:c3:00.0: amdgpu:  for process server pid 41 thread server pid 41)
[ 4100.100096] amdgpu 0000:c3:00.0: amdgpu:   in page starting at address 0x0000000000008000 from IH client 0x1b (UTCL2)
"""


def elsewhere(sdma, path):
    """In a pipe, and in the archive of a bug report."""
    make(path)
    whole = run(sdma, "trace", "--schedule", path)[1]
    code, out, err, _ = run(sdma, "trace", "--schedule", "-", stdin=path)
    check("a database in a pipe is the same", code == 0 and out.splitlines()[2:] == whole.splitlines()[2:], code, out, err)
    report = path.with_name("report.tar.gz")
    with tarfile.open(report, "w:gz") as tar:
        for name, data in (("dmesg", FAULT.encode()), ("results.db", path.read_bytes())):
            about = tarfile.TarInfo(name)
            about.size = len(data)
            tar.addfile(about, io.BytesIO(data))
    code, out, err, _ = run(sdma, "doctor", report)
    said = " ".join(out.split())
    check("a database in an archive names the memory of a fault", "; in memory of node 0, 0.0 MB into 0.1 MB, allocated in allocation 1" in said, code, out, err)


def refused(sdma, path):
    """Each with a word of its message."""
    hostile = f"""
        DROP TABLE rocpd_memory_copy{GUID};
        CREATE TABLE other (a);
        CREATE VIEW rocpd_memory_copy AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS id FROM n;"""
    generated = f"""
        DROP TABLE rocpd_memory_copy{GUID};
        CREATE TABLE rocpd_memory_copy{GUID} (id INTEGER, start INTEGER, "end" INTEGER, src_agent_id, dst_agent_id,
          size AS (hex(zeroblob(40000000))));
        INSERT INTO rocpd_memory_copy{GUID} VALUES (1, 1, 2, 0, 4);"""
    for copies, more, word in (
            (COPIES, hostile, "has no table rocpd_memory_copy"),
            (COPIES, generated, ""),
            (COPIES, f'ALTER TABLE rocpd_memory_copy{GUID} RENAME COLUMN size TO bytes;', "has no column size"),
            ([(1, 20, 10, 0, 4, 1, None, None, 41, 7)], "", "copy 1 does not end after it begins"),
            ([(1, 1, 2, 0, 4, "many", None, None, 41, 7)], "", "copy 1 has a size that is not an integer"),
            ([(1, 1, 2, 0, 4, 1, None, None, 41, 7)] * 200_001, "", "has more than 200000 rows"),
            ([], "", "has no copy")):
        make(path, copies=copies, more=more)
        code, out, err, mib = run(sdma, "trace", "--schedule", path)
        check(f"refused: {word or more}", code == 3 and word in err and mib < MIB, code, err, mib)
    # Tables without a row, in each schema: no schedule and no verdict is made of them.
    for tracks in (False, True):
        make(path, tracks=tracks, copies=[], more="".join(f"DELETE FROM rocpd_{t}{GUID};" for t in ("info_agent", "memory_allocate")))
        for words in (("trace", "--schedule"), ("compare", "--measured"), ("doctor",)):
            code, out, err, _ = run(sdma, *words, path)
            check(f"no row, {words[0]}", code == 3 and not out and "it has no copy to or from a GPU" in err, tracks, code, out, err)
    # Two runs with long names: each row has the name of its run twice, which the file has once.
    make(path, guids=("_" + "a" * 230, "_" + "b" * 230), copies=[(i, i, i + 1, 0, 4, 64, None, None, 41, 7) for i in range(75_000)])
    code, _, err, mib = run(sdma, "compare", "--measured", path)
    check("the names of all rows together are bounded", code == 3 and "have more than 64 MiB" in err and mib < MIB, code, err[-500:], mib)
    # The most rows, with long names, are read within the memory.
    make(path, copies=[(i, i, i + 1, 0, 4, 1 << 20, None, None, "p" * 1000, "s" * 1000) for i in range(60_000)])
    code, _, err, mib = run(sdma, "compare", "--measured", path)
    check("many rows are read within the memory", code == 0 and mib < MIB, code, err[-500:], mib)


def broken(sdma, path, runs):
    make(path)
    add_regions(path)
    whole = path.read_bytes()
    chance = random.Random(1)
    for i in range(runs):
        data = bytearray(whole)
        if i % 5 == 0:
            del data[chance.randrange(16, len(data)):]
        else:
            for _ in range(chance.choice((1, 2, 8, 64))):
                data[chance.randrange(16, len(data))] = chance.choice((0, 1, 0x7F, 0xFF, chance.randrange(256)))
        path.write_bytes(data)
        code, out, err, mib = run(sdma, "trace", "--schedule", path)
        check(f"changed bytes, run {i}", code in (0, 3, 4) and (code != 3 or "error" in err) and mib < MIB, code, err, mib)
        if i % 2 == 0:
            code, out, err, mib = run(sdma, "trace", "--schedule", "-", stdin=path)
        check(f"changed bytes, run {i}, in a pipe", code in (0, 3, 4) and (code != 3 or "error" in err) and mib < MIB, code, err, mib)


def main():
    sdma = str(pathlib.Path(sys.argv[1]).resolve())
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "results.db")
        read(sdma, path)
        phases(sdma, path)
        elsewhere(sdma, path)
        refused(sdma, path)
        broken(sdma, path, int(sys.argv[2]) if len(sys.argv) > 2 else 150)


if __name__ == "__main__":
    main()
