#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# @microsoft/sarif-multitool-linux 5.7.0: an absoluteAddress or a byteOffset beyond 2,147,483,647 ends every command that loads the log with an
# unhandled JsonReaderException ("too large or small for an Int32"), although SARIF 2.1.0 bounds neither. So no address of a GPU's or of a
# process's memory, and no place beyond 2 GiB in a core, can stand in these members. Expected: integers of 64 bits. `validate` reports nothing
# and exits with 0 for the same log. What helps: a property bag, which keeps even 18446744073709551615. Seen: the exception, and 0.
set -euo pipefail
. "$(dirname "$0")/common.sh"

npm_package @microsoft/sarif-multitool-linux@5.7.0
sarif() {
  DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1 DOTNET_BUNDLE_EXTRACT_BASE_DIR=$tmp/net timeout 120 \
    "$tmp/node_modules/@microsoft/sarif-multitool-linux/Sarif.Multitool" "$@" 2>&1
}
chmod +x "$tmp/node_modules/@microsoft/sarif-multitool-linux/Sarif.Multitool"
log() { # MEMBERS of a result
  printf '{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"rings"}},"results":[{"message":{"text":"m"},%s}]}]}' "$1" > "$tmp/log.sarif"
}
rewrite() { sarif rewrite "$tmp/log.sarif" --output "$tmp/new.sarif" --log ForceOverwrite; }

log '"locations":[{"physicalLocation":{"address":{"absoluteAddress":140035498704896}}}]'
still "an address" 'JSON integer 140035498704896 is too large or small for an Int32' "$(rewrite | grep -o 'JSON integer.*Int32')"
still "validate" 0 "$(sarif validate "$tmp/log.sarif" > "$tmp/out" && echo 0)"
log '"locations":[{"physicalLocation":{"artifactLocation":{"uri":"core"},"region":{"byteOffset":3221225472}}}]'
still "an offset" 'JSON integer 3221225472 is too large or small for an Int32' "$(rewrite | grep -o 'JSON integer.*Int32')"
log '"properties":{"address":18446744073709551615}'
rewrite > "$tmp/out"
still "a property" '"address":18446744073709551615' "$(tr -d ' \n' < "$tmp/new.sarif" | grep -o '"address":[0-9]*')"
