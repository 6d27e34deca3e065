// SPDX-License-Identifier: MIT
// Any bytes are diagnosed, whatever form they have: a core file, a ring dump, a recording, text, or the state of two
// queues. A diagnosis ends, has a finding, names only queues that exist, and can be printed.
#include "sdma/doctor/diagnose.hpp"
#include "sdma/doctor/read.hpp"
#include "sdma/trace/write.hpp"

#include <cstdlib>
#include <cstring>

using namespace sdma;

namespace {

constexpr std::size_t kMostBytes = 65536;

void check(const doctor::Snapshot& s) {
  const auto d = diagnose(s);
  if (d.findings.empty() || d.queues.size() != s.queues.size()) std::abort();
  for (const auto& f : d.findings) {
    if (f.queue && *f.queue >= s.queues.size()) std::abort();
    if (f.statements.empty()) std::abort();
    for (const auto& place : f.cycle)
      if (place.queue >= s.queues.size()) std::abort();
  }
  if (to_text(d).empty() || to_json(d).empty()) std::abort();
}

/// Takes numbers from the front of the input.
class Taker {
 public:
  explicit Taker(std::span<const std::byte> in) : in_(in) {}
  template <class T> T take() {
    T value{};
    const auto n = std::min(in_.size(), sizeof value);
    std::memcpy(&value, in_.data(), n);
    in_ = in_.subspan(n);
    return value;
  }
  std::span<const std::byte> rest() const { return in_; }

 private:
  std::span<const std::byte> in_;
};

/// Two queues whose positions, state and dwords are the input.
void queues(std::span<const std::byte> in) {
  doctor::Snapshot s;
  Taker t{in};
  s.watched_ns = t.take<std::uint8_t>() % 2;
  s.all_queues = s.ranges_complete = t.take<std::uint8_t>() % 2;
  s.ranges.push_back({GpuVa{0x7f0000000000}, 1 << 20, "memory", {}, {}});
  const auto known = [&](auto& value) {
    const auto source = t.take<std::uint8_t>();
    value.value = t.take<std::remove_reference_t<decltype(value.value)>>();
    value.from = source % 3 == 0 ? doctor::Source::unknown : doctor::Source::dump;
  };
  for (int i = 0; i < 2; ++i) {
    doctor::QueueSnapshot q{.name = i == 0 ? "a" : "b"};
    for (auto* p : {&q.rptr, &q.wptr, &q.doorbell, &q.committed, &q.reserved, &q.rptr_first, &q.exceptions}) known(*p);
    q.positions_wrap = t.take<std::uint8_t>() % 2;
    q.first = t.take<std::uint8_t>() % 4 == 0 ? t.take<std::uint32_t>() : 0;
    if (t.take<std::uint8_t>() % 4 == 0) known(q.ring_bytes);
    q.engine = {EngineId{t.take<std::uint8_t>()}, doctor::Source::dump};
    q.gpu = {GpuId{0}, doctor::Source::dump};
    q.ring_va = {GpuVa{0x7f0000010000}, doctor::Source::dump};
    q.ring.resize(t.take<std::uint8_t>());
    for (auto& dword : q.ring) dword = t.take<std::uint32_t>();
    s.queues.push_back(std::move(q));
  }
  s.waits.push_back({"t", GpuVa{0x7f0000000000}, Compare::ge, 1, 8, {true, doctor::Source::user}});
  s.words.add(GpuVa{0x7f0000000000}, t.rest());
  check(s);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > kMostBytes) return 0;
  const auto bytes = std::as_bytes(std::span(data, size));
  const std::string_view text{reinterpret_cast<const char*>(data), size};
  doctor::Snapshot s;
  if (doctor::is_core(bytes)) {
    if (const auto done = add_core(s, bytes, "core"); !done && done.error().message.empty()) std::abort();
    check(s);
    return 0;
  }
  if (is_dump(bytes)) {
    if (const auto d = from_bytes(bytes, "ring")) add(s, *d, "ring");
    check(s);
    return 0;
  }
  if (text.starts_with("{\"sdma_trace\"")) {
    if (const auto t = trace::from_json_lines(text, "trace")) add(s, *t, "trace");
    check(s);
    return 0;
  }
  // A `*` of a text may repeat a gigabyte, which takes longer than a run may.
  if (text.find('*') == text.npos)
    if (const auto dumps = read_text_dump(text, "text"))
      for (const auto& d : dumps->dumps) add(s, d, "text", {.rptr = 0, .wptr = d.dwords.size() * 2});
  check(s);
  queues(bytes);
  return 0;
}
