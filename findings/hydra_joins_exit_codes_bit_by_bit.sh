#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# MPICH 4.0.2: the exit code of mpiexec.hydra is the bitwise or of the codes of its ranks, possibly a code that no rank
# had: 3 and 5 give 7. A signal counts as its bare number, so a rank that SIGKILL ended gives 9. Expected: the code of
# one rank, and 128 more than the signal, as in shells and with Open MPI 4.1.4. Remedy: test only for 0. Seen: 7, 3 and
# 9.
set -euo pipefail
. "$(dirname "$0")/common.sh"

mpich
code() { # SCRIPT of two ranks
  local code=0
  hydra -n 2 sh -c "$1" > "$tmp/out" 2>&1 || code=$?
  echo "$code"
}

# shellcheck disable=SC2016 # the ranks expand these
# shellcheck disable=SC2016 # the ranks expand them
{
  still "3 and 5" 7 "$(code 'exit $((3 + 2 * PMI_RANK))')"
# shellcheck disable=SC2016 # the ranks expand these
  still "1 and 2" 3 "$(code 'exit $((1 + PMI_RANK))')"
# shellcheck disable=SC2016 # the ranks expand these
  still "a rank killed by SIGKILL, the other 0" 9 "$(code '[ $PMI_RANK = 0 ] || kill -9 $$')"
}
