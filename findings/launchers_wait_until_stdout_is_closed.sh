#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# MPICH 4.0.2 and Open MPI 4.1.4: mpiexec.hydra and mpirun end only when every process has closed the standard output of
# the ranks. A process that a rank has started and not ended keeps the launcher alive, although all ranks have ended
# with 0. Expected: the launcher ends with its ranks, or at least when such a process redirects 0, 1 and 2. With Open
# MPI that suffices. With hydra it does not, because a rank inherits the pipes under further numbers; all descriptors
# have to be closed. Seen: the cases below.
set -euo pipefail
. "$(dirname "$0")/common.sh"

mpich
open_mpi

launched() { # LAUNCHER SCRIPT of one rank
  "$1" -n 1 bash -c "$2"
}
awaited() { # LAUNCHER PREPARATION: whether it waits for a process that prepares so
  launched "$1" "(exec < /dev/null > /dev/null 2>&1; $2; sleep 2; touch $tmp/later) & echo rank ends" > "$tmp/out"
  if [[ -e $tmp/later ]]; then echo waits; else echo ends; fi
  sleep 3
  rm "$tmp/later"
}

for launcher in hydra orterun; do
  still "$launcher" $'rank ends\nleft process' "$(launched "$launcher" '(sleep 2; echo left process) & echo rank ends')"
done
still "orterun: 0 to 2 redirected" ends "$(awaited orterun :)"
still "hydra: 0 to 2 redirected" waits "$(awaited hydra :)"
# shellcheck disable=SC2016 # the rank expands it
still "hydra: all others closed" ends "$(awaited hydra 'for fd in $(seq 3 255); do eval "exec $fd>&-"; done')"
