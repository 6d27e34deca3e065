#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# clang 22.1.8, gfx90a, gfx942, gfx950: a lane that reads from LDS what its own global_load_lds has put there gets no wait for
# vmcnt in between, from -O1 on: the ds_read may see the old bytes. Expected: the wait, which earlier work on the back end added
# for just this, and which -fno-strict-aliasing brings back. A release or acquire fence of scope workgroup in between also brings
# it. Seen: global_load_lds_dword, then ds_read_b32, then a wait for lgkmcnt alone. gfx90a has the same instruction as global_load_dword
# with the bit lds.
set -euo pipefail
. "$(dirname "$0")/common.sh"

llvm

read_back() { # ARCH OPTION: the loads and the waits for vmcnt, in order
  kernel "$@" << 'HIP' | awk '/ds_read/ { print $1 } /lds_dword| lds$/ { print "load to LDS" } /vmcnt/ { print "wait for vmcnt" }'
typedef __attribute__((address_space(1))) unsigned global;
typedef __attribute__((address_space(3))) unsigned local;
extern "C" __attribute__((global)) void k(global* from, unsigned* to, local* lds) {
  __builtin_amdgcn_global_load_lds(from, lds, 4, 0, 0);
  *to = *lds;
}
HIP
}

for arch in gfx90a gfx942 gfx950; do
  still "$arch: no wait" $'load to LDS\nds_read_b32' "$(read_back $arch -O1)"
  still "$arch: a wait without type-based aliasing" $'load to LDS\nwait for vmcnt\nds_read_b32' "$(read_back $arch -fno-strict-aliasing)"
done
