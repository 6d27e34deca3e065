#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# clang 22.1.8, gfx1100: __builtin_readcyclecounter returns 20 bits, those of the register SHADER_CYCLES, with zeroes
# above them. It wraps every 1,048,576 cycles, which is less than half a millisecond at 2.5 GHz, so differences over a
# longer time are wrong. Expected: 64 bits, as the type suggests, and as on gfx942 (s_memtime) and gfx1201 (two
# registers, read until they agree). Remedy: __builtin_readsteadycounter, which has 64 bits on all three. Seen: one
# s_getreg_b32 of 20 bits.
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
