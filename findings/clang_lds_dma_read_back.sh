#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# clang 22.1.8, gfx90a, gfx942, gfx950: from -O1 on, there is no wait for vmcnt between a global_load_lds and a read of
# the same bytes of LDS by the same lane, so ds_read may return the old bytes. Expected: the wait; the compiler inserts
# it at -O0 and with -fno-strict-aliasing. Remedy: that option, or a fence of scope workgroup before the read. Seen: the
# load, then ds_read_b32. (On gfx90a, the load is global_load_dword with the bit lds.)
set -euo pipefail
. "$(dirname "$0")/common.sh"

llvm

read_back() { # ARCH OPTION: the loads and the waits for vmcnt, in order
  kernel "$@" << 'HIP' |
typedef __attribute__((address_space(1))) unsigned global;
typedef __attribute__((address_space(3))) unsigned local;
extern "C" __attribute__((global)) void k(global* from, unsigned* to, local* lds) {
  __builtin_amdgcn_global_load_lds(from, lds, 4, 0, 0);
  *to = *lds;
}
HIP
    awk '/ds_read/ { print $1 } /lds_dword| lds$/ { print "load to LDS" } /vmcnt/ { print "wait for vmcnt" }'
}

for arch in gfx90a gfx942 gfx950; do
  still "$arch: no wait" $'load to LDS\nds_read_b32' "$(read_back $arch -O1)"
  still "$arch: a wait without type-based aliasing" $'load to LDS\nwait for vmcnt\nds_read_b32' \
    "$(read_back $arch -fno-strict-aliasing)"
done
