# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# What the findings share: pinned packages, unpacked into a temp folder that goes at the end, and the comparison that is the verdict.
# Sourced by each finding, not run.
#
#   debian NAME=VERSION...   unpacks these packages of Debian 12 below $root, without installing them
#   npm_package NAME@VERSION installs a package below $tmp/node_modules
#   still WHAT EXPECTED SEEN prints SEEN; ends with 1 if it is not EXPECTED
#
# 77: cannot run here. Bound of every command: `timeout`.

tmp=$(mktemp -d)
root=$tmp/root
mkdir "$root"
trap 'rm -rf "$tmp"' EXIT

cannot() {
  echo "cannot run here: $*"
  exit 77
}

debian() {
  [[ $(. /etc/os-release && echo "$ID$VERSION_ID") == debian12 && $(uname -m) == x86_64 ]] || cannot "the packages are Debian 12's, for amd64"
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
    awk '/^k:/ { inside = 1; next } /\.section/ { inside = 0 } inside' | sed 's/;.*//; s/^[ \t]*//; s/[ \t]*$//' | grep -v '^$'
}

# A static program for Linux on another processor: cross ARCH SOURCE PROGRAM.
cross() {
  local target=$1-linux-gnu
  local gcc=$root/usr/lib/gcc-cross/$target/12
  PATH=$bin:$PATH "$bin/clang" --target="$target" -O2 -nostdinc -isystem "$root/usr/lib/llvm-22/lib/clang/22/include" \
    -isystem "$root/usr/$target/include" -B"$root/usr/$target/lib" -L"$root/usr/$target/lib" -B"$gcc" -L"$gcc" -fuse-ld=lld -static \
    -pthread "$2" -o "$3"
}

# qemu-user of Debian 12, and what `cross` needs: qemu ARCH NAME GCC, where NAME is Debian's for ARCH.
qemu() {
  debian qemu-user=1:7.2+dfsg-7+deb12u18+b3 libcapstone4=4.0.2-5 liburing2=2.3-3 libnuma1=2.0.16-1 \
    libc6{,-dev}-"$2"-cross=2.36-8cross1 "linux-libc-dev-$2-cross=6.1.4-1cross1" "libgcc-12-dev-$2-cross=$3"
  llvm libclang-common-22-dev lld-22
  "$root/usr/bin/qemu-$1" --version | head -1
}
