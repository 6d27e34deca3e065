#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# rsyslog 8.2302.0, imklog with ParseKernelTimestamp=on: a line with a kernel's stamp gets the date of the boot plus the stamp, and a line without
# one, such as the second line of a message, the date at which rsyslog read it. The halves of one message are then as far apart as the machine
# is up, in either order, and a sort by date tears them apart. Expected: that a line without a stamp gets the date of the line before it.
# Off, which is the default, all lines get the date of reading and keep their stamp. Seen: two lines, dated the same if off, apart if on.
set -euo pipefail
. "$(dirname "$0")/common.sh"

debian rsyslog=8.2302.0-1+deb12u2 libestr0=0.1.11-1 libfastjson4=1.2304.0-1
rsyslogd=$root/usr/sbin/rsyslogd
needs timeout
"$rsyslogd" -v | head -1
read -r up _ < /proc/uptime
[[ ${up%.*} -ge 60 ]] || cannot "the machine is up for less than a minute, and the two dates are close"
printf '<3>[    2.500000] amdgpu: page fault\n<3>second line of that message\n' > "$tmp/kernel"

minutes_apart() { # on | off: 1 if the two lines have dates that differ by more than 30 s
  cat > "$tmp/conf" << CONF
module(load="imklog" LogPath="$tmp/kernel" ParseKernelTimestamp="$1")
template(name="t" type="string" string="%timereported:::date-unixtimestamp%|%msg%\\n")
action(type="omfile" file="$tmp/$1" template="t")
CONF
  timeout 5 "$rsyslogd" -n -f "$tmp/conf" -i "$tmp/pid" -M "$root/usr/lib/x86_64-linux-gnu/rsyslog" > "$tmp/errors" 2>&1 || true
  awk -F'|' '{ date[NR] = $1; text = $2 } END { print NR, (date[2] - date[1] > 30), text }' "$tmp/$1"
}

still "off: together" '2 0 second line of that message' "$(minutes_apart off)"
still "on: apart" '2 1 second line of that message' "$(minutes_apart on)"
