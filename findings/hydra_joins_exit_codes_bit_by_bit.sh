#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# MPICH 4.0.2: mpiexec.hydra exits with the bitwise or of what its ranks ended with, a code that no rank may have had: 3 and 5 give 7. A signal
# counts as its bare number: a rank that SIGKILL ended gives 9, which is also exit code 9. Expected: the code of one of the ranks, and
# 128 more than the signal, as shells have it and as Open MPI 4.1.4 has both (137). A script that acts on an exit code should
# have the ranks agree on one. Seen: 7, 3 and 9.
set -euo pipefail
. "$(dirname "$0")/common.sh"

debian mpich=4.0.2-3+b1 libmpich12=4.0.2-3+b1 libhwloc15=2.9.0-1 libslurm38=22.05.8-4+deb12u3
hydra=$root/usr/bin/mpiexec.hydra
"$hydra" --version | sed -n 's/^ *Version: */hydra /p'
code() { # SCRIPT of two ranks
  local code=0
  timeout 60 "$hydra" -n 2 sh -c "$1" > "$tmp/out" 2>&1 || code=$?
  echo "$code"
}

still "3 and 5" 7 "$(code 'exit $((3 + 2 * PMI_RANK))')"
still "1 and 2" 3 "$(code 'exit $((1 + PMI_RANK))')"
still "a rank killed by SIGKILL, the other 0" 9 "$(code '[ $PMI_RANK = 0 ] || kill -9 $$')"
