#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# @microsoft/sarif-multitool-linux 5.7.0: if a result has no level and the default level of its rule is note, `query
# "Level == Warning"` finds it, and `Level == Note` does not. By SARIF 2.1.0 (3.27.10), such a result has the level of
# its rule; it is a warning only if the rule has none. Expected: a note. Remedy: write the level into each result. Seen:
# of two results, one by such a rule, two are warnings and none is a note.
set -euo pipefail
. "$(dirname "$0")/common.sh"

sarif_multitool
cat > "$tmp/log.sarif" << 'JSON'
{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"rings","rules":[
{"id":"N","defaultConfiguration":{"level":"note"}},{"id":"W"}]}},"results":[
{"ruleId":"N","ruleIndex":0,"message":{"text":"a note"}},{"ruleId":"W","ruleIndex":1,"message":{"text":"a warning"}}]}]}
JSON
found() { sarif query "$tmp/log.sarif" --expression "Level == $1" | grep -o '[0-9]* of [0-9]*'; }

still "warnings" '2 of 2' "$(found Warning)"
still "notes" '0 of 2' "$(found Note)"
