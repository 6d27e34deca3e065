#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# MPICH 4.0.2: `mpiexec.hydra -prepend-rank` writes [RANK] before each piece of output that it reads, not before each
# line. If a rank writes a line in two pieces, the second has a prefix of its own within the line, and output of other
# ranks may come between. Expected: one prefix per line. Remedy: whole lines in one write, or one file per rank with
# -outfile-pattern. Seen: [0] first [0] second
set -euo pipefail
. "$(dirname "$0")/common.sh"

mpich

still "two pieces of one line" '[0] first [0] second' \
  "$(hydra -prepend-rank -n 1 sh -c 'printf "first "; sleep 1; echo second')"
