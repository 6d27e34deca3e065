#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# util-linux 2.38.1: with CONFIG_PRINTK_CALLER, the kernel writes `[    3.500000][  T123] text`. dmesg, also with -F,
# prints a blank between the brackets; with -t it removes the stamp, but not the caller, which then begins the line.
# Expected: the kernel's text, or no caller. A pattern for such logs has to accept both forms, and a caller without a
# stamp. Seen: the lines below.
set -euo pipefail
. "$(dirname "$0")/common.sh"

debian util-linux=2.38.1-5+deb12u3
dmesg=$root/bin/dmesg
"$dmesg" --version
printf '<3>[    3.500000][  T123] amdgpu 0000:03:00.0: page fault\n' > "$tmp/log"

still "a blank" '[    3.500000] [  T123] amdgpu 0000:03:00.0: page fault' "$("$dmesg" -F "$tmp/log")"
still "without stamps" '[  T123] amdgpu 0000:03:00.0: page fault' "$("$dmesg" -t -F "$tmp/log")"
still "raw" '<3>[    3.500000][  T123] amdgpu 0000:03:00.0: page fault' "$("$dmesg" -r -F "$tmp/log")"
