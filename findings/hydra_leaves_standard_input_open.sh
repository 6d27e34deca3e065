#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# MPICH 4.0.2: under mpiexec.hydra, rank 0 has the launcher's standard input. The input of every other rank brings no
# bytes and has no end, so a program that reads its input to the end waits in these ranks. Expected: the end of file, as
# with Open MPI 4.1.4. Remedy: redirect it in each rank, sh -c 'PROGRAM < /dev/null'. Seen: rank 0 reads the line, and
# rank 1 still waits when its own limit of 2 s ends the read.
set -euo pipefail
. "$(dirname "$0")/common.sh"

mpich

# A read that its time limit ended has a code above 128; at the end of the input it is 1.
# shellcheck disable=SC2016 # the ranks expand it
rank='
  code=0
  read -r -t 2 line || code=$?
  if ((code > 128)); then line=waits; elif ((code == 1)); then line=end; fi
  echo "rank $PMI_RANK: $line"'
still "rank 0 reads, rank 1 waits" $'rank 0: hello\nrank 1: waits' "$(echo hello | hydra -n 2 bash -c "$rank" | sort)"
