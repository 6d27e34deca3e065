// SPDX-License-Identifier: MIT
// Descriptors of queues as the driver prints them, built here dword by dword.
#include "sdma/dump/descriptors.hpp"
#include "sdma/dump/text.hpp"
#include "support/catch.hpp"

#include <fmt/format.h>

using namespace sdma;

namespace {

using Dwords = std::vector<std::uint32_t>;

/// A descriptor in memory: 128 dwords.
Dwords descriptor(std::uint32_t engine, std::uint32_t queue) {
  Dwords d(128);
  d[0] = 0x0004'7001 | 14 << 1;  // 2^14 dwords
  d[1] = 0x10000000, d[2] = 0x7f;
  d[3] = 0x1c0, d[4] = 1;
  d[5] = 0x240, d[6] = 1;
  d[8] = 0x7f22, d[9] = 0x3344'5540;
  d[11] = 8, d[12] = 4, d[13] = 0x5000, d[14] = 0x7f, d[15] = 64;
  d[126] = engine, d[127] = queue;
  return d;
}
std::string lines(const Dwords& d, std::uint32_t offset, std::size_t from = 0) {
  std::string s;
  for (std::size_t i = from; i < d.size(); i += 8) {
    s += fmt::format("    {:08x}:", offset + 4 * i);
    for (std::size_t k = i; k < i + 8 && k < d.size(); ++k) s += fmt::format(" {:08x}", d[k]);
    s += '\n';
  }
  return s;
}
QueueDescriptors read(std::string_view text) {
  auto r = read_descriptors(text, "mqds");
  if (!r) FAIL(to_string(r.error()));
  return *r;
}

}  // namespace

TEST_CASE("the fields of descriptors, by name") {
  const auto text = "Process 4711 PASID 32770:\n  SDMA queue on device 4d01\n" + lines(descriptor(3, 1), 0) +
                    "  Compute queue on device 4d01\n" + lines(Dwords(512, 7), 0) +
                    "Process 4712 PASID 32771:\n  SDMA queue on device 4e02\n" + lines(descriptor(14, 0), 0);
  REQUIRE(has_descriptors(text));
  const auto all = read(text);
  REQUIRE(all.queues.size() == 2);
  CHECK(all.others == 1);
  const auto& d = all.queues[0];
  CHECK_FALSE(d.registers);
  CHECK(d.process == 4711u);
  CHECK(d.device == 0x4d01u);
  CHECK(d.line == 2);
  CHECK(d.value("ring_base") == 0x7f10000000ull << 8);
  CHECK(d.value("ring_bytes") == 65536u);
  CHECK(d.value("rptr") == 0x1'0000'01c0u);
  CHECK(d.value("wptr") == 0x1'0000'0240u);
  CHECK(d.value("rptr_va") == 0x7f22'3344'5540u);
  CHECK(d.value("ib_base") == 0x7f'0000'5000u);
  CHECK(d.value("ib_dwords") == 64u);
  CHECK(d.value("ib_rptr") == 8u);
  CHECK(d.value("ib_offset") == 4u);
  CHECK(d.engine() == 3u);
  CHECK(d.queue() == 1u);
  CHECK_FALSE(d.value("doorbell"));
  CHECK(all.queues[1].process == 4712u);
  CHECK(all.queues[1].engine() == 14u);

  const auto shown = to_text(all);
  CHECK(shown.find("descriptor of an sDMA queue, gpu_id 4d01, process 4711, engine 3, queue 1\n") == 0);
  CHECK(shown.find("\n  rptr        0x1000001c0        how far") != std::string::npos);
  CHECK(to_json(all).find(
            R"({"descriptor":"memory","process":4711,"gpu_id":19713,"fields":{"ring_base":"0x7f1000000000")") == 0);
}

TEST_CASE("descriptors are written as they are read") {
  QueueDescriptors all;
  for (std::uint32_t i = 0; i < 3; ++i) {
    QueueDescriptor d{.process = 4711 + i / 2, .device = 0x4d01 + i};
    CHECK(d.set("ring_base", 0x7f1000000000 + (std::uint64_t{i} << 20)));
    CHECK(d.set("ring_bytes", 65536u << i));
    CHECK(d.set("rptr", 0x1000001c0));
    CHECK(d.set("wptr", 0x100000240));
    CHECK(d.set("rptr_va", 0x7f2233445540));
    CHECK(d.set("engine", 3 + i));
    CHECK(d.set("queue", i));
    all.queues.push_back(d);
  }
  const auto text = to_debugfs(all);
  CHECK(text.starts_with("Process 4711 PASID 37479:\n  SDMA queue on device 4d01\n    00000000: "));
  const auto back = read(text);
  REQUIRE(back.queues.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(back.queues[i].process == all.queues[i].process);
    CHECK(back.queues[i].device == all.queues[i].device);
    CHECK(back.queues[i].dwords == all.queues[i].dwords);
  }
  CHECK(back.queues[2].value("ring_bytes") == 262144u);
  CHECK(back.queues[2].value("rptr_va") == 0x7f2233445540u);
  CHECK(back.queues[2].engine() == 5u);
  QueueDescriptor d;
  CHECK_FALSE(d.set("doorbell", 1));
  CHECK_FALSE(d.set("ring_base", 0x7f1000000001));  // a multiple of 256
  CHECK_FALSE(d.set("ring_bytes", 65537));
  CHECK_FALSE(d.set("engine", std::uint64_t{1} << 32));
  CHECK(to_debugfs({}).empty());
}

TEST_CASE("registers of mapped queues have the descriptor's order up to the first gap") {
  auto d = descriptor(0, 0);
  d.resize(19);
  const auto text = "Node 1, gpu_id 4d01:\n  CP Pipe 0, Queue 0\n    0000c914: 00000001\n  SDMA Engine 3, RLC 1\n" +
                    lines(d, 0x5080) + "    000051a0: 00000001\n  SDMA Engine 4, RLC 0\n" + lines(d, 0x6080);
  const auto all = read(text);
  REQUIRE(all.queues.size() == 2);
  CHECK(all.others == 1);
  const auto& q = all.queues[0];
  CHECK(q.registers);
  CHECK(q.device == 0x4d01u);
  CHECK(q.engine() == 3u);
  CHECK(q.queue() == 1u);
  CHECK(q.dwords.size() == 19);
  CHECK(q.value("rptr") == 0x1'0000'01c0u);
  CHECK_FALSE(q.value("engine"));  // it is only in the heading
  CHECK(all.queues[1].engine() == 4u);
}

TEST_CASE("a descriptor with a gap, a bad dword or no dwords is an error with its line") {
  const auto error = [](const std::string& text) {
    const auto r = read_descriptors(text, "mqds");
    REQUIRE_FALSE(r);
    return to_string(r.error());
  };
  const auto all = lines(descriptor(0, 0), 0);
  auto gap = all;
  gap.erase(gap.find("    00000020"), gap.find("    00000040") - gap.find("    00000020"));
  CHECK(error("SDMA queue on device 1\n" + gap).find("mqds:3: ") != std::string::npos);
  CHECK(error("SDMA queue on device 1\n    00000000: 0001 00000002\n").find("'0001' is not a dword") !=
        std::string::npos);
  CHECK(error("SDMA queue on device 1\nProcess 2 PASID 3:\n").find("mqds:1: ") != std::string::npos);
  CHECK_FALSE(has_descriptors("00000000: 00000005 00001008\n"));
  CHECK_FALSE(read_text_dump("SDMA queue on device 1\n" + all, "mqds"));
  // With the time stamps of a log, and cut off after the ring.
  const auto some = read("[   12.345] SDMA queue on device 1\n[   12.345]     00000000: 0000001d 00000010 00000000\n");
  CHECK(some.queues[0].value("ring_base") == 0x1000u);
  CHECK_FALSE(some.queues[0].value("rptr"));
}
