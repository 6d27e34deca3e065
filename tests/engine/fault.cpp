// SPDX-License-Identifier: MIT
// Every fault: the queue stops, says why and where, and has written nothing of the packet.
#include "engine/rig.hpp"

using namespace sdma;
using namespace sdma::test;

namespace {

const GpuVa kHole{0x180000};

template <Packet P> Fault fault_of(const P& p, Ordering o = Ordering::strict) {
  Rig rig{{.ordering = o}};
  rig.put(Nop{.dwords = 3});
  rig.put_unchecked(p);
  rig.put_unchecked(Fence{.addr = rig.a(0), .value = 1});
  const auto f = rig.fails();
  CHECK(f.queue == 7);
  if (f.kind != FaultKind::bad_doorbell) CHECK(f.position == 12);
  CHECK(f.dwords[0] == [&] {
    std::vector<std::uint32_t> d(length(p));
    encode_to(p, d.data());
    return d[0];
  }());
  return f;
}
template <Packet P> void unmapped_at(const P& p, GpuVa va, Access a) {
  for (auto o : {Ordering::strict, Ordering::rocr, Ordering::adversarial}) {
    const auto f = fault_of(p, o);
    CHECK(f.kind == FaultKind::unmapped);
    CHECK(f.va == va);
    CHECK(f.access == a);
  }
}

const GpuVa kA{0x100000}, kB{0x200000}, kEnd{0x100000 + kSize};

}  // namespace

TEST_CASE("unmapped: each operand of each packet is checked before the first store") {
  const std::array<std::uint32_t, 20> data{};
  unmapped_at(CopyLinear{.src = kHole, .dst = kB, .bytes = 8}, kHole, Access::read);
  unmapped_at(CopyLinear{.src = kA, .dst = kHole, .bytes = 8}, kHole, Access::write);
  unmapped_at(CopyLinear{.src = kB, .dst = kEnd + ~99ull, .bytes = 101}, kEnd, Access::write);
  unmapped_at(CopyBroadcast{.src = kHole, .dst1 = kA, .dst2 = kB, .bytes = 8}, kHole, Access::read);
  unmapped_at(CopyBroadcast{.src = kA, .dst1 = kHole, .dst2 = kB, .bytes = 8}, kHole, Access::write);
  unmapped_at(CopyBroadcast{.src = kA, .dst1 = kB, .dst2 = kHole, .bytes = 8}, kHole, Access::write);
  unmapped_at(CopyStruct{.table = kEnd + ~39ull, .linear = kB, .count = 5, .stride = 3}, kEnd + 8, Access::write);
  unmapped_at(CopyStruct{.table = kA, .linear = kHole, .count = 5, .stride = 3}, kHole, Access::read);
  unmapped_at(CopySubwindow{.src = kA, .dst = kEnd + ~63ull, .src_pitch = 64, .dst_pitch = 64, .x = 4, .y = 2}, kEnd,
              Access::write);
  unmapped_at(CopyDirtyPage{.src = kA, .dst = kHole, .bytes = 8}, kHole, Access::write);
  unmapped_at(CopySwap{.a = kHole, .b = kB, .bytes = 8}, kHole, Access::read_write);
  unmapped_at(CopySwap{.a = kA, .b = kHole, .bytes = 8}, kHole, Access::read_write);
  unmapped_at(Write{.dst = kEnd + ~15ull, .data = data}, kEnd, Access::write);
  unmapped_at(Indirect{.base = kHole, .dwords = 8}, kHole, Access::read);
  unmapped_at(Fence{.addr = kHole, .value = 1}, kHole, Access::write);
  unmapped_at(Semaphore{.addr = kHole}, kHole, Access::read_write);
  unmapped_at(PollMem{.addr = kHole}, kHole, Access::read);
  unmapped_at(CondExec{.addr = kHole, .dwords = 4}, kHole, Access::read);
  unmapped_at(Atomic{.addr = kHole}, kHole, Access::read_write);
  unmapped_at(Fill{.dst = kEnd + ~7ull, .bytes = 12}, kEnd, Access::write);
  unmapped_at(FillMulti{.dst = kA, .stride = 1000, .count = 100, .bytes = 4}, GpuVa{0x100000 + 66000}, Access::write);
  unmapped_at(Timestamp{.addr = kHole}, kHole, Access::write);
  unmapped_at(TimestampLocal{.addr = kHole}, kHole, Access::write);
  unmapped_at(CopyLinear{.src = GpuVa{~0ull}, .dst = kB, .bytes = 8}, GpuVa{~0ull}, Access::read);
}

TEST_CASE("read_only: memory that may only be read") {
  Rig rig;
  Memory constant{GpuVa{0x300000}};
  auto m = constant.mapping();
  m.access = Access::read;
  REQUIRE(rig.space.map(m) == Errc::ok);
  rig.put(CopyLinear{.src = constant.va, .dst = rig.a(0), .bytes = 8});
  rig.go();
  rig.put(Fence{.addr = constant.va, .value = 1});
  const auto f = rig.fails();
  CHECK(f.kind == FaultKind::read_only);
  CHECK(f.va == constant.va);
}

TEST_CASE("memory of other GPUs only is not mapped") {
  Rig rig;
  Memory foreign{GpuVa{0x300000}};
  auto m = foreign.mapping();
  m.gpus = 0xfe;
  REQUIRE(rig.space.map(m) == Errc::ok);
  rig.put(CopyLinear{.src = foreign.va, .dst = rig.a(0), .bytes = 8});
  CHECK(rig.fails().kind == FaultKind::unmapped);
}

TEST_CASE("what is no packet, is only recognised, or is the kernel's") {
  const auto fault_of_dword = [](std::uint32_t dword) {
    Rig rig;
    rig.put_dword(dword);
    for (int i = 0; i < 30; ++i) rig.put(Nop{});
    return rig.fails();
  };
  for (std::uint32_t dword : {0xffffffffu, 3u, 17u, 0x00000205u}) {
    const auto f = fault_of_dword(dword);
    CHECK(f.kind == FaultKind::unknown_packet);
    CHECK(f.dword_count == 1);
  }
  for (std::uint32_t dword : {0x00000101u, 0x00002401u}) {
    const auto f = fault_of_dword(dword);
    CHECK(f.kind == FaultKind::unsupported);
    CHECK(f.rule == "its fields are not described for this generation");
  }
  CHECK(fault_of(SrbmWrite{}).kind == FaultKind::privileged);
  CHECK(fault_of(CopyPhysical{.src = kA, .dst = kB, .bytes = 8}).kind == FaultKind::privileged);
  CHECK(fault_of(PteGenerate{.dst = kA, .entries = 1}).kind == FaultKind::privileged);
  CHECK(fault_of(PteCopy{.src = kA, .dst = kB, .entries = 1}).kind == FaultKind::privileged);
  CHECK(fault_of(PteModify{.addr = kA}).kind == FaultKind::privileged);
  CHECK(fault_of(PteCopyBackwards{.src = kA, .dst = kB, .blocks = 1}).kind == FaultKind::privileged);
  CHECK(fault_of(Indirect{.base = kA, .dwords = 8, .priv = true}).field == "priv");
  CHECK(fault_of(Indirect{.base = kA, .dwords = 8, .vmid = 1}).kind == FaultKind::privileged);
}

TEST_CASE("truncated: the doorbell, or an indirect buffer's end, lies inside a packet") {
  Rig rig;
  rig.put(CopyLinear{.src = kA, .dst = kB, .bytes = 8});
  rig.wptr -= 4;
  CHECK(rig.fails().kind == FaultKind::truncated_packet);

  Rig nested;
  encode_to(Fence{.addr = nested.b(0), .value = 1}, &nested.at(nested.a(32)));
  nested.put(Indirect{.base = nested.a(32), .dwords = 3});
  const auto f = nested.fails();
  CHECK(f.kind == FaultKind::truncated_packet);
  CHECK(f.depth == 1);
  CHECK(f.position == 0);
}

TEST_CASE("misaligned addresses and broken rules, with the field and the rule") {
  const auto is = [](const Fault& f, FaultKind kind, std::string_view field, std::string_view rule) {
    CHECK(f.kind == kind);
    CHECK(f.field == field);
    CHECK(f.rule == rule);
  };
  is(fault_of(Fence{.addr = kA + 2}), FaultKind::misaligned, "addr", "alignment");
  is(fault_of(PollMem{.addr = kA + 1}), FaultKind::misaligned, "addr", "alignment");
  is(fault_of(Timestamp{.addr = kA + 4}), FaultKind::misaligned, "addr", "alignment");
  is(fault_of(CopySwap{.a = kA + 32, .b = kB, .bytes = 64}), FaultKind::misaligned, "a", "alignment");
  is(fault_of(Indirect{.base = kA + 4, .dwords = 8}), FaultKind::misaligned, "base", "alignment");
  is(fault_of(Atomic{.addr = kA + 4}), FaultKind::misaligned, "", "atomic-alignment");
  is(fault_of(Fill{.dst = kA + 2, .bytes = 8}), FaultKind::misaligned, "", "fill-alignment");
  is(fault_of(CopyBroadcast{.src = kA, .dst1 = kB, .dst2 = kB + 1040, .bytes = 8}), FaultKind::bad_field, "",
     "broadcast-modulo-32");
  is(fault_of(CopySubwindow{.src = kA, .dst = kB, .element_log2 = 5}), FaultKind::bad_field, "element_log2", "range");
  is(fault_of(PollMem{.addr = kA, .func = static_cast<Compare>(7)}), FaultKind::bad_field, "func", "range");
  is(fault_of(Atomic{.addr = kA, .op = static_cast<AtomicOp>(4)}), FaultKind::bad_field, "op", "range");
  is(fault_of(Fill{.dst = kA, .bytes = 8, .unit = static_cast<FillUnit>(3)}), FaultKind::bad_field, "unit", "range");
  is(fault_of(Atomic{.addr = kA, .loop = true}), FaultKind::bad_field, "loop", "loop-needs-compare");
}

TEST_CASE("unsupported: what software has not is refused, not ignored") {
  const std::array<std::uint32_t, 1> data{};
  CHECK(fault_of(CopyLinear{.src = kA, .dst = kB, .bytes = 8, .src_swap = 1}).field == "src_swap");
  CHECK(fault_of(CopyLinear{.src = kA, .dst = kB, .bytes = 8, .tmz = true}).field == "tmz");
  CHECK(fault_of(CopyLinear{.src = kA, .dst = kB, .bytes = 8, .encrypt = true}).field == "encrypt");
  CHECK(fault_of(CopySwap{.a = kA, .b = kB, .bytes = 64, .b_swap = 2}).field == "b_swap");
  CHECK(fault_of(Write{.dst = kA, .data = data, .swap = 1}).field == "swap");
  CHECK(fault_of(Fill{.dst = kA, .bytes = 8, .swap = 3}).field == "swap");
  CHECK(fault_of(CopyDirtyPage{.src = kA, .dst = kB, .bytes = 8, .dst_gpa = true}).field == "dst_gpa");
  CHECK(fault_of(Semaphore{.addr = kA, .mailbox = true}).field == "mailbox");
  CHECK(fault_of(FillMulti{.dst = kA, .memlog_clear = true}).kind == FaultKind::unsupported);
  CHECK(fault_of(PollReg{}).kind == FaultKind::unsupported);
  CHECK(fault_of(PollRegToMem{.dst = kA}).kind == FaultKind::unsupported);
  CHECK(fault_of(PollDirtyBits{.dst = kA, .pages = 1}).kind == FaultKind::unsupported);
  CHECK(fault_of(PollVerify{.record = kA}).kind == FaultKind::unsupported);
}

TEST_CASE("overlap: exact for boxes too") {
  const auto kind = [](const auto& p) { return fault_of(p).kind; };
  CHECK(kind(CopyLinear{.src = kA, .dst = kA + 7, .bytes = 8}) == FaultKind::overlap);
  CHECK(kind(CopyLinear{.src = kA + 7, .dst = kA, .bytes = 8}) == FaultKind::overlap);
  CHECK(kind(CopyLinear{.src = kA, .dst = kA, .bytes = 1}) == FaultKind::overlap);
  CHECK(kind(CopySwap{.a = kA, .b = kA + 64, .bytes = 65}) == FaultKind::overlap);
  CHECK(kind(CopyBroadcast{.src = kA, .dst1 = kB, .dst2 = kB + 32, .bytes = 33}) == FaultKind::overlap);
  CHECK(kind(CopyStruct{.table = kA, .linear = kB, .count = 2, .stride = 0}) == FaultKind::overlap);
  CopySubwindow p{.src = kA, .dst = kA, .src_pitch = 64, .dst_pitch = 64, .x = 8, .y = 16, .dst_x = 7};
  CHECK(kind(p) == FaultKind::overlap);
  p.dst_x = 8;  // the left half into the right half, row by row
  Rig rig;
  rig.first.randomise(1);
  rig.put(p);
  rig.go();
  for (unsigned y = 0; y < 16; ++y) CHECK(rig.at<std::uint64_t>(kA + 64 * y) == rig.at<std::uint64_t>(kA + 64 * y + 8));
  p.dst_x = 0, p.dst_y = 16;  // below itself
  rig.put(p);
  rig.go();
  p.dst_y = 15;
  CHECK(kind(p) == FaultKind::overlap);
  CHECK(kind(CopySubwindow{.src = kA, .dst = kB, .src_pitch = 8, .dst_pitch = 8, .x = 9, .y = 2}) ==
        FaultKind::overlap);
}

TEST_CASE("overlap: with the first row, or with the row behind") {
  CopySubwindow first{.src = kA, .dst = kA, .src_pitch = 64, .dst_pitch = 128, .x = 8, .y = 2, .src_x = 7};
  CHECK(fault_of(first).kind == FaultKind::overlap);
  CopySubwindow behind{.src = kA, .dst = kA, .src_pitch = 64, .dst_pitch = 256, .x = 8, .y = 2, .dst_x = 57};
  CHECK(fault_of(behind).kind == FaultKind::overlap);
  first.src_x = 8;
  behind.dst_x = 56;
  Rig rig;
  rig.put(first);
  rig.put(behind);
  rig.go();
}

TEST_CASE("bad_ib: nested too deep, or in two mappings") {
  Rig rig;
  encode_to(Indirect{.base = rig.a(64), .dwords = 6}, &rig.at(rig.a(64)));  // calls itself
  rig.put(Indirect{.base = rig.a(64), .dwords = 6});
  const auto f = rig.fails();
  CHECK(f.kind == FaultKind::bad_ib);
  CHECK(f.rule == "depth");
  CHECK(f.depth == Pipeline::kMaxDepth);
  CHECK(describe(f).ends_with(" is nested too deeply: the software engine follows four levels"));
  static_assert(Pipeline::kMaxDepth == 4);

  Rig split;
  Memory left{GpuVa{0x300000}, 64}, right{GpuVa{0x300040}, 64};
  std::fill(left.words.begin(), left.words.end(), 0);
  std::fill(right.words.begin(), right.words.end(), 0);
  REQUIRE(split.space.map(left.mapping()) == Errc::ok);
  REQUIRE(split.space.map(right.mapping()) == Errc::ok);
  split.put(Indirect{.base = left.va, .dwords = 17});
  const auto in_two = split.fails();
  CHECK(in_two.kind == FaultKind::bad_ib);
  CHECK(describe(in_two).ends_with("the indirect buffer at 0x300000 does not lie in one mapping of this GPU"));
}

TEST_CASE("bad_doorbell: backwards, in the middle of a dword, more than a ring ahead, each in its own words") {
  const std::pair<std::uint64_t, std::string> causes[] = {
      {12, "is less than the previous one: positions never go backwards"},
      {18, "is not a multiple of 4"},
      {14, "is not a multiple of 4"},
      {16 + 4096 * 4 + 4, "is ahead of rptr by more than the size of the ring"}};
  for (const auto& [position, words] : causes) {
    Rig rig;
    for (int i = 0; i < 4; ++i) rig.put(Nop{});
    rig.go();
    rig.pipeline->doorbell(position);
    CHECK(rig.pipeline->step(1) == Progress::stopped);
    REQUIRE(rig.pipeline->fault());
    CHECK(rig.pipeline->fault()->kind == FaultKind::bad_doorbell);
    CHECK(rig.pipeline->fault()->position == position);
    CHECK(describe(*rig.pipeline->fault()).ends_with(": doorbell: " + words));
  }
}

TEST_CASE("memory that goes while its packet is in flight, or waits, stops the queue") {
  Rig waiting;
  Memory third{GpuVa{0x300000}};
  third.words[0] = 0;
  REQUIRE(waiting.space.map(third.mapping()) == Errc::ok);
  waiting.put(PollMem{.addr = third.va, .reference = 1});
  CHECK(waiting.run() == Progress::waiting);
  REQUIRE(waiting.space.unmap(third.va, Deadline{}) == Errc::ok);
  CHECK(waiting.drain() == Progress::stopped);
  CHECK(waiting.pipeline->fault()->kind == FaultKind::unmapped);

  RigOptions o{.ordering = Ordering::adversarial};
  o.more.linger = 1000;
  Rig flying{o};
  REQUIRE(flying.space.map(third.mapping()) == Errc::ok);
  flying.put(CopyLinear{.src = flying.a(0), .dst = third.va, .bytes = 64});
  flying.pipeline->doorbell(flying.wptr);
  while (flying.pipeline->counters().packets == 0) REQUIRE(flying.pipeline->step(1) == Progress::progressed);
  REQUIRE(flying.space.unmap(third.va, Deadline{}) == Errc::ok);
  CHECK(flying.drain() == Progress::stopped);
  REQUIRE(flying.pipeline->fault());
  CHECK(flying.pipeline->fault()->kind == FaultKind::unmapped);
  CHECK(flying.pipeline->fault()->va == third.va);
}

TEST_CASE("memory that is mapped after the batch began is found") {
  struct Late {
    AddressSpace* space;
    Memory third{GpuVa{0x300000}};
  } late;
  RigOptions o;
  o.more.hooks = {.context = &late, .trap = [](void* l, std::uint64_t, std::uint32_t) noexcept {
                    auto& self = *static_cast<Late*>(l);
                    (void)self.space->map(self.third.mapping());
                  }};
  Rig rig{o};
  late.space = &rig.space;
  rig.put(Trap{.context = 1});
  rig.put(Fence{.addr = late.third.va, .value = 9});
  rig.go();
  CHECK(late.third.at<std::uint32_t>(late.third.va) == 9);
}

TEST_CASE("a finite poll expires: the queue stops or goes on, and says so") {
  for (auto timeout : {PollTimeout::stop, PollTimeout::keep_running}) {
    std::vector<Fault> told;
    RigOptions o;
    o.more.poll_timeout = timeout;
    o.more.hooks = {.context = &told, .fault = [](void* t, const Fault& f) noexcept {
                      static_cast<std::vector<Fault>*>(t)->push_back(f);
                    }};
    Rig rig{o};
    rig.put(PollMem{.addr = rig.a(64), .reference = 1, .retry = 5});
    rig.put(Fence{.addr = rig.a(0), .value = 1});
    CHECK(rig.run() == (timeout == PollTimeout::stop ? Progress::stopped : Progress::idle));
    CHECK(rig.at(rig.a(0)) == (timeout == PollTimeout::stop ? 0xcdcdcdcd : 1));
    REQUIRE(told.size() == 1);
    CHECK(told[0].kind == FaultKind::poll_timeout);
    CHECK(told[0].va == rig.a(64));
  }
}

TEST_CASE("a fault in words") {
  Rig rig;
  rig.put(Fence{.addr = kHole + 8, .value = 1});
  CHECK(describe(rig.fails()) ==
        "gpu 0 engine 0 queue 7 at 0x0: fence: cannot write 0x180008: not mapped for this GPU");
  CHECK(describe(fault_of(CopyLinear{.src = kA, .dst = kB, .bytes = 8, .src_swap = 1})) ==
        "gpu 0 engine 0 queue 7 at 0xc: copy_linear: the software engine does not support it (src_swap)");
  CHECK(describe(Fault{}) == "no fault");
  // Every number that a message contains may be 0, and is then in the message all the same.
  for (int k = 1; k <= static_cast<int>(FaultKind::reset); ++k) {
    Fault f;
    f.kind = static_cast<FaultKind>(k);
    CHECK(describe(f).starts_with("gpu 0 engine 0 queue 0 at 0x0: "));
    f.anonymous = true;
    CHECK(describe(f).starts_with("gpu 0: "));
  }
  CHECK(describe({.kind = FaultKind::bad_doorbell, .position = 18, .rule = "alignment"}) ==
        "gpu 0 engine 0 queue 0 at 0x12: doorbell: is not a multiple of 4");
  CHECK(describe({.kind = FaultKind::unmapped, .anonymous = true, .gpu = GpuId{2}, .va = GpuVa{0x1000}}) ==
        "gpu 2: an access to 0x1000, which is not mapped");
  for (int k = 0; k <= static_cast<int>(FaultKind::bad_doorbell); ++k) {
    Fault f;
    f.kind = static_cast<FaultKind>(k);
    CHECK(!describe(f).empty());
    CHECK(!name(f.kind).empty());
    CHECK(!on_hardware(f.kind).empty());
  }
}
