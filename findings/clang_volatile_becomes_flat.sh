#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# clang 22.1.8, gfx942: volatile accesses become flat ones. A volatile store through a kernel's pointer is flat_store,
# whereas a plain store is global_store; a volatile __shared__ variable is accessed by flat_store and flat_load, with a
# 64-bit address that is made from src_shared_base, instead of ds_write and ds_read. Expected: the same instructions as
# without volatile, with other cache bits. Remedy: relaxed atomics. Seen: the instructions below.
set -euo pipefail
. "$(dirname "$0")/common.sh"

llvm

access() { # QUALIFIER: the store to global memory and the load from LDS
  kernel gfx942 "-DQ=$1" << 'HIP' | awk '/^(flat|global|ds)_/ { print $1 }'
extern "C" __attribute__((global)) void k(Q unsigned* to) {
  __attribute__((shared)) static Q unsigned words[64];
  words[__builtin_amdgcn_workitem_id_x()] = 1;
  to[0] = words[__builtin_amdgcn_workitem_id_y()];
}
HIP
}

still "volatile: flat" $'flat_store_dword\nflat_load_dword\nflat_store_dword' "$(access volatile)"
still "plain: LDS and global" $'ds_write_b32\nds_read_b32\nglobal_store_dword' "$(access '')"
