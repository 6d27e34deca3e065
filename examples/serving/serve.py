#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Serves a trace of requests whose prefixes are cached in host memory: docs/serving.md.

  serve.py                                     a tiny model on the software device
  serve.py --device=cuda --model=llama-8b      shapes of Llama 8B on an NVIDIA GPU; random weights
  serve.py --offload=none                      the same requests without the cache
  serve.py --schedule > fetch.sdma             the fetch of one request as a schedule: sdma check, sdma simulate, sdma draw
"""
import argparse
import signal
import sys

import fetch
import model as models
import schedule
import sdma_client
import server


def options(arguments):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--device", default="soft", help="soft, cuda, kfd")
    p.add_argument("--order", default="strict", help="of the software device: strict, rocr, adversarial")
    p.add_argument("--seed", type=int, default=1)
    models.add_options(p)
    p.add_argument("--weights", default="", help="a file of torch.save: {name: tensor}; by default, they are random")
    p.add_argument("--offload", default="layer", choices=(*fetch.WAYS, "none"))
    p.add_argument("--threads", type=int, default=1, help="that submit")
    p.add_argument("--group", type=int, default=0, help="layers that are published together, at most; 0: 4 on cuda, otherwise 1")
    p.add_argument("--evict", action="store_true", help="the host's cache is what is evicted when the GPU's pool is full")
    p.add_argument("--no-merge", dest="merge", action="store_false", help="a copy for each block, also of neighbours")
    p.add_argument("--requests", type=int, default=8)
    p.add_argument("--rate", type=float, default=0.5, help="arrivals per second, or per decode step with --steps")
    p.add_argument("--steps", dest="by_steps", action="store_true", help="time is the number of decode steps")
    p.add_argument("--prefixes", type=int, default=2)
    p.add_argument("--prefix", type=int, default=24, help="tokens")
    p.add_argument("--prompt", type=int, default=5, help="tokens after the prefix")
    p.add_argument("--tokens", type=int, default=8, help="to generate for each request")
    p.add_argument("--batch", type=int, default=4)
    p.add_argument("--gpu-blocks", type=int, default=64)
    p.add_argument("--host-blocks", type=int, default=64)
    p.add_argument("--schedule", action="store_true", help="print the fetch of one request as a schedule, and end")
    p.add_argument("--layer-ns", type=int, default=20000, help="of --schedule: the compute of a layer")
    return p.parse_args(arguments)


def run(o, torch, out):
    shape = models.shape_of(o)
    settings = f"gpus=1 order={o.order} seed={o.seed}" if o.device == "soft" else ""
    with sdma_client.Device(o.device, settings) as device:
        if note := device.caveat():
            print(note, file=sys.stderr)
        names = ("gpu_blocks", "host_blocks", "batch", "threads", "group", "merge", "seed", "weights", "evict", "by_steps")
        given = {name: getattr(o, name) for name in names}
        s = server.Server(torch, device, shape, offload="" if o.offload == "none" else o.offload, **given)
        try:
            all = server.trace(shape, o.requests, o.rate, o.prefixes, o.prefix, o.prompt, o.tokens, o.seed)
            begin = s.now()

            def finished(r):
                after = f"first token {r.first - begin - r.arrival:.3g} {'steps' if o.by_steps else 's'} after its arrival"
                print(f"request {r.number}: {after}: {' '.join(map(str, r.tokens))}", file=out, flush=True)

            with torch.no_grad():
                s.serve(all, finished)
            if o.evict:
                print(f"{s.evicted} prefixes were evicted, and {s.fetched} were fetched back", file=out)
        finally:
            s.close()


def main(arguments=None, out=sys.stdout):
    signal.signal(signal.SIGINT, signal.default_int_handler)
    o = options(arguments)
    try:
        if o.schedule:
            print(schedule.text(models.shape_of(o), o.offload, o.prefix, o.threads, o.layer_ns, o.seed), end="", file=out)
            return 0
        try:
            import torch
        except ImportError:
            raise ValueError("PyTorch is missing: install torch (Debian: python3-torch)") from None
        run(o, torch, out)
    except KeyboardInterrupt:
        print("interrupted: what was allocated has been given back", file=sys.stderr)
        return 130
    except (ValueError, OSError, RuntimeError, MemoryError, sdma_client.Error) as error:
        # torch's own text about memory goes on for a page.
        print(f"serve: {str(error).splitlines()[0] if isinstance(error, RuntimeError) else error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
