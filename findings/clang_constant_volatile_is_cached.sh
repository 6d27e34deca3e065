#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# clang 22.1.8, gfx942: a volatile load from the constant address space (OpenCL's constant, address_space(4)) is s_load, from the scalar cache,
# without any bit: a poll of a word that another agent changes need never end, because nothing invalidates that cache inside a kernel.
# Expected: volatile reaches memory, as it does through any other pointer, where the load has sc0 sc1. Seen: s_load_dword in the loop.
set -euo pipefail
. "$(dirname "$0")/common.sh"

llvm

poll() { # SPACE
  kernel gfx942 "-DSPACE=$1" << 'HIP' | awk '/^\.LBB/ { loop = 1 } loop && /load/ { print $1, $NF ~ /^sc/ ? "sc0 sc1" : "" }' | sed 's/ $//'
extern "C" __attribute__((global)) void k(const volatile unsigned __attribute__((address_space(SPACE))) * word) {
  while (*word != 7) {}
}
HIP
}

still "constant: the scalar cache" 's_load_dword' "$(poll 4)"
still "global: memory" 'global_load_dword sc0 sc1' "$(poll 1)"
