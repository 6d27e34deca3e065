#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# util-linux 2.38.1: if a file was printed by plain `dmesg`, `dmesg -F FILE` takes the whole file as one message. Each
# line after the first is indented as continued text. Thus -t removes only the first stamp, -d compares only the first
# stamp, and --level prints nothing, for any list of levels, with exit code 0. Expected: one record per line. A record
# begins only at a line with <N>, as `dmesg -r` prints it. Seen: the output below.
set -euo pipefail
. "$(dirname "$0")/common.sh"

debian util-linux=2.38.1-5+deb12u3
dmesg=$root/bin/dmesg
"$dmesg" --version
printf '[    1.000000] amdgpu: first\n[    2.500000] amdgpu: page fault\n[    4.500000] usb 1-1: new\n' > "$tmp/plain"
sed 's/^/<3>/' "$tmp/plain" > "$tmp/raw"

still "without stamps" $'amdgpu: first\n[    2.500000] amdgpu: page fault\n[    4.500000] usb 1-1: new' \
  "$("$dmesg" -t -F "$tmp/plain")"
still "differences" "[    1.000000 <    0.000000>] amdgpu: first
                              [    2.500000] amdgpu: page fault
                              [    4.500000] usb 1-1: new" "$("$dmesg" -d -F "$tmp/plain")"
still "all levels, and the exit code" 0 "$("$dmesg" -l emerg,alert,crit,err,warn,notice,info,debug -F "$tmp/plain"; echo $?)"
still "with <N>" $'amdgpu: first\namdgpu: page fault\nusb 1-1: new' "$("$dmesg" -t -F "$tmp/raw")"
