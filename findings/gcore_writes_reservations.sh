#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# gdb 13.1: generate-core-file (gcore) writes every byte of an untouched PROT_NONE reservation: 512 MiB of reserved
# addresses become 512 MiB of zeroes on the disk, without a hole. Runtimes of GPUs reserve far more than a disk has.
# Memory with MADV_DONTDUMP has no program header at all. Expected: what Linux 6.18 writes for both, a header without
# bytes. Remedy: MADV_DONTDUMP on the reservation. Seen: 512 MiB in the file and on the disk; no header.
set -euo pipefail
. "$(dirname "$0")/common.sh"

gdb_13
needs gcc python3
cat > "$tmp/p.c" << 'C'
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
int main() {
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void* reserved = mmap(0, 512 << 20, PROT_NONE, flags, -1, 0);
  char* hidden = mmap(0, 4096, PROT_READ | PROT_WRITE, flags, -1, 0);
  *hidden = 1;
  madvise(hidden, 4096, MADV_DONTDUMP);
  printf("%lx %lx\n", (long)reserved, (long)hidden);
  fflush(stdout);
  for (int i = 0; i < 600; i++) usleep(100000);
}
C
gcc -o "$tmp/p" "$tmp/p.c"
"$tmp/p" > "$tmp/out" &
pid=$!
for _ in $(seq 100); do [[ -s $tmp/out ]] || sleep 0.1; done
core_of "$pid"
kill "$pid"
read -r reserved hidden < "$tmp/out"
segment() {
  python3 - "$tmp/core" "$1" << 'PYTHON'
import struct, sys
core, address = open(sys.argv[1], "rb"), int(sys.argv[2], 16)
head = core.read(64)
offset, count = struct.unpack_from("<Q", head, 32)[0], struct.unpack_from("<H", head, 56)[0]
core.seek(offset)
for _ in range(count):
    kind, _, _, begin, _, filesz, memsz, _ = struct.unpack("<IIQQQQQQ", core.read(56))
    if kind == 1 and begin <= address < begin + memsz:
        sys.exit(print(filesz >= 512 << 20 and "512 MiB in the file" or f"{filesz} bytes in the file"))
print("no header")
PYTHON
}
still "the reservation" '512 MiB in the file' "$(segment "$reserved")"
still "on the disk, in units of 512 MiB" 1 "$(($(stat -c %b "$tmp/core") * 512 / 536870912))"
still "MADV_DONTDUMP" 'no header' "$(segment "$hidden")"
