#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# SimGrid 3.32, default model (LV08): a transfer that is alone on a link gets 92.4 % of the bandwidth, not the 97 % of the documented factor: its
# acknowledgements take 5 % of the same link (network/crosstraffic), because the route back is the same. A link of policy FATPIPE
# gives 97 %; so does --cfg=network/crosstraffic:0. Expected: 97 %, and crosstraffic only between transfers of opposite directions.
# The model CM02, whose factors are 1, gives 95.2 % for the same reason. Calibrate with the policy that the platform has. Seen: the percentages below.
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
    <host id="a" speed="1Gf"/><host id="shared" speed="1Gf"/><host id="fat" speed="1Gf"/>
    <link id="s" bandwidth="1GBps" latency="0us"/>
    <link id="f" bandwidth="1GBps" latency="0us" sharing_policy="FATPIPE"/>
    <route src="a" dst="shared"><link_ctn id="s"/></route>
    <route src="a" dst="fat"><link_ctn id="f"/></route>
  </zone>
</platform>
XML

still "SHARED" 'shared 92.4' "$(rates shared)"
still "SHARED, without crosstraffic" 'shared 97.0' "$(rates shared --cfg=network/crosstraffic:0)"
still "FATPIPE" 'fat 97.0' "$(rates fat)"
still "SHARED, CM02" 'shared 95.2' "$(rates shared --cfg=network/model:CM02)"
