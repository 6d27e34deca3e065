#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# qemu-user 7.2.22, aarch64, its default processor (max): DC ZVA zeroes 512 bytes, while CTR_EL0 says that a line of the data cache has 32. On hardware both
# are usually 64. Code that takes the line, or 64, for the block of DC ZVA clears its neighbours; code that pads to a line by
# CTR_EL0 pads to 32. Expected: 64 and 64, or at least one number. Ask DCZID_EL0, as libraries do; -cpu cortex-a72 has 64 and 64.
# Seen: 512 bytes zeroed, 32 announced as line; with cortex-a72 64 and 64.
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
