#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# clang 22.1.8: __builtin_amdgcn_s_sleep and __builtin_amdgcn_s_setprio take any 16 bits in silence, although the instructions have
# 7 and 2 bits on gfx942: AMD's manual of the MI300 says that S_SLEEP waits 64 cycles times SIMM16[6:0]. Expected: an error, as other
# builtins have for an immediate out of range (the size of global_load_lds is one). A pause of 128 is thus encoded as a pause of 0 for the hardware.
# The assembler does not object either. Seen: s_sleep 0x80 and s_setprio 7, encoded as written.
set -euo pipefail
. "$(dirname "$0")/common.sh"

llvm llvm-22

still "the compiler" $'s_sleep 0x80\ns_setprio 7\ns_endpgm' "$(kernel gfx942 << 'HIP'
extern "C" __attribute__((global)) void k() {
  __builtin_amdgcn_s_sleep(128);
  __builtin_amdgcn_s_setprio(7);
}
HIP
)"
still "the assembler" $'[0x80,0x00,0x8e,0xbf]\n[0x07,0x00,0x8f,0xbf]' \
  "$(printf 's_sleep 128\ns_setprio 7\n' | "$bin/llvm-mc" -triple=amdgcn -mcpu=gfx942 -show-encoding | sed -n 's/.*encoding: //p')"
