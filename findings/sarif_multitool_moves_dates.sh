#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# @microsoft/sarif-multitool-linux 5.7.0: if a string in a property bag is a date with an offset, `rewrite` converts it
# to the time zone of the machine and drops its fraction. The result thus differs between machines. Expected: the string
# as it was, because SARIF gives these strings no meaning. A date within a longer text remains. Remedy: put dates of log
# lines into longer texts. Seen: +02:00 becomes +00:00 with TZ=UTC, and +09:00 with TZ=Asia/Tokyo.
set -euo pipefail
. "$(dirname "$0")/common.sh"

sarif_multitool
[[ -e /usr/share/zoneinfo/Asia/Tokyo ]] || cannot "no time zones"
cat > "$tmp/log.sarif" << 'JSON'
{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"rings"}},"results":[{"message":{"text":"m"},
"properties":{"seen":"2026-11-29T10:00:00.000+02:00","line":"at 2026-11-29T10:00:00.000+02:00"}}]}]}
JSON
rewritten() { # ZONE: both properties
  TZ=$1 sarif rewrite "$tmp/log.sarif" --output "$tmp/new.sarif" --log ForceOverwrite > "$tmp/out"
  grep -oE '(at )?2026-11-29T[^"]*' "$tmp/new.sarif"
}

still "UTC" $'2026-11-29T08:00:00+00:00\nat 2026-11-29T10:00:00.000+02:00' "$(rewritten UTC)"
still "Tokyo" $'2026-11-29T17:00:00+09:00\nat 2026-11-29T10:00:00.000+02:00' "$(rewritten Asia/Tokyo)"
