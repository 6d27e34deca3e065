# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# What findings share: pinned packages in a temp folder, which is removed at the end, and the comparison that decides.
# Each finding sources this file.
#
#   debian NAME=VERSION...   unpacks these packages of Debian 12 below $root, without installing them
#   npm_package NAME@VERSION installs a package below $tmp/node_modules
#   still WHAT EXPECTED SEEN prints SEEN; ends with 1 if it is not EXPECTED
#   cannot WHY               ends with 77
#
# The other functions install a tool that several findings use, and run it.

tmp=$(mktemp -d)
root=$tmp/root
mkdir "$root"
trap 'rm -rf "$tmp"' EXIT

cannot() {
  echo "cannot run here: $*"
  exit 77
}

debian() {
  [[ $(. /etc/os-release && echo "$ID$VERSION_ID $(uname -m)") == "debian12 x86_64" ]] ||
    cannot "the packages are Debian 12's, for amd64"
  mkdir -p "$tmp/packages"
  (cd "$tmp/packages" && timeout 300 apt-get download "$@" > ../download 2>&1) ||
    cannot "apt-get download (after apt-get update) gives none of: $*"
  local package
  for package in "$tmp/packages"/*.deb; do dpkg -x "$package" "$root"; done
  rm -r "$tmp/packages"
  export LD_LIBRARY_PATH=$root/usr/lib/x86_64-linux-gnu:$root/lib/x86_64-linux-gnu:$root/usr/lib
  echo "packages: $*"
}

npm_package() {
  command -v npm > /dev/null || cannot "no npm"
  timeout 300 npm install --silent --no-save --prefix "$tmp" "$1" > "$tmp/download" 2>&1 || cannot "npm has no $1"
  echo "packages: $1"
}

needs() {
  local name
  for name in "$@"; do command -v "$name" > /dev/null || cannot "no $name"; done
}

still() {
  if [[ $3 == "$2" ]]; then
    printf 'still so: %s\n%s\n' "$1" "$3"
  else
    printf 'CHANGED: %s\n--- expected\n%s\n--- seen\n%s\n' "$1" "$2" "$3"
    exit 1
  fi
}

# LLVM 22: its compiler, and the instructions that it makes of the HIP kernel `k` on standard input.
llvm() {
  local version=1:22.1.8-1~deb12u1
  debian "clang-22=$version" "libclang-cpp22=$version" "libllvm22=$version" "${@/%/=$version}"
  LD_LIBRARY_PATH=$LD_LIBRARY_PATH:$root/usr/lib/llvm-22/lib
  bin=$root/usr/lib/llvm-22/bin
  "$bin/clang" --version | head -1
}

kernel() { # ARCH OPTION...: one instruction a line, without comments
  local arch=$1
  shift
  "$bin/clang" -x hip --offload-arch="$arch" --offload-device-only -nogpulib -nogpuinc -std=c++20 -O2 "$@" -S - -o - |
    awk '/^k:/ { inside = 1; next } /\.section/ { inside = 0 } inside' | sed 's/;.*//; s/^[ \t]*//; s/[ \t]*$//' |
    grep -v '^$'
}

# A static program for Linux on another processor: cross ARCH SOURCE PROGRAM.
cross() {
  local target=$1-linux-gnu
  local gcc=$root/usr/lib/gcc-cross/$target/12
  PATH=$bin:$PATH "$bin/clang" --target="$target" -O2 -nostdinc -isystem "$root/usr/lib/llvm-22/lib/clang/22/include" \
    -isystem "$root/usr/$target/include" -B"$root/usr/$target/lib" -L"$root/usr/$target/lib" -B"$gcc" -L"$gcc" \
    -fuse-ld=lld -static -pthread "$2" -o "$3"
}

# qemu-user of Debian 12, and what `cross` needs: qemu ARCH NAME GCC, where NAME is Debian's for ARCH.
qemu() {
  debian qemu-user=1:7.2+dfsg-7+deb12u18+b3 libcapstone4=4.0.2-5 liburing2=2.3-3 libnuma1=2.0.16-1 \
    libc6{,-dev}-"$2"-cross=2.36-8cross1 "linux-libc-dev-$2-cross=6.1.4-1cross1" "libgcc-12-dev-$2-cross=$3"
  llvm libclang-common-22-dev lld-22
  "$root/usr/bin/qemu-$1" --version | head -1
}

# gdb of Debian 12, without the user's settings.
gdb_13() {
  debian gdb-minimal=13.1-3 libdebuginfod1=0.188-2.1 libdebuginfod-common=0.188-2.1 libipt2=2.0.5-1 libxxhash0=0.8.1-1
  gdb --version | head -1
}

gdb() { timeout 120 "$root"/usr/bin/gdb* -nx -batch "$@"; }

core_of() { # PID: writes $tmp/core
  gdb -p "$1" -ex "generate-core-file $tmp/core" > "$tmp/log" 2>&1 || cannot "gdb cannot attach here"
}

# MPICH's launcher.
mpich() {
  debian mpich=4.0.2-3+b1 libmpich12=4.0.2-3+b1 libhwloc15=2.9.0-1 libslurm38=22.05.8-4+deb12u3
  hydra --version | sed -n 's/^ *Version: */hydra /p'
}

hydra() { timeout 60 "$root/usr/bin/mpiexec.hydra" "$@"; }

# Open MPI's launcher.
open_mpi() {
  debian openmpi-bin=4.1.4-3+b1 libopenmpi3=4.1.4-3+b1 openmpi-common=4.1.4-3 libpmix2=4.2.2-1+deb12u1 \
    libhwloc15=2.9.0-1 libevent-{core,pthreads}-2.1-7=2.1.12-stable-8+deb12u1
  export OPAL_PREFIX=$root/usr OPAL_LIBDIR=$root/usr/lib/x86_64-linux-gnu/openmpi/lib
  export OMPI_MCA_mca_base_component_path=$OPAL_LIBDIR/openmpi3 OMPI_MCA_plm_rsh_agent=false
  export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  orterun --version | head -1
}

orterun() { timeout 60 "$root/usr/bin/orterun" "$@"; }

# Microsoft's reader of SARIF.
sarif_multitool() {
  npm_package @microsoft/sarif-multitool-linux@5.7.0
  chmod +x "$tmp/node_modules/@microsoft/sarif-multitool-linux/Sarif.Multitool"
  export DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1 DOTNET_BUNDLE_EXTRACT_BASE_DIR=$tmp/net
}

sarif() { timeout 120 "$tmp/node_modules/@microsoft/sarif-multitool-linux/Sarif.Multitool" "$@" 2>&1; }

# SimGrid, and a program for it: rates HOST... prints, for one transfer of 1 GB from the host a to each HOST, all begun
# at once, its rate in percent of 1 GB/s. The hosts and their links are in $tmp/platform.xml.
simgrid() {
  local version=1.74.0+ds1-21
  debian libsimgrid3.32=3.32-2+b2 libsimgrid-dev=3.32-2+b2 libns3.37=3.37-2 libboost1.74-dev=$version \
    libboost-{context,stacktrace}1.74.0=$version libgsl{27,cblas0}=2.7.1+dfsg-5+deb12u1 \
    lib{gfortran5,quadmath0}=12.2.0-14+deb12u1
  needs g++
  cat > "$tmp/rates.cpp" << 'CPP'
#include <simgrid/s4u.hpp>
#include <cstdio>
namespace sg = simgrid::s4u;
int main(int count, char** values) {
  sg::Engine engine(&count, values);
  engine.load_platform(values[1]);
  for (int i = 2; i < count; i++)
    sg::Actor::create("transfer", engine.host_by_name("a"), [to = std::string(values[i])] {
      const double begin = sg::Engine::get_clock();
      sg::Comm::sendto(sg::Host::by_name("a"), sg::Host::by_name(to), 1e9);
      std::printf("%s %.1f\n", to.c_str(), 100 / (sg::Engine::get_clock() - begin));
    });
  engine.run();
}
CPP
  LD_LIBRARY_PATH='' g++ -std=c++17 -I"$root/usr/include" "$tmp/rates.cpp" -o "$tmp/rates" \
    -Wl,--allow-shlib-undefined -Wl,-rpath-link,"$root/usr/lib/x86_64-linux-gnu" -L"$root/usr/lib/x86_64-linux-gnu" \
    -lsimgrid
}

rates() { timeout 60 "$tmp/rates" "$tmp/platform.xml" "$@" --log=root.thres:error; }
