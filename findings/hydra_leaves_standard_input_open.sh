#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# MPICH 4.0.2: under mpiexec.hydra, rank 0 reads the launcher's standard input to its end, and every other rank has an input on which
# nothing comes and which does not end. A program that reads its input to the end does so in rank 0 alone; elsewhere it waits. Expected: the
# end of file at once, as with Open MPI 4.1.4, or /dev/null. Redirect it for each rank: sh -c 'PROGRAM < /dev/null'.
# Seen: rank 1 of 2 is still waiting after 2 s, when its own time limit ends it; rank 0 has read the line.
set -euo pipefail
. "$(dirname "$0")/common.sh"

needs bash
debian mpich=4.0.2-3+b1 libmpich12=4.0.2-3+b1 libhwloc15=2.9.0-1 libslurm38=22.05.8-4+deb12u3
hydra=$root/usr/bin/mpiexec.hydra
"$hydra" --version | sed -n 's/^ *Version: */hydra /p'

# bash: a read that its time limit ended has a code above 128; at the end of file it is 1.
still "rank 0 reads, rank 1 waits" $'rank 0: hello\nrank 1: waits' "$(echo hello | timeout 60 "$hydra" -n 2 bash -c '
  code=0
  read -r -t 2 line || code=$?
  if ((code > 128)); then line=waits; elif ((code == 1)); then line=end; fi
  echo "rank $PMI_RANK: $line"' | sort)"
