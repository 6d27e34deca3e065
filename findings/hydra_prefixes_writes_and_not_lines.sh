#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# MPICH 4.0.2: `mpiexec.hydra -prepend-rank` sets [RANK] before what it reads at a time, not before lines: of a line that a rank writes in two
# pieces, the second piece gets a prefix of its own, on the same line, and the pieces of other ranks come in between.
# Expected: one prefix at the begin of each line, as the option's name in the manual ("prepend rank to output") suggests and
# as `srun --label` does. A program that reads the output by lines has to write whole lines at once. Seen: [0] first [0] second
set -euo pipefail
. "$(dirname "$0")/common.sh"

debian mpich=4.0.2-3+b1 libmpich12=4.0.2-3+b1 libhwloc15=2.9.0-1 libslurm38=22.05.8-4+deb12u3
hydra=$root/usr/bin/mpiexec.hydra
"$hydra" --version | sed -n 's/^ *Version: */hydra /p'

still "two pieces of one line" '[0] first [0] second' "$(timeout 60 "$hydra" -prepend-rank -n 1 sh -c 'printf "first "; sleep 1; echo second')"
