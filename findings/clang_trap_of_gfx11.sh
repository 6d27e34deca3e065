#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# clang 22.1.8: __builtin_trap is one instruction on gfx942 and gfx1201, and a program on gfx1100 (gfx11): s_trap 2, then a message that interrupts
# the host with the number of the queue's doorbell, then a loop of s_sethalt without an end of the wave. Expected: s_trap 2 everywhere,
# and no write to a trap handler's registers from a kernel (ttmp2 keeps m0). A counter of instructions or a reader of
# disassembly has to know it. Seen: the instructions below.
set -euo pipefail
. "$(dirname "$0")/common.sh"

llvm

trap() { # ARCH: from the trap on
  kernel "$1" << 'HIP' | awk '/^s_trap/ { seen = 1 } seen && !/^\.|^s_delay_alu/ { print $1 }'
extern "C" __attribute__((global)) void k() { __builtin_trap(); }
HIP
}

for arch in gfx942 gfx1201; do still "$arch" 's_trap' "$(trap $arch)"; done
still "gfx1100" "$(printf '%s\n' s_trap s_sendmsg_rtn_b32 s_mov_b32 s_waitcnt s_and_b32 s_bitset1_b32 s_mov_b32 s_sendmsg s_mov_b32 s_sethalt s_branch)" \
  "$(trap gfx1100)"
