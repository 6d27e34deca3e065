#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# util-linux 2.38.1: `dmesg -F FILE` of a file that plain `dmesg` has printed takes all of it as one message: the first stamp is the message's,
# and every further line is continued text, indented, with its stamp inside. So -t removes and -d compares only the first stamp, and --level,
# which cannot know a level, prints nothing and exits with 0, whichever levels it is given. Expected: one record a line. Only lines that
# begin with <N>, as `dmesg -r` prints them, begin a record. Seen: the output below.
set -euo pipefail
. "$(dirname "$0")/common.sh"

debian util-linux=2.38.1-5+deb12u3
dmesg=$root/bin/dmesg
"$dmesg" --version
printf '[    1.000000] amdgpu: first\n[    2.500000] amdgpu: page fault\n[    4.500000] usb 1-1: new\n' > "$tmp/plain"
sed 's/^/<3>/' "$tmp/plain" > "$tmp/raw"

still "without stamps" $'amdgpu: first\n[    2.500000] amdgpu: page fault\n[    4.500000] usb 1-1: new' "$("$dmesg" -t -F "$tmp/plain")"
still "differences" "[    1.000000 <    0.000000>] amdgpu: first
                              [    2.500000] amdgpu: page fault
                              [    4.500000] usb 1-1: new" "$("$dmesg" -d -F "$tmp/plain")"
still "all levels" '' "$("$dmesg" -l emerg,alert,crit,err,warn,notice,info,debug -F "$tmp/plain")"
still "with <N>" $'amdgpu: first\namdgpu: page fault\nusb 1-1: new' "$("$dmesg" -t -F "$tmp/raw")"
