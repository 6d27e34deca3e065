#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# @microsoft/sarif-multitool-linux 5.7.0: `query "Level == Note"` does not find a result that has no level and whose rule has the default level note;
# `Level == Warning` does. SARIF 2.1.0 (3.27.10) says that the level of such a result is that of its rule, and warning only if the rule
# has none either. Expected: the effective level. So a log that states levels once, at the rules, is filtered wrongly: a reader should be given
# the level in each result. Seen: of two results, one by a rule of level note, two are warnings and none is a note.
set -euo pipefail
. "$(dirname "$0")/common.sh"

npm_package @microsoft/sarif-multitool-linux@5.7.0
tool=$tmp/node_modules/@microsoft/sarif-multitool-linux/Sarif.Multitool
chmod +x "$tool"
export DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1 DOTNET_BUNDLE_EXTRACT_BASE_DIR=$tmp/net
cat > "$tmp/log.sarif" << 'JSON'
{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"rings","rules":[{"id":"N","defaultConfiguration":{"level":"note"}},{"id":"W"}]}},"results":[
{"ruleId":"N","ruleIndex":0,"message":{"text":"a note"}},{"ruleId":"W","ruleIndex":1,"message":{"text":"a warning"}}]}]}
JSON
found() { timeout 120 "$tool" query "$tmp/log.sarif" --expression "Level == $1" | grep -o '[0-9]* of [0-9]*'; }

still "warnings" '2 of 2' "$(found Warning)"
still "notes" '0 of 2' "$(found Note)"
