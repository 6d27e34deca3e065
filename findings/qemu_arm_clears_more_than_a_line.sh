#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# qemu-user 7.2.22, aarch64, default CPU (max): DC ZVA zeroes 512 bytes, whereas CTR_EL0 gives a data cache line of 32.
# On hardware, both are usually 64. Code that takes either for the other, or 64 for both, clears too much or pads too
# little. Expected: 64 and 64, as -cpu cortex-a72 has. Remedy: read DCZID_EL0. Seen: line 32, zeroed 512; with
# cortex-a72, line 64, zeroed 64.
set -euo pipefail
. "$(dirname "$0")/common.sh"

qemu aarch64 arm64 12.2.0-14cross1
cat > "$tmp/z.c" << 'C'
#include <stdint.h>
#include <stdio.h>
#include <string.h>
static char bytes[4096] __attribute__((aligned(2048)));
int main(void) {
  uint64_t cache;
  __asm__("mrs %0, ctr_el0" : "=r"(cache));
  memset(bytes, 1, sizeof bytes);
  __asm__ volatile("dc zva, %0" : : "r"(bytes + 1024) : "memory");
  int zeroed = 0;
  for (unsigned i = 0; i < sizeof bytes; i++) zeroed += bytes[i] == 0;
  printf("line %d zeroed %d\n", 4 << (cache >> 16 & 15), zeroed);
}
C
cross aarch64 "$tmp/z.c" "$tmp/z"

still "default" 'line 32 zeroed 512' "$("$root/usr/bin/qemu-aarch64" "$tmp/z")"
still "cortex-a72" 'line 64 zeroed 64' "$("$root/usr/bin/qemu-aarch64" -cpu cortex-a72 "$tmp/z")"
