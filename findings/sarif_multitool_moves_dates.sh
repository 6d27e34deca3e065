#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# @microsoft/sarif-multitool-linux 5.7.0: `rewrite` takes a string in a property bag that looks like a date with an offset for a date, and writes it in
# the time zone of the machine, without its fraction: the text of the log changes, and differently on each machine.
# Expected: strings of a property bag stay as they are, since SARIF gives them no meaning. A date alone and a text with other words stay.
# So dates as text of log lines need another form to survive. Seen: +02:00 becomes +00:00 under TZ=UTC and +09:00 under TZ=Asia/Tokyo.
set -euo pipefail
. "$(dirname "$0")/common.sh"

npm_package @microsoft/sarif-multitool-linux@5.7.0
[[ -e /usr/share/zoneinfo/Asia/Tokyo ]] || cannot "no time zones"
tool=$tmp/node_modules/@microsoft/sarif-multitool-linux/Sarif.Multitool
chmod +x "$tool"
export DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1 DOTNET_BUNDLE_EXTRACT_BASE_DIR=$tmp/net
cat > "$tmp/log.sarif" << 'JSON'
{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"rings"}},"results":[{"message":{"text":"m"},
"properties":{"seen":"2026-11-29T10:00:00.000+02:00","line":"at 2026-11-29T10:00:00.000+02:00"}}]}]}
JSON
rewritten() { # ZONE: both properties
  TZ=$1 timeout 120 "$tool" rewrite "$tmp/log.sarif" --output "$tmp/new.sarif" --log ForceOverwrite > "$tmp/out"
  grep -oE '(at )?2026-11-29T[^"]*' "$tmp/new.sarif"
}

still "UTC" $'2026-11-29T08:00:00+00:00\nat 2026-11-29T10:00:00.000+02:00' "$(rewritten UTC)"
still "Tokyo" $'2026-11-29T17:00:00+09:00\nat 2026-11-29T10:00:00.000+02:00' "$(rewritten Asia/Tokyo)"
