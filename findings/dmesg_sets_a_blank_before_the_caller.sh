#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# util-linux 2.38.1: with CONFIG_PRINTK_CALLER the kernel writes `[    3.500000][  T123] text`, without a blank between the brackets, and `dmesg`
# prints `[    3.500000] [  T123] text`, with one, also of a file. With -t the caller stays and becomes the begin of the text. Expected: what
# the kernel wrote, or a caller that is known as such. A pattern for such logs has to allow both forms, and a prefix that is a caller alone.
# Seen: the two lines below.
set -euo pipefail
. "$(dirname "$0")/common.sh"

debian util-linux=2.38.1-5+deb12u3
dmesg=$root/bin/dmesg
"$dmesg" --version
printf '<3>[    3.500000][  T123] amdgpu 0000:03:00.0: page fault\n' > "$tmp/log"

still "a blank" '[    3.500000] [  T123] amdgpu 0000:03:00.0: page fault' "$("$dmesg" -F "$tmp/log")"
still "without stamps" '[  T123] amdgpu 0000:03:00.0: page fault' "$("$dmesg" -t -F "$tmp/log")"
still "raw" '<3>[    3.500000][  T123] amdgpu 0000:03:00.0: page fault' "$("$dmesg" -r -F "$tmp/log")"
