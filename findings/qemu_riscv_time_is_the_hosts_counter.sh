#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# qemu-user 7.2.22, riscv64, on an x86-64 host: rdtime has the rate of the host's time stamp counter, 2.6e9 per second
# on a host of 2.6 GHz. A guest cannot find out this rate, and qemu's machine "virt" has 1e7. Under qemu-aarch64, CNTVCT
# has the rate that CNTFRQ gives, 62,500,000. Expected: a fixed rate as well. Remedy: calibrate against clock_gettime.
# Seen: more than 3e8 per second.
set -euo pipefail
. "$(dirname "$0")/common.sh"

grep -qw constant_tsc /proc/cpuinfo || cannot "the host has no constant time stamp counter"
qemu riscv64 riscv64 12.2.0-13cross1
cat > "$tmp/t.c" << 'C'
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>
static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + t.tv_nsec * 1e-9;
}
static uint64_t ticks(void) {
  uint64_t value;
  __asm__ volatile("rdtime %0" : "=r"(value));
  return value;
}
int main(void) {
  double begin = now();
  uint64_t first = ticks();
  usleep(300000);
  double rate = (ticks() - first) / (now() - begin);
  fprintf(stderr, "%.3g ticks a second\n", rate);
  puts(rate > 3e8 ? "more than 3e8" : "less");
}
C
cross riscv64 "$tmp/t.c" "$tmp/t"

still "rate of rdtime" 'more than 3e8' "$("$root/usr/bin/qemu-riscv64" "$tmp/t")"
