# SPDX-License-Identifier: MIT
"""The all-gather of a tensor parallel layer, in the order of a stream: each rank writes its part, and the stream's next kernel reads all.

  device = sdma_client.Device("cuda", f"rank={rank} ranks=2 session={folder}")       # a process for each rank
  part = Part(device, device.stream(stream), rank, 2, bytes)
  # a kernel writes this rank's bytes to part.address + rank * bytes
  part.gather()                                                                      # enqueued, like a kernel

A graph, whose rounds are published for each of its launches: part.begin(rounds), `gather` for each round in the capture, part.end(), and
part.replay() for each launch. Gathers of different sizes take turns in one stream: give each a `lane` of its own. Errors are
sdma_client.Error.

With carried=True, the copies are in the stream itself, and rounds take one of two places in turn: the next is at part.address +
part.turn * part.stride. Such graphs have an even number of rounds, and an even number of eager rounds precedes each launch. bench/serving/parallel.py has layers on top of this, and other ways to gather beside it.
"""


class Part:
    def __init__(self, device, stream, rank, ranks, bytes, lane=0, carried=False):
        self.rank, self.stream, self.on_gpu = rank, stream, device.kind == "cuda"
        granule, peers = 64 if bytes % 64 == 0 else 4, ranks - 1
        # A queue that waits may keep its engine, so those of another lane get others: none that faces the host (0 and 1). The device for
        # NVIDIA GPUs has 4 that do not.
        engines = ",".join(str(2 + (lane * peers + k) % (4 if self.on_gpu else 14)) for k in range(peers))
        how = "carried=yes turns=2" if carried else f"engines={engines} ring_bytes=256K"
        self.work = device.collective(f"collective=all_gather gpus={ranks} bytes={ranks * bytes} granule={granule} {how}")
        self.turns, self.stride, self.eager = 1 + carried, -(-ranks * bytes // 256) * 256, 0
        self.address, self.host = self.work.buffer(f"gpu{rank}.buf")
        self.graph, self.rounds, self.round, self.capturing = 0, 0, 0, False

    @property
    def turn(self):
        return (self.round % self.rounds if self.capturing else self.eager) % self.turns

    def gather(self):
        if not self.capturing:
            self.eager += 1
            return self.work.enqueue(self.rank, self.stream)
        self.work.pass_round(self.rank, self.graph, self.round % self.rounds, self.stream)
        self.round += 1

    def begin(self, rounds):
        """What follows is the capture of a graph with this many rounds."""
        self.graph, self.rounds, self.round, self.capturing = self.work.graph(self.rank, rounds), rounds, 0, True

    def end(self):
        """Of the capture. The software device has no graphs: there, `gather` is called again for each launch, and stays one of a graph."""
        self.capturing = not self.on_gpu

    def replay(self):
        """For each launch: after it on a GPU; before it on the software device, where it waits."""
        self.work.replay(self.rank, self.graph)

    def free(self):
        self.work.free()
