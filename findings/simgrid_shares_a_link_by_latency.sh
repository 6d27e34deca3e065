#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# SimGrid 3.32, default model (LV08): two transfers that meet in one link do not share it equally if their routes have different latencies.
# Behind 1 us and behind 100 us more, with a common link of 1 GB/s, the near one gets 77.9 of the 92.4 % that there are, and the far one,
# which ends after it, 14.5 until then. Expected: equal parts, as max-min sharing by capacity gives them, and as engines of one chip
# share a link. CM02, and network/weight-S:0, share more unequally still: the parts follow the latencies, as those of TCP do. Only routes of equal
# latency share equally. Seen: rates over each whole transfer, in percent of 1 GB/s.
set -euo pipefail
. "$(dirname "$0")/common.sh"

debian libsimgrid3.32=3.32-2+b2 libsimgrid-dev=3.32-2+b2 libboost1.74-dev=1.74.0+ds1-21 libboost-context1.74.0=1.74.0+ds1-21 \
  libboost-stacktrace1.74.0=1.74.0+ds1-21 libns3.37=3.37-2 libgsl27=2.7.1+dfsg-5+deb12u1 libgslcblas0=2.7.1+dfsg-5+deb12u1 \
  libgfortran5=12.2.0-14+deb12u1 libquadmath0=12.2.0-14+deb12u1
needs g++
cat > "$tmp/t.cpp" << 'CPP'
#include <simgrid/s4u.hpp>
#include <cstdio>
namespace sg = simgrid::s4u;
// Arguments: platform, and a destination for each flow from a; each line is the rate of one, in percent of 1 GB/s.
int main(int count, char** values) {
  sg::Engine engine(&count, values);
  engine.load_platform(values[1]);
  for (int i = 2; i < count; i++)
    sg::Actor::create("flow", engine.host_by_name("a"), [to = std::string(values[i])] {
      const double begin = sg::Engine::get_clock();
      sg::Comm::sendto(sg::Host::by_name("a"), sg::Host::by_name(to), 1e9);
      std::printf("%s %.1f\n", to.c_str(), 100 / (sg::Engine::get_clock() - begin));
    });
  engine.run();
}
CPP
LD_LIBRARY_PATH='' g++ -std=c++17 -I"$root/usr/include" "$tmp/t.cpp" -o "$tmp/t" -L"$root/usr/lib/x86_64-linux-gnu" \
  -Wl,--allow-shlib-undefined -Wl,-rpath-link,"$root/usr/lib/x86_64-linux-gnu" -lsimgrid
rates() { timeout 60 "$tmp/t" "$tmp/platform.xml" "$@" --log=root.thres:error; }
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
