// SPDX-License-Identifier: MIT
#include "records.hpp"

#include <fmt/format.h>

#include <cstring>

namespace sdma { inline namespace v0_3 { namespace trace::detail {
namespace {

/// Takes numbers and texts off the front of a record.
class Taker {
 public:
  explicit Taker(std::string_view record) : left_(record) {}
  std::uint64_t number() { return plain<std::uint64_t>(); }
  template <class T> T plain() {
    T value{};
    good_ = good_ && left_.size() >= sizeof value;
    if (!good_) return value;
    std::memcpy(&value, left_.data(), sizeof value);
    left_.remove_prefix(sizeof value);
    return value;
  }
  std::string text(std::size_t n) {
    good_ = good_ && n <= left_.size();
    if (!good_) return {};
    std::string s(left_.substr(0, n));
    left_.remove_prefix(n);
    return s;
  }
  std::string rest() { return text(std::min(left_.find('\0'), left_.size())); }
  bool good() const noexcept { return good_; }

 private:
  std::string_view left_;
  bool good_ = true;
};

bool take_event(Taker& t, const RecordHead& h, Trace& out) {
  const auto count = static_cast<std::uint8_t>(h.dwords & ~kNamed);
  Event e{.lane = {h.number}, .kind = static_cast<Kind>(h.kind), .dword_count = count};
  e.ns = t.number();
  e.position = t.number();
  if (e.kind == Kind::packet_begin) {
    e.length = t.plain<std::uint32_t>();
    if (count > Event::kDwords) return false;
    for (unsigned i = 0; i < count; ++i) e.dwords[i] = t.plain<std::uint32_t>();
    if ((h.dwords & kNamed) != 0) {
      const auto name = t.text(kGenerationName);
      const auto generation = generation_of(std::string_view(name.c_str()));
      if (!generation) return false;
      e.generation = *generation;
    }
  } else if (has_more(e.kind)) {
    e.value = t.number();
    e.address = GpuVa{t.number()};
    e.text = {static_cast<std::uint32_t>(t.number())};
  }
  if (h.number >= out.lanes.size() || (e.text.value != 0 && e.text.value >= out.texts.size())) return false;
  out.events.push_back(e);
  return t.good();
}

bool take_record(std::string_view record, const RecordHead& h, Trace& out) {
  Taker t(record.substr(sizeof h));
  if (h.kind < kKinds) return take_event(t, h, out);
  if (h.kind == kLane) {
    auto group = t.text(h.number);
    out.lanes.push_back({std::move(group), t.rest()});
  } else if (h.kind == kText) {
    out.texts.push_back(t.text(h.number));
  } else if (h.kind == kRange) {
    const auto va = GpuVa{t.number()};
    const auto bytes = t.number();
    out.names.add(va, bytes, t.text(h.number));
  } else {
    return false;
  }
  return t.good();
}

}  // namespace

Result<Trace, Diagnostic> from_records(std::string_view file, std::string_view name) {
  const auto damaged = [&](std::size_t at) {
    return Diagnostic{.where = std::string(name),
                      .message = fmt::format("the recording is damaged at byte {}", at),
                      .hint = "record again"};
  };
  RecordsHeader header{};
  if (file.size() < sizeof header) return damaged(file.size());
  std::memcpy(&header, file.data(), sizeof header);
  const auto chunk = static_cast<std::size_t>(header.chunk_bytes);
  const bool empty = chunk == sizeof header;  // a recording before its first event
  if (!is_records(file) || header.clock.back() != '\0' || (!empty && (chunk < 4096 || chunk % 4096 != 0)))
    return damaged(0);
  // The writer adds whole chunks, so any other file is cut off.
  if (empty ? file.size() != chunk : file.size() % chunk != 0) return damaged(file.size());
  Trace out{.clock = header.clock.data(), .lost = header.lost};
  for (std::size_t at = sizeof header; at + sizeof(RecordHead) <= file.size();) {
    RecordHead h{};
    std::memcpy(&h, file.data() + at, sizeof h);
    const auto end = (at / chunk + 1) * chunk;
    if (h.bytes == 0) {  // the rest of the chunk is empty
      at = end;
      continue;
    }
    if (h.bytes % 8 != 0 || at + h.bytes > std::min(end, file.size())) return damaged(at);
    if (!take_record(file.substr(at, h.bytes), h, out)) return damaged(at);
    at += h.bytes;
  }
  return out;
}

}}}  // namespace sdma::v0_3::trace::detail
