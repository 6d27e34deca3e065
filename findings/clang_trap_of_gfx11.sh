#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# clang 22.1.8: __builtin_trap is one instruction, s_trap 2, on gfx942 and gfx1201. On gfx1100 it is eleven, besides
# s_delay_alu: after s_trap 2 they read the number of the queue's doorbell, send it to the host with an interrupt, and
# halt the wave in an endless loop; ttmp2, a register of the trap handler, keeps m0 meanwhile. Expected: s_trap 2 on all
# of them. Code that counts instructions or reads disassembly has to expect the rest. Seen: the instructions below.
set -euo pipefail
. "$(dirname "$0")/common.sh"

llvm

trapped() { # ARCH: from the trap on
  kernel "$1" << 'HIP' | awk '/^s_trap/ { seen = 1 } seen && !/^\.|^s_delay_alu/ { print $1 }'
extern "C" __attribute__((global)) void k() { __builtin_trap(); }
HIP
}

for arch in gfx942 gfx1201; do still "$arch" 's_trap' "$(trapped $arch)"; done
still "gfx1100" "$(printf '%s\n' s_trap s_sendmsg_rtn_b32 s_mov_b32 s_waitcnt s_and_b32 s_bitset1_b32 s_mov_b32 \
  s_sendmsg s_mov_b32 s_sethalt s_branch)" "$(trapped gfx1100)"
