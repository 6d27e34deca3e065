#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# clang 22.1.8, gfx1100: __builtin_readcyclecounter is a counter of 20 bits: the register SHADER_CYCLES, zero-extended. It
# wraps every 1,048,576 cycles, less than half a millisecond at 2.5 GHz, so the difference of two values is wrong for longer times and may be negative.
# Expected: 64 bits, as its type says and as on gfx942 (s_memtime) and gfx1201 (two registers, read until they agree).
# What helps is __builtin_readsteadycounter, which is 64 bits on all of them. Seen: one s_getreg_b32 of 20 bits.
set -euo pipefail
. "$(dirname "$0")/common.sh"

llvm

counter() { # ARCH
  kernel "$1" << 'HIP' | grep -E '^s_(getreg|memtime)' | sed 's/ s\S*,//; s/ s\[.*//'
extern "C" __attribute__((global)) void k(unsigned long* to) { *to = __builtin_readcyclecounter(); }
HIP
}

still "gfx1100: 20 bits" 's_getreg_b32 hwreg(HW_REG_SHADER_CYCLES, 0, 20)' "$(counter gfx1100)"
still "gfx942: 64 bits" 's_memtime' "$(counter gfx942)"
still "gfx1201: 64 bits" "$(printf 's_getreg_b32 hwreg(HW_REG_SHADER_CYCLES_%s)\n' HI LO HI)" "$(counter gfx1201)"
