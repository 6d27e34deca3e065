#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# gdb 13.1: generate-core-file (gcore) writes every byte of a PROT_NONE reservation that nobody has touched: 512 MiB of address space become
# 512 MiB of zeroes on the disk, not even as a hole. A runtime for GPUs reserves far more than the machine has. Expected: what the
# kernel does with it, a header and no bytes; and that untouched pages are holes. Memory with MADV_DONTDUMP gets no header at all,
# so nothing in the core says that it was there. What helps: MADV_DONTDUMP on the reservation. Seen: filesz 512 MiB, blocks as many.
set -euo pipefail
. "$(dirname "$0")/common.sh"

debian gdb-minimal=13.1-3 libdebuginfod1=0.188-2.1 libdebuginfod-common=0.188-2.1 libipt2=2.0.5-1 libxxhash0=0.8.1-1
needs gcc python3
gdb=$(echo "$root"/usr/bin/gdb*)
"$gdb" --version | head -1
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
timeout 120 "$gdb" -nx -batch -p "$pid" -ex "generate-core-file $tmp/core" > "$tmp/log" 2>&1 || cannot "gdb cannot attach here"
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
