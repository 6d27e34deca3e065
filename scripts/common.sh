# SPDX-License-Identifier: MIT
# For scripts/test and scripts/demo: packages, the lock, and steps with a name and a time. Sourced, not run.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=$root/build
logs=$root/build-logs
jobs=$(nproc)

die() {
  printf '%s: %s\n' "${0##*/}" "$*" >&2
  exit 1
}

# rows [WHEN...]: the names of scripts/suites.txt that run then; without WHEN, all.
rows() {
  local name when _
  while read -r name when _; do
    if [[ $name && $name != \#* ]] && { ((!$#)) || [[ " $* " == *" $when "* ]]; }; then echo "$name"; fi
  done <"$root/scripts/suites.txt"
}
# packages_of NAME...: the packages of these rows, one per line. Of one with a question mark, only if its program is not in PATH: it may
# be there from another package, with which Debian's conflicts.
packages_of() {
  local name when needs package packages
  while read -r name when needs; do
    [[ " $* " == *" $name "* ]] || continue
    read -ra packages <<<"$needs"
    for package in "${packages[@]}"; do
      if [[ $package != *\? ]] || ! command -v "${package%\?}" >/dev/null; then echo "${package%\?}"; fi
    done
  done <"$root/scripts/suites.txt" | sort -u
}

# Whether packages may be installed: --no-install says no.
may_install=true
# lacking PACKAGE...: prints the packages that are not installed, one per line. On a system without dpkg, nothing is known to be lacking.
lacking() {
  local package installed
  command -v dpkg-query >/dev/null && (($#)) || return 0
  # It fails if it knows one of them not at all, and lists the others.
  mapfile -t installed < <(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "$@" 2>/dev/null | sed -n 's/^installed //p')
  for package; do
    if [[ " ${installed[*]} " != *" $package "* ]]; then echo "$package"; fi
  done
}

# need PACKAGE...: installs missing packages from Debian, or ends with one sentence that says what to type.
need() {
  local missing sudo=() dpkg_lock again="scripts/${0##*/} --no-install" install='apt-get install -y --no-install-recommends'
  if ! command -v dpkg-query >/dev/null; then
    ! $may_install || die "this is not a Debian system: install what Debian calls $*, and then type: $again"
    return 0
  fi
  mapfile -t missing < <(lacking "$@")
  ((${#missing[@]})) || return 0
  local by_hand="apt-get update && $install ${missing[*]}"
  $may_install || die "with --no-install, these packages have to be there; as root, type: $by_hand"
  if ((EUID != 0)); then
    command -v sudo >/dev/null || die "packages are missing, and there is no sudo; as root, type: $by_hand"
    # Without a terminal, sudo cannot ask for a password: fail instead of hanging.
    sudo=(sudo)
    [[ -t 0 ]] || sudo=(sudo -n)
    "${sudo[@]}" true 2>/dev/null || die "packages are missing, and sudo does not let ${USER:-this user} install them; as root, type: $by_hand"
  fi
  # Runs in other clones install too; the second run finds nothing left to install.
  exec {dpkg_lock}</var/lib/dpkg
  flock -w 900 "$dpkg_lock" || die "waited 15 minutes for another run that installs packages"
  mapfile -t missing < <(lacking "$@")
  if ((${#missing[@]})); then
    echo "installing from Debian: ${missing[*]}"
    step 'apt-get update' fetch_lists || die "Debian's lists of packages cannot be fetched (no network?); as root, type: $by_hand"
    step 'apt-get install' "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive \
      apt-get -o DPkg::Lock::Timeout=600 install -y --no-install-recommends "${missing[@]}" ||
      die "not every package can be installed, as the lines above say; as root, type: $by_hand"
    grep -E '^Need to get' "$logs/apt-get-install.log" | sed 's/^/    /; s/Need to get/fetched:/; s/ of archives\.//'
  fi
  exec {dpkg_lock}<&-
}
# apt-get update succeeds even if it has fetched nothing. `sudo` is that of the calling need.
fetch_lists() {
  local out
  out=$("${sudo[@]}" env LC_ALL=C apt-get update 2>&1) || { echo "$out"; return 1; }
  echo "$out"
  grep -qE '^(Get|Hit):' <<<"$out"
}

# usable: false, after a sentence for each reason, if the build or its tests cannot work on this machine.
usable() {
  local program wrong=() scope=0 folder=${TMPDIR:-/tmp}
  for program in g++ meson ninja pkg-config python3; do
    command -v "$program" >/dev/null || wrong+=("there is no $program in PATH ($PATH)")
  done
  [[ -w $root ]] || wrong+=("$root cannot be written, and build/ is made there: copy the tree to a folder of your own")
  [[ -d $folder && -w $folder ]] || wrong+=("TMPDIR is $folder, which is not a folder that you can write to: export TMPDIR=/tmp")
  [[ -d /tmp && -w /tmp ]] || wrong+=("/tmp cannot be written, and HIP creates files there whatever TMPDIR says: mount a tmpfs on it")
  [[ -d /dev/shm && -w /dev/shm ]] || wrong+=("/dev/shm cannot be written, and HIP shares events there: mount a tmpfs on it")
  if command -v python3 >/dev/null && ! python3 -c 'import pty; pty.openpty()' 2>/dev/null; then
    wrong+=("no pseudo-terminal can be opened, and tests type into one: mount devpts on /dev/pts")
  fi
  if [[ -r /proc/sys/kernel/yama/ptrace_scope ]]; then scope=$(</proc/sys/kernel/yama/ptrace_scope); fi
  if ((scope > 1)); then
    wrong+=("no process may be traced, which tests of the debugger do: sysctl kernel.yama.ptrace_scope=1 (from 3, only after a reboot)")
  fi
  [[ $(ulimit -f) == unlimited ]] || wrong+=("the size of files is limited, and the memory of emulated GPUs is a large file: ulimit -f unlimited")
  [[ $(ulimit -n) == unlimited ]] || (($(ulimit -n) >= 1024)) || wrong+=("$(ulimit -n) descriptors are too few: ulimit -n 1024")
  ((${#wrong[@]})) || return 0
  printf "${0##*/}: %s\n" "${wrong[@]}" >&2
  return 1
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
  # Precompiled headers are cached only with this leave to trust what their files' times say. Headers are compared whole (DEPEND),
  # not as preprocessed: after a change in a comment, a precompiled header from before it no longer knows the file by its contents,
  # and `#pragma once` lets it in a second time. The namespace keeps out what was cached without this.
  export CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime CCACHE_NOHASHDIR=1
  export CCACHE_DEPEND=1 CCACHE_NAMESPACE=precompiled-headers-compared
fi
# launcher COMPILER: what precedes it.
launcher() { if [[ $1 == g++ ]] && command -v ccache >/dev/null; then printf '%q ' "$root/scripts/cached"; fi; }

# configure DIR COMPILER OPTION...: an existing build folder keeps its objects, unless another compiler built them.
configure() {
  local dir=$1 compiler=$2 how=() faster='' options=() option packages missing
  shift 2
  # GCC collects its garbage less often, which saves about 5 % of its time.
  if [[ $compiler == g++ ]]; then faster='--param=ggc-min-heapsize=524288'; fi
  for option; do
    if [[ $option == -Dcpp_args=* ]]; then faster+=" ${option#-Dcpp_args=}"; else options+=("$option"); fi
  done
  # Meson remembers what it has not found, also after the package has been installed.
  mapfile -t packages < <(rows)
  mapfile -t packages < <(packages_of "${packages[@]}")
  missing=$(lacking "${packages[@]}")
  if [[ -e $dir/meson-private/coredata.dat ]]; then
    how=(--reconfigure)
    [[ $(cat "$dir/missing-packages" 2>&1) == "$missing" ]] || meson configure --clearcache "$dir"
    if [[ $(cat "$dir/compiler" 2>&1) != "$(launcher "$compiler")$compiler" ]]; then
      echo "$dir was not configured by this script for $compiler: configuring again"
      how=(--wipe)
    fi
  fi
  CXX=$(launcher "$compiler")$compiler meson setup "${how[@]}" -Dgrouped=true "-Dcpp_args=$faster" "${options[@]}" "$dir" "$root" || return
  echo "$(launcher "$compiler")$compiler" >"$dir/compiler"
  echo "$missing" >"$dir/missing-packages"
}
