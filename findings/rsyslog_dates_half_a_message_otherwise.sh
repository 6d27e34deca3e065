#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# rsyslog 8.2302.0, imklog with ParseKernelTimestamp=on: a line with the kernel's stamp gets the date of the boot plus
# the stamp. A line without one, such as the second line of a message, gets the date when rsyslog reads it, so the two
# halves of an old message are far apart. Expected: the date of the line before it. Remedy: leave the option off, which
# is the default; the stamps then remain in the text. Seen: two dates, apart if on, together if off.
set -euo pipefail
. "$(dirname "$0")/common.sh"

debian rsyslog=8.2302.0-1+deb12u2 libestr0=0.1.11-1 libfastjson4=1.2304.0-1
rsyslogd=$root/usr/sbin/rsyslogd
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
  timeout 5 "$rsyslogd" -n -f "$tmp/conf" -i "$tmp/pid" -M "$root/usr/lib/x86_64-linux-gnu/rsyslog" \
    > "$tmp/errors" 2>&1 || true
  awk -F'|' '{ date[NR] = $1; text = $2 } END { print NR, (date[2] - date[1] > 30), text }' "$tmp/$1"
}

still "off: together" '2 0 second line of that message' "$(minutes_apart off)"
still "on: apart" '2 1 second line of that message' "$(minutes_apart on)"
