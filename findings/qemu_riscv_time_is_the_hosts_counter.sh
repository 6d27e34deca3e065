#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# qemu-user 7.2.22, riscv64: rdtime counts the host's time stamp counter (2.6e9 a second on a host of 2.6 GHz), not a time base that anything
# in the guest announces; qemu's own machine "virt" counts 1e7 a second. Under qemu-aarch64 on the same host the pair CNTVCT and CNTFRQ
# agrees with the clock: 62,500,000. Expected: that rdtime has a fixed rate in user mode as well. A program that turns
# ticks into ns by 10 MHz is wrong by two orders. Calibrate against clock_gettime. Seen: more than 3e8 ticks a second.
set -euo pipefail
. "$(dirname "$0")/common.sh"

[[ $(uname -m) == x86_64 ]] && grep -qw constant_tsc /proc/cpuinfo || cannot "the host has no constant time stamp counter"
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
