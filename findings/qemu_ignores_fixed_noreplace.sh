#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# qemu-user 7.2.22: mmap with MAP_FIXED_NOREPLACE over a mapping returns another address, without an error, as kernels
# before 4.17 do. Expected: EEXIST, because the kernel of the host has the flag. Remedy: compare the address with the
# one that was asked for. A process that maps a ring at an agreed address would otherwise use a wrong one.
# process_vm_readv returns ENOSYS. Seen: another address, and errno 38; without qemu, an error, and 8 bytes read.
set -euo pipefail
. "$(dirname "$0")/common.sh"

qemu aarch64 arm64 12.2.0-14cross1
cat > "$tmp/n.c" << 'C'
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>
int main(void) {
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS;
  void* first = mmap(0, 65536, PROT_READ | PROT_WRITE, flags, -1, 0);
  void* second = mmap(first, 4096, PROT_READ | PROT_WRITE, flags | MAP_FIXED_NOREPLACE, -1, 0);
  printf("%s", second == MAP_FAILED ? "fails" : second == first ? "the address" : "another address");
  char from[8] = "source", to[8] = "";
  struct iovec local = {to, 8}, remote = {from, 8};
  errno = 0;
  printf(", process_vm_readv %ld errno %d\n", (long)process_vm_readv(getpid(), &local, 1, &remote, 1, 0), errno);
}
C
cross aarch64 "$tmp/n.c" "$tmp/n"
needs gcc
gcc -o "$tmp/host" "$tmp/n.c"

still "qemu" 'another address, process_vm_readv -1 errno 38' "$("$root/usr/bin/qemu-aarch64" "$tmp/n")"
still "without qemu" 'fails, process_vm_readv 8 errno 0' "$("$tmp/host")"
