#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# SimGrid 3.32, default model (LV08): two transfers over one link do not share it equally if the latencies of their
# routes differ. With 1 us and 100 us besides a common link of 1 GB/s, the near one gets 77.9 of the available 92.4 %,
# and the far one 14.5 % until the near one ends. Expected: equal parts, as in max-min sharing by capacity, and as
# engines share a link. With CM02, or network/weight-S:0, the parts differ even more. Remedy: routes of equal latency.
# Seen: the rate of each whole transfer, in percent of 1 GB/s.
set -euo pipefail
. "$(dirname "$0")/common.sh"

simgrid
cat > "$tmp/platform.xml" << 'XML'
<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <zone id="z" routing="Full">
    <host id="a" speed="1Gf"/><host id="near" speed="1Gf"/><host id="far" speed="1Gf"/>
    <link id="n" bandwidth="100GBps" latency="1us"/>
    <link id="f" bandwidth="100GBps" latency="100us"/>
    <link id="common" bandwidth="1GBps" latency="1us"/>
    <route src="a" dst="near"><link_ctn id="common"/><link_ctn id="n"/></route>
    <route src="a" dst="far"><link_ctn id="common"/><link_ctn id="f"/></route>
  </zone>
</platform>
XML

still "1 us and 100 us" $'near 77.9\nfar 46.2' "$(rates near far)"
still "the same, CM02" $'near 93.4\nfar 47.6' "$(rates near far --cfg=network/model:CM02)"
still "the same, weight-S 0" $'near 90.6\nfar 46.2' "$(rates near far --cfg=network/weight-S:0)"
still "equal latencies" $'near 46.2\nnear 46.2' "$(rates near near)"
