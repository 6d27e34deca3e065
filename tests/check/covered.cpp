// SPDX-License-Identifier: MIT
// The contract of a proof: each entry of covered() is needed by a schedule below, which is proved with it and not
// without it.
#include "checked.hpp"
#include "sdma/device/topology.hpp"

using namespace sdma;
using sdma::test::checked, sdma::test::has, sdma::test::said;

namespace {

// clang-format off
struct Proved {
  std::string text, node = "";  ///< node: a layout; "": eight MI300X
  Proved(const char* t, const char* n = "") : text(t), node(n) {}
  CheckReport report(CheckOptions o = {}) const {
    const auto t = node.empty() ? std::nullopt : std::optional(*layout(node));
    o.topology = t ? &*t : nullptr;
    return checked(text, std::move(o));
  }
};
const Proved kProved[] = {
// copies of all kinds, a counter, a flag of 32 bits, an alias, two queues on one engine
R"(gpus 2
buffer gpu0.a bytes=64K align=256 init=random
buffer gpu0.tail bytes=4K at=gpu0.a[32K]
buffer gpu1.b bytes=64K align=256
buffer gpu1.c bytes=64K align=256
buffer host.t bytes=64 align=8
signal host.done value=0
signal gpu1.own value=0 bits=32
queue gpu1.q peer=gpu0
  nop
  hdp_flush
  copy_linear bytes=4K src=gpu0.tail dst=gpu1.b[0]
  copy_broadcast bytes=4K src=gpu0.a dst1=gpu1.b[4K] dst2=gpu1.c[4K]
  copy_subwindow element_log2=0 src=gpu0.a src_pitch=64 dst=gpu1.b[8K] dst_pitch=64 x=8 y=4
  fill dst=gpu1.c[0] bytes=64 unit=dword data=7
  write dst=gpu1.c[8K] data=[3]
  fence addr=gpu1.own value=1
  poll_mem addr=gpu1.own func=eq reference=1
  timestamp addr=host.t
  atomic op=add_rtn_64 addr=host.done value=1
end
queue gpu1.r peer=gpu0
  copy_swap bytes=64 a=gpu1.b[32K] b=gpu1.c[32K]
  fence addr=gpu1.own[0] value=0
  atomic op=add_rtn_64 addr=host.done value=1
end
host main
  submit gpu1.q
  wait host.done == 1
  submit gpu1.r
  wait host.done == 2
end)",
// comparisons, masks, a word in another GPU's memory, a swap
R"(gpus 2
signal gpu1.n value=4 bits=32
signal host.done value=0 bits=32
queue gpu0.p peer=gpu1
  poll_mem addr=gpu1.n func=gt reference=4
  poll_mem addr=gpu1.n func=ge reference=5
  poll_mem addr=gpu1.n func=ne reference=0
  poll_mem addr=gpu1.n func=lt reference=9
  poll_mem addr=gpu1.n func=le reference=9
  poll_mem addr=gpu1.n func=always reference=0
  poll_mem addr=gpu1.n func=eq reference=1 mask=1
  fence addr=host.done value=1
end
queue gpu1.s engine=3
  atomic op=swap_32 addr=gpu1.n value=5
end
host main
  submit *
  wait host.done == 1
end)",
// a word of 64 bits, polled in halves, of which only the low one changes
R"(gpus 1
signal host.w value=0
signal host.done value=0
queue gpu0.p engine=2
  fence addr=host.w value=1
end
queue gpu0.r engine=3
  poll_mem addr=host.w[4] func=eq reference=0
  poll_mem addr=host.w func=ge reference=1
  atomic op=add_rtn_64 addr=host.done value=1
end
host main
  submit *
  wait host.done == 1
  wait host.w == 1
end)",
// both halves of a word and an XOR in order, an OR, a MAX and an INC of two queues
R"(gpus 1
signal host.w value=0
signal host.bits value=0
signal host.most value=0
signal host.odd value=0
signal host.n value=0
queue gpu0.p engine=2
  fence addr=host.w[4] value=1
  fence addr=host.w value=7
  atomic op=umax_64 addr=host.most value=3
  atomic op=xor_64 addr=host.odd value=1
  atomic op=inc_64 addr=host.n value=9
  atomic op=or_64 addr=host.bits value=1
end
queue gpu0.r engine=3
  atomic op=umax_64 addr=host.most value=2
  atomic op=inc_64 addr=host.n value=9
  atomic op=or_64 addr=host.bits value=2
end
host main
  submit *
  wait host.w == 0x100000007
  wait host.most == 3
  wait host.odd == 1
  wait host.n == 2
  wait host.bits == 3
end)",
// rounds, a ring that becomes full, several pieces
R"(gpus 2
buffer gpu0.a bytes=4K init=random
buffer gpu1.b bytes=4K
signal host.f value=0 bits=32
queue gpu0.p peer=gpu1 ring=1K doorbell=each
  copy_linear bytes=4K src=gpu0.a dst=gpu1.b
  fence addr=host.f value=2*epoch-1
  poll_mem addr=host.f func=ge reference=2*epoch-1
  copy_linear bytes=4K src=gpu0.a dst=gpu1.b
  fence addr=host.f value=2*epoch
end
host main
  repeat 30
    submit gpu0.p
    wait host.f >= 2*epoch
  end
end)",
// two threads that submit one queue, and a sample
R"(gpus 1
signal host.n value=0
signal host.m value=3
queue gpu0.shared engine=1
  atomic op=add_rtn_64 addr=host.n value=1
end
host main
  sample begin = host.m
  submit gpu0.shared
  wait host.n == begin - 1
end
host other
  submit gpu0.shared
  wait host.n == 2
end)",
// kernels, at both scopes, and a host that accesses bytes
R"(gpus 1
buffer gpu0.a bytes=4K
buffer host.b bytes=4K
signal gpu0.f value=0
signal host.done value=0
kernel gpu0.one
  store gpu0.a = random
  set gpu0.f = 1 scope=agent
end
kernel gpu0.two
  wait gpu0.f == 1 scope=agent
  load gpu0.a
  set host.done = 1
end
host main
  store host.b = random
  wait host.done == 1
  load host.b
end)",
// a kernel that adds
R"(gpus 1
buffer gpu0.a bytes=4K init=random
buffer gpu0.b bytes=4K
signal host.done value=0
kernel gpu0.add
  store gpu0.b = sum(gpu0.a, gpu0.a) type=i32
  add host.done += 1
end
host main
  wait host.done == 1
end)",
// a condition that is never met, a trap, a flag
R"(gpus 1
buffer gpu0.a bytes=4K init=random
buffer gpu0.b bytes=4K
signal host.w value=0 bits=32
signal host.box value=0 bits=32
signal host.f value=0 bits=32
signal host.done value=0
queue gpu0.p engine=2
  cond_exec addr=host.w reference=1 dwords=7
  copy_linear bytes=4K src=gpu0.a dst=gpu0.b
  write dst=host.f data=[1]
  fence addr=host.box value=3
  trap context=3
  poll_mem addr=host.f func=eq reference=1
  atomic op=add_rtn_64 addr=host.done value=1
end
host main
  submit *
  wait host.done == 1
end)",
// a wait for rptr, on which nothing rests
R"(gpus 1
signal host.done value=0
queue gpu0.q engine=2
  atomic op=add_rtn_64 addr=host.done value=1
end
host main
  submit gpu0.q
  wait gpu0.q.rptr == all
  wait host.done == 1
end)",
// memory that comes and goes: a buffer, a mapping of host memory, a handle, a block of a pool
R"(gpus 2
buffer gpu0.pool bytes=8K init=random
buffer gpu0.block bytes=4K at=gpu0.pool[0]
buffer gpu1.b bytes=4K
buffer host.c bytes=4K
signal host.done value=0
queue gpu0.q peer=gpu1
  copy_linear bytes=4K src=gpu0.block dst=gpu1.b
  atomic op=add_rtn_64 addr=host.done value=1
end
queue gpu1.r peer=host
  poll_mem addr=host.done func=ge reference=1
  copy_linear bytes=4K src=gpu1.b dst=host.c
  atomic op=add_rtn_64 addr=host.done value=1
end
host main
  alloc gpu0.block
  map host.c gpu1
  export gpu1.b
  submit *
  wait host.done == 2
  close gpu1.b
  unmap host.c gpu1
  free gpu0.block
end)",
// a reset, then additions
R"(gpus 1
signal host.n value=7
queue gpu0.q engine=2
  atomic op=add_rtn_64 addr=host.n value=1
end
host main
  set host.n = 0
  submit *
  wait host.n == 1
end)",
// a buffer that some GPUs have mapped, first contents of all kinds, and what is expected of them
R"(gpus 2
buffer gpu1.in bytes=4K map=gpu0,gpu1 init=random
buffer gpu0.out bytes=4K
buffer gpu0.none bytes=4K init=zero
buffer host.end bytes=4K
signal host.n value=0
queue gpu0.q peer=gpu1
  copy_linear bytes=4K src=gpu1.in dst=gpu0.out
  copy_linear bytes=4K src=gpu0.none dst=host.end
  atomic op=add_rtn_64 addr=host.n value=1
end
host main
  submit *
  wait host.n == 1
  expect gpu0.out == old gpu1.in
end
expect gpu0.out == gpu1.in
expect host.n == 1)",
// sums of numbers
R"(gpus 1
buffer gpu0.a bytes=4K init=random
buffer gpu0.b bytes=4K init=random
buffer gpu0.c bytes=4K
kernel gpu0.add
  compute ns=100
  store gpu0.c = sum(gpu0.a, gpu0.b) type=f32 order=free
end
host main
end
expect gpu0.c == old sum(gpu0.b, gpu0.a) type=f32 order=free)",
R"(gpus 1
buffer gpu0.a bytes=4K init=random
buffer gpu0.c bytes=4K
kernel gpu0.add
  store gpu0.c = sum(gpu0.a, gpu0.a) type=bf16
end
host main
end)",
// the network: bytes and words of the peer's node, and a word that comes back before one of these
{R"(gpus 4
buffer gpu0.s bytes=4K init=random
buffer gpu2.d bytes=4K
buffer gpu3.e bytes=4K
signal gpu2.at value=0 bits=32
signal host.sent value=0
signal host.there value=0
signal host.done value=0
queue gpu0.out peer=gpu2 network=1
  copy_linear bytes=4K src=gpu0.s dst=gpu2.d
  fence addr=gpu2.at value=1
  atomic op=add_rtn_64 addr=host.sent value=1
  atomic op=add_rtn_64 addr=host.there value=1
end
queue gpu2.on peer=gpu3
  poll_mem addr=gpu2.at func=eq reference=1
  copy_linear bytes=4K src=gpu2.d dst=gpu3.e
  atomic op=add_rtn_64 addr=host.done value=1
end
host zero
  submit gpu0.out
  wait host.sent == 1
end
host one
  submit gpu2.on
  wait host.done == 1
  wait host.there == 1
end
expect gpu3.e == old gpu0.s)", "nodes:2x2"},
};
// clang-format on

}  // namespace

TEST_CASE("the schedules of the contract are proved") {
  for (const auto& s : kProved) {
    const auto r = s.report();
    INFO(s.text);
    INFO(said(r));
    CHECK(r.proved());
  }
}

TEST_CASE("without an entry of the contract, what needs it is not proved, and is named") {
  for (const auto& entry : covered()) {
    INFO(entry.id);
    const auto needs = std::count_if(std::begin(kProved), std::end(kProved), [&](const Proved& s) {
      const auto r = s.report({.without = {std::string(entry.id)}});
      if (r.proved()) return false;
      CHECK(r.verdict() == Verdict::unproved);
      CHECK(said(r).find("'" + std::string(entry.id) + "'") != std::string::npos);
      return true;
    });
    CHECK(needs > 0);
  }
}

TEST_CASE("a packet that the contract does not have leaves a schedule unproved") {
  const auto r = checked(R"(gpus 1
signal host.done value=0
queue gpu0.q engine=2
  poll_reg reg=0x100 func=eq reference=1
  atomic op=add_rtn_64 addr=host.done value=1
end
host main
  submit *
  wait host.done == 1
end)");
  CHECK(r.verdict() == Verdict::unproved);
  CHECK(said(r).find("'packet poll_reg'") != std::string::npos);
}
