#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# qemu-user 7.2.22: /proc/self/maps and /proc/PID/maps show a guest its own mappings. /proc/self/smaps,
# /proc/thread-self/maps and /proc/self/task/TID/maps show those of the emulator: addresses of the host, with the code
# of qemu. Expected: those of the guest in all of them. Code that reads page sizes or flags of a mapping from smaps
# finds another process there. Remedy: /proc/self/maps. Seen: which files name the program qemu-aarch64.
set -euo pipefail
. "$(dirname "$0")/common.sh"

qemu aarch64 arm64 12.2.0-14cross1
cat > "$tmp/m.c" << 'C'
#include <stdio.h>
#include <string.h>
#include <unistd.h>
static void whose(const char* shown, const char* name) {
  FILE* file = fopen(name, "r");
  char line[4096];
  int host = 0;
  while (file && fgets(line, sizeof line, file)) host |= strstr(line, "/qemu-aarch64") != 0;
  printf("%s: %s\n", shown, !file ? "cannot be opened" : host ? "the emulator" : "the guest");
}
int main(void) {
  char name[64];
  whose("/proc/self/maps", "/proc/self/maps");
  snprintf(name, sizeof name, "/proc/%d/maps", getpid());
  whose("/proc/PID/maps", name);
  whose("/proc/self/smaps", "/proc/self/smaps");
  whose("/proc/thread-self/maps", "/proc/thread-self/maps");
  snprintf(name, sizeof name, "/proc/self/task/%d/maps", getpid());
  whose("/proc/self/task/TID/maps", name);
}
C
cross aarch64 "$tmp/m.c" "$tmp/m"

still "whose mappings" "/proc/self/maps: the guest
/proc/PID/maps: the guest
/proc/self/smaps: the emulator
/proc/thread-self/maps: the emulator
/proc/self/task/TID/maps: the emulator" "$("$root/usr/bin/qemu-aarch64" "$tmp/m")"
