#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# systemd 252.39: `journalctl -o short`, the default, and short-monotonic replace a TAB within a message by eight
# blanks, whatever its column; cat and json keep it. Some lines of amdgpu begin with a TAB. Expected: the same text in
# all forms, or an escape such as `#011` of rsyslog. A pattern that expects a TAB fails on the default form, and two
# exports of one journal differ. Seen: the forms below. The journal is made from the export format, with invented ids.
set -euo pipefail
. "$(dirname "$0")/common.sh"

debian systemd{,-journal-remote}=252.39-1~deb12u2 libsystemd-shared=252.39-1~deb12u2 libmicrohttpd12=0.9.75-6
LD_LIBRARY_PATH=$root/usr/lib/x86_64-linux-gnu/systemd:$LD_LIBRARY_PATH
"$root/bin/journalctl" --version | head -1
boot=0123456789abcdef0123456789abcdef
{
  printf '%s\n' "__CURSOR=s=$boot;i=1;b=$boot;m=895440;t=65bfeda722b40;x=1" __REALTIME_TIMESTAMP=1790000005000000 \
    __MONOTONIC_TIMESTAMP=9000000 "_BOOT_ID=$boot" _HOSTNAME=node7 _TRANSPORT=kernel SYSLOG_IDENTIFIER=kernel PRIORITY=3
  printf 'MESSAGE\n\x0a\0\0\0\0\0\0\0ab:\tRW: 0x\n\n'
} > "$tmp/export"
"$root/lib/systemd/systemd-journal-remote" -o "$tmp/x.journal" - < "$tmp/export" 2> /dev/null

form() { TZ=UTC "$root/bin/journalctl" --file "$tmp/x.journal" -o "$1"; }
still "short: eight blanks" 'Sep 21 14:13:25 node7 kernel: ab:        RW: 0x' "$(form short)"
still "cat: a TAB" $'ab:\tRW: 0x' "$(form cat)"
still "json: a TAB" 1 "$(form json | grep -cF 'ab:\tRW')"
