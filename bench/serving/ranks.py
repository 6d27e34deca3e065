# SPDX-License-Identifier: MIT
"""A process for each rank, which are forks of this one.

  results = ranks.run(2, lambda rank, session, tell: ..., seconds=60)

`session` is an empty folder that all ranks share; tell(x) passes x to the caller's `told(rank, x)` at once. If a rank fails or is killed,
the others get a few seconds to say what they see; then they are killed. So are all after `seconds`, or if none has told anything for
`silent` seconds. Call it before the process uses CUDA.
"""
import math
import multiprocessing
import os
import pathlib
import signal
import tempfile
import time

PATIENCE = 5  # seconds that the others have after the first failure


class Failed(Exception):
    """What went wrong first."""


def child(rank, work, session, pipes):
    for r, ends in enumerate(pipes):  # otherwise the end of another rank does not close its pipe
        for end in ends[: 2 if r != rank else 1]:
            end.close()
    pipe, code = pipes[rank][1], 0
    try:
        pipe.send(("result", work(rank, session, lambda x: pipe.send(("told", x)))))
    except KeyboardInterrupt:
        code = 130
    except BaseException as error:  # the caller prints it
        # torch's own text goes on for pages.
        text = str(error).split("\nException raised from")[0][:600]
        pipe.send(("error", text if isinstance(error, (ValueError, OSError)) or "hint:" in text else f"{type(error).__name__}: {text}"))
        code = 1
    pipe.close()
    os._exit(code)  # whatever a stream still waits for


def run(count, work, told=lambda rank, x: None, seconds=600.0, silent=math.inf):
    """The results of all ranks, in their order. Failed: the first failure."""
    context, begin, why, ended_at = multiprocessing.get_context("fork"), time.monotonic(), [], None
    heard = begin
    with tempfile.TemporaryDirectory(prefix="sdma-ranks-") as session:
        pipes = [context.Pipe(False) for _ in range(count)]
        all = [context.Process(target=child, args=(r, work, session, pipes), daemon=True) for r in range(count)]
        for process in all:
            process.start()
        for _, sender in pipes:
            sender.close()
        results, open_pipes = {}, {receiver: r for r, (receiver, _) in enumerate(pipes)}
        try:
            while open_pipes:
                for pipe in multiprocessing.connection.wait(open_pipes, 0.1):
                    rank = open_pipes[pipe]
                    try:
                        kind, what = pipe.recv()
                    except (EOFError, OSError):
                        del open_pipes[pipe]
                        all[rank].join(PATIENCE)
                        if rank not in results and not any(r == rank for r, _ in why):
                            why.append((rank, ended(all[rank])))
                        continue
                    heard = time.monotonic()
                    if kind == "told":
                        told(rank, what)
                    elif kind == "result":
                        results[rank] = what
                    else:
                        why.append((rank, what))
                now = time.monotonic()
                ended_at = ended_at or (now if why else None)
                if now > begin + seconds or now > heard + silent or (ended_at and now > ended_at + PATIENCE):
                    break
        finally:
            for process in all:
                process.kill()
                process.join()
    if why:
        # A rank that was killed has caused what the others say.
        rank, text = next(((r, t) for r, t in why if t.startswith("its process was killed")), why[0])
        raise Failed(text if all_say(why, count, text) else f"rank {rank}: {text}")
    if len(results) < count:
        late = ", ".join(str(r) for r in range(count) if r not in results)
        what = f"said nothing for {silent:g} s" if time.monotonic() < begin + seconds else f"did not end within {seconds:g} s"
        raise Failed(f"rank {late} {what}: all were killed")
    return [results[r] for r in range(count)]


def all_say(why, count, text):
    return len(why) == count and all(t == text for _, t in why)


def ended(process):
    code = process.exitcode
    if code is None or code >= 0:
        return f"its process ended with exit code {code}"
    return f"its process was killed by signal {-code} ({signal.strsignal(-code)})"


def folder(session, name):
    """A folder of a session, for what needs an empty one."""
    path = pathlib.Path(session, name)
    path.mkdir(exist_ok=True)
    return str(path)
