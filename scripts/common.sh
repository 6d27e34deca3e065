# SPDX-License-Identifier: MIT
# For scripts/test and scripts/demo: packages, the lock, and steps with a name and a time. Sourced, not run.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=$root/build
logs=$root/build-logs
jobs=$(nproc)

# Debian's names. The demo builds a part of what the tests build.
demo_packages=(g++ meson ninja-build pkg-config libfmt-dev nlohmann-json3-dev libcli11-dev libarchive-dev)
test_packages=("${demo_packages[@]}" libbenchmark-dev catch2 clang clang-22 libclang-rt-dev llvm clang-format cmake man-db reuse doxygen mmdebstrap lintian dpkg-dev debhelper dh-python lld ccache
  python3 python3-dev python3-jsonschema python3-mesonpy python3-numpy python3-pip python3-pytest python3-venv pybind11-dev jq
  zsh fish chromium chromium-driver emscripten libc++-dev libc++abi-dev g++-multilib qemu-user mkdocs mkdocs-material python3-pygments libjs-codemirror
  python3-torch libzstd-dev liblzma-dev libbz2-dev zlib1g-dev libhsakmt-dev libhsa-runtime-dev rocminfo rocm-smi hwloc-nox libamdhip64-dev libopenmpi-dev openmpi-bin)

die() {
  printf '%s: %s\n' "${0##*/}" "$*" >&2
  exit 1
}

# lacking PACKAGE...: prints the packages that are not installed, one per line.
lacking() {
  local package
  for package; do
    if [[ $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>&1) != installed ]]; then echo "$package"; fi
  done
}

# need PACKAGE...: installs missing packages from Debian.
need() {
  if ! command -v dpkg-query >/dev/null; then
    echo "this is not a Debian system, so nothing is installed; it needs what Debian calls $*"
    return
  fi
  local missing sudo=() dpkg_lock
  mapfile -t missing < <(lacking "$@")
  ((${#missing[@]})) || return 0
  local by_hand="apt-get update && apt-get install -y --no-install-recommends ${missing[*]}"
  if ((EUID != 0)); then
    command -v sudo >/dev/null ||
      die "missing packages: ${missing[*]}; not root and no sudo. As root: $by_hand"
    # Without a terminal, sudo cannot ask for a password: fail instead of hanging.
    sudo=(sudo)
    [[ -t 0 ]] || sudo=(sudo -n)
  fi
  # Runs in other clones install too; the second run finds nothing left to install.
  exec {dpkg_lock}</var/lib/dpkg
  flock -w 900 "$dpkg_lock" || die "waited 15 minutes for another run that installs packages"
  mapfile -t missing < <(lacking "$@")
  if ((${#missing[@]})); then
    echo "installing from Debian: ${missing[*]}"
    step 'apt-get update' "${sudo[@]}" apt-get update ||
      die "missing packages: ${missing[*]}; apt-get update failed (no network, or no rights?). By hand: $by_hand"
    step 'apt-get install' "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive \
      apt-get -o DPkg::Lock::Timeout=600 install -y --no-install-recommends "${missing[@]}" ||
      die "missing packages: ${missing[*]}; apt-get install failed. By hand: $by_hand"
  fi
  exec {dpkg_lock}<&-
}

# Allows one run at a time in this tree. The lock is on the folder itself, so it leaves no file and ends with its holder.
lock_tree() {
  exec {tree_lock}<"$root/scripts"
  if ! flock -n "$tree_lock"; then
    echo 'another run is active in this tree: waiting for at most 60 minutes'
    flock -w 3600 "$tree_lock" || die 'waited 60 minutes for the other run in this tree'
  fi
}
unlock_tree() { exec {tree_lock}<&-; }

# step NAME COMMAND...: prints one line, with the time taken. If the command fails, shows its output. If `report` is set, that
# function adds to the line.
step() {
  local name=$1 status=0 begin=$SECONDS log
  shift
  mkdir -p "$logs"
  log=$logs/${name//[^A-Za-z0-9]/-}.log
  printf '%-28s ' "$name"
  "$@" >"$log" 2>&1 </dev/null || status=$?
  if ((status == 0)); then printf '%-6s' ok; else printf '%-6s' FAILED; fi
  printf '%5d s' $((SECONDS - begin))
  if [[ -n ${report:-} ]]; then printf '   '; "$report"; fi
  printf '\n'
  if ((status != 0)); then
    printf '    the last lines of %s:\n' "${log#"$root"/}"
    tail -n 200 "$log" | sed 's/^/    /'
  fi
  return "$status"
}

# Used if installed: lld links faster, and ccache reuses what g++ has compiled, also for another tree. clang++ compiles without
# ccache: its precompiled headers name the files of the tree that made them, so a header of another tree defines everything twice.
if command -v ld.lld >/dev/null; then export CXX_LD=lld; fi
if command -v ccache >/dev/null; then
  # Precompiled headers are cached only with this leave to trust what their files' times say.
  export CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime CCACHE_NOHASHDIR=1
fi
# launcher COMPILER: what precedes it.
launcher() { if [[ $1 == g++ ]] && command -v ccache >/dev/null; then echo 'ccache '; fi; }

# configure DIR COMPILER OPTION...: an existing build folder keeps its objects, unless another compiler built them.
configure() {
  local dir=$1 compiler=$2 how=() faster='' options=() option
  shift 2
  # GCC collects its garbage less often, which saves about 5 % of its time.
  if [[ $compiler == g++ ]]; then faster='--param=ggc-min-heapsize=524288'; fi
  for option; do
    if [[ $option == -Dcpp_args=* ]]; then faster+=" ${option#-Dcpp_args=}"; else options+=("$option"); fi
  done
  if [[ -e $dir/meson-private/coredata.dat ]]; then
    how=(--reconfigure)
    if [[ $(cat "$dir/compiler" 2>&1) != "$compiler" ]]; then
      echo "$dir was not configured by this script for $compiler: configuring again"
      how=(--wipe)
    fi
  fi
  CXX=$(launcher "$compiler")$compiler meson setup "${how[@]}" -Dgrouped=true "-Dcpp_args=$faster" "${options[@]}" "$dir" "$root" && echo "$compiler" >"$dir/compiler"
}
