#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# clang 22.1.8, gfx942: a volatile load from the constant address space (OpenCL's constant, address_space(4)) becomes
# s_load, which reads the scalar cache. Nothing invalidates that cache within a kernel, so a poll of a word that another
# agent changes may never end. Expected: a load from memory, as through any other volatile pointer, where the load has
# sc0 sc1. Seen: s_load_dword in the loop; global_load_dword sc0 sc1 for the global address space.
set -euo pipefail
. "$(dirname "$0")/common.sh"

llvm

poll() { # SPACE
  kernel gfx942 "-DSPACE=$1" << 'HIP' |
extern "C" __attribute__((global)) void k(const volatile unsigned __attribute__((address_space(SPACE))) * word) {
  while (*word != 7) {}
}
HIP
    awk '/^\.LBB/ { loop = 1 } loop && /load/ { print $1 ($NF == "sc1" ? " sc0 sc1" : "") }'
}

still "constant: the scalar cache" 's_load_dword' "$(poll 4)"
still "global: memory" 'global_load_dword sc0 sc1' "$(poll 1)"
