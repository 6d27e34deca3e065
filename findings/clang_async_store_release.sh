#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# clang 22.1.8, gfx1250: a release to the system does not wait for an earlier global_store_async_from_lds. It waits for
# storecnt, but such a store counts in asynccnt, so another agent can see the flag before the bytes. Expected: a release
# covers all earlier stores of its wave, as on other targets. Remedy: __builtin_amdgcn_s_wait_asynccnt(0) before the
# flag. Seen: the store, global_wb, s_wait_storecnt, the flag; with the builtin, s_wait_asynccnt follows the store.
set -euo pipefail
. "$(dirname "$0")/common.sh"

llvm

release() { # WAIT
  kernel gfx1250 "-DWAIT=$1" << 'HIP' | awk '/^global|^s_wait_(store|async)cnt/ { print $1 }'
typedef __attribute__((address_space(1))) int global;
typedef __attribute__((address_space(3))) int local;
extern "C" __attribute__((global)) void k(global* to, unsigned* flag, local* lds) {
  __builtin_amdgcn_global_store_async_from_lds_b32(to, lds, 0, 0);
  WAIT;
  __hip_atomic_store(flag, 1u, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_SYSTEM);
}
HIP
}

still "no wait for asynccnt" $'global_store_async_from_lds_b32\nglobal_wb\ns_wait_storecnt\nglobal_store_b32' \
  "$(release '')"
still "with the builtin" \
  $'global_store_async_from_lds_b32\ns_wait_asynccnt\nglobal_wb\ns_wait_storecnt\nglobal_store_b32' \
  "$(release '__builtin_amdgcn_s_wait_asynccnt(0)')"
