#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# MPICH 4.0.2 and Open MPI 4.1.4: mpiexec.hydra and mpirun end only when nobody holds the ranks' standard output any more. A process
# that a rank has left behind, such as a collector of a profiler, keeps the launcher, although all ranks have ended with 0. Expected: the
# launcher ends with its ranks; and that a process which redirects 0, 1 and 2 is free of it, as for a shell's pipe. With Open MPI it is. With
# hydra it is not: each rank inherits the launcher's own ends of the pipes under further numbers, so it has to close all descriptors.
# Seen: a left process prints 2 s later, and the launcher prints it; the other two cases as said.
set -euo pipefail
. "$(dirname "$0")/common.sh"

debian mpich=4.0.2-3+b1 libmpich12=4.0.2-3+b1 libhwloc15=2.9.0-1 libslurm38=22.05.8-4+deb12u3 openmpi-bin=4.1.4-3+b1 libopenmpi3=4.1.4-3+b1 \
  openmpi-common=4.1.4-3 libpmix2=4.2.2-1+deb12u1 libevent-core-2.1-7=2.1.12-stable-8+deb12u1 libevent-pthreads-2.1-7=2.1.12-stable-8+deb12u1
export OPAL_PREFIX=$root/usr OPAL_LIBDIR=$root/usr/lib/x86_64-linux-gnu/openmpi/lib
export OMPI_MCA_mca_base_component_path=$OPAL_LIBDIR/openmpi3 OMPI_MCA_plm_rsh_agent=false OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
"$root/usr/bin/mpiexec.hydra" --version | sed -n 's/^ *Version: */hydra /p'
"$root/usr/bin/orterun" --version | head -1

declare -A run=([hydra]=mpiexec.hydra [openmpi]=orterun)
launched() { timeout 60 "$root/usr/bin/${run[$1]}" -n 1 bash -c "$2"; }
awaited() { # LAUNCHER PREPARATION: whether it waits for a process that prepares so
  launched "$1" "(exec < /dev/null > /dev/null 2>&1; $2; sleep 2; touch $tmp/later) & echo rank ends" > "$tmp/out"
  if [[ -e $tmp/later ]]; then echo waits; else echo ends; fi
  sleep 3
  rm "$tmp/later"
}

for launcher in hydra openmpi; do
  still "$launcher" $'rank ends\nleft process' "$(launched "$launcher" '(sleep 2; echo left process) & echo rank ends')"
done
still "openmpi: 0 to 2 redirected" ends "$(awaited openmpi :)"
still "hydra: 0 to 2 redirected" waits "$(awaited hydra :)"
still "hydra: all others closed" ends "$(awaited hydra 'for fd in $(seq 3 255); do eval "exec $fd>&-"; done')"
