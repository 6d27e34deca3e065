#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# clang 22.1.8: __builtin_amdgcn_s_sleep and __builtin_amdgcn_s_setprio accept any 16-bit number without a diagnostic,
# and so does the assembler. AMD's ISA manuals define only the low 7 bits as the pause and the low 2 bits as the
# priority, so a pause of 128 is a pause of 0 by the manual. Expected: an error, as for other immediates out of range,
# such as the size of a global_load_lds. Seen: s_sleep 0x80 and s_setprio 7, encoded as written.
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
  "$(printf 's_sleep 128\ns_setprio 7\n' | "$bin/llvm-mc" -triple=amdgcn -mcpu=gfx942 -show-encoding |
    sed -n 's/.*encoding: //p')"
