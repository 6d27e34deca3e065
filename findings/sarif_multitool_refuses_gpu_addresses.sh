#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# @microsoft/sarif-multitool-linux 5.7.0: an absoluteAddress or a byteOffset above 2,147,483,647 ends `rewrite` with an
# unhandled JsonReaderException. SARIF 2.1.0 has no such bound, but neither an address of a process or a GPU nor an
# offset above 2 GiB in a core fits. Expected: 64 bits. `validate` reports nothing and exits with 0. Remedy: a property
# bag, which keeps even 18446744073709551615. Seen: "too large or small for an Int32"; 0.
set -euo pipefail
. "$(dirname "$0")/common.sh"

sarif_multitool
log() { # MEMBERS of a result
  printf '{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"rings"}},"results":[{"message":{"text":"m"},%s}]}]}' \
    "$1" > "$tmp/log.sarif"
}
rewrite() { sarif rewrite "$tmp/log.sarif" --output "$tmp/new.sarif" --log ForceOverwrite; }
complaint() { rewrite | sed -n 's/.*\(JSON integer.*Int32\).*/\1/p'; }

log '"locations":[{"physicalLocation":{"address":{"absoluteAddress":140035498704896}}}]'
still "an address" 'JSON integer 140035498704896 is too large or small for an Int32' "$(complaint)"
still "validate" 0 "$(sarif validate "$tmp/log.sarif" > "$tmp/out" && echo 0)"
log '"locations":[{"physicalLocation":{"artifactLocation":{"uri":"core"},"region":{"byteOffset":3221225472}}}]'
still "an offset" 'JSON integer 3221225472 is too large or small for an Int32' "$(complaint)"
log '"properties":{"address":18446744073709551615}'
rewrite > "$tmp/out"
still "a property" '"address":18446744073709551615' "$(tr -d ' \n' < "$tmp/new.sarif" | grep -o '"address":[0-9]*')"
