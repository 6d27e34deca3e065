// SPDX-License-Identifier: MIT
#include "records_writer.hpp"

#include <fcntl.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>

namespace sdma { inline namespace v0_3 { namespace trace {

using detail::RecordHead;
using detail::RecordsHeader;

namespace {

constexpr std::size_t kHeaderPage = 4096;
constexpr std::size_t padded(std::size_t n) noexcept { return (n + 7) & ~std::size_t{7}; }

/// Stores what follows the head of a record, and then the head.
class Filler {
 public:
  explicit Filler(std::byte* at) noexcept : begin_(at), at_(at + sizeof(RecordHead)) {}
  void bytes(const void* from, std::size_t n) noexcept {
    if (n != 0) std::memcpy(at_, from, n);
    at_ += n;
  }
  template <class T> void number(T n) noexcept { bytes(&n, sizeof n); }
  void finish(const RecordHead& h) noexcept {
    std::uint64_t word = 0;
    std::memcpy(&word, &h, sizeof word);
    __atomic_store_n(reinterpret_cast<std::uint64_t*>(begin_), word, __ATOMIC_RELEASE);
  }

 private:
  std::byte *begin_, *at_;
};

}  // namespace

RecordsWriter::RecordsWriter(int fd, std::string_view clock) noexcept
    : fd_(fd), first_(detail::records_header(clock, kChunk)) {}
RecordsWriter::~RecordsWriter() {
  if (header_) ::munmap(header_, kHeaderPage);
  if (chunk_) ::munmap(chunk_, kChunk);
}

/// Appends a chunk to the file.
bool RecordsWriter::grow() noexcept {
  const auto at = static_cast<off_t>(chunks_ * kChunk);
  if (::posix_fallocate(fd_, at, kChunk) != 0) return false;
  void* const next = ::mmap(nullptr, kChunk, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, at);
  if (next == MAP_FAILED) return false;
  if (!header_) {
    void* const first = ::mmap(nullptr, kHeaderPage, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
    if (first == MAP_FAILED) return ::munmap(next, kChunk), false;
    header_ = static_cast<RecordsHeader*>(first);
    *header_ = first_;
  }
  if (chunk_) ::munmap(chunk_, kChunk);
  chunk_ = static_cast<std::byte*>(next);
  used_ = chunks_++ == 0 ? sizeof(RecordsHeader) : 0;
  return true;
}

/// Where a record of this size goes; null: there is no room.
std::byte* RecordsWriter::room(std::size_t bytes) noexcept {
  if (bytes > UINT16_MAX || ((!chunk_ || used_ + bytes > kChunk) && !grow())) return nullptr;
  auto* const at = chunk_ + used_;
  used_ += bytes;
  return at;
}

bool RecordsWriter::put_text(std::uint8_t kind, std::string_view first, std::string_view second,
                             const NameTable::Range* range) noexcept {
  constexpr std::size_t kMost = 4096;  // characters; the names of variables have no limit
  const auto first_size = std::min(first.size(), kMost);
  const auto bytes = padded(sizeof(RecordHead) + (range ? 16 : 0) + first_size + std::min(second.size(), kMost) + 1);
  auto* const at = room(bytes);
  if (!at) return false;
  Filler f(at);
  if (range) {
    f.number(range->va.value);
    f.number(range->bytes);
  }
  for (const auto text : {first, second}) {
    const bool cut = text.size() > kMost;
    f.bytes(text.data(), cut ? kMost - 2 : text.size());
    if (cut) f.bytes("..", 2);
  }
  f.finish({.bytes = static_cast<std::uint16_t>(bytes),
            .kind = kind,
            .dwords = 0,
            .number = static_cast<std::uint32_t>(first_size)});
  return true;
}

bool RecordsWriter::put_new(const Trace& names) noexcept {
  for (; lanes_ < names.lanes.size(); ++lanes_)
    if (!put_text(detail::kLane, names.lanes[lanes_].group, names.lanes[lanes_].name, nullptr)) return false;
  for (; texts_ < names.texts.size(); ++texts_)
    if (!put_text(detail::kText, names.texts[texts_], {}, nullptr)) return false;
  for (const auto& ranges = names.names.ranges(); ranges_ < ranges.size(); ++ranges_)
    if (!put_text(detail::kRange, ranges[ranges_].name, {}, &ranges[ranges_])) return false;
  return true;
}

bool RecordsWriter::put(const Event& e) noexcept {
  const bool packet = e.kind == Kind::packet_begin;
  const bool named = packet && e.generation != kDefaultGeneration;
  const auto of_packet = 4 + std::size_t{4} * e.dword_count + (named ? detail::kGenerationName : 0);
  const auto bytes = padded(24 + (packet ? of_packet : detail::has_more(e.kind) ? 24 : 0));
  auto* const at = room(bytes);
  if (!at) return false;
  Filler f(at);
  f.number(e.ns);
  f.number(e.position);
  if (packet) {
    f.number(e.length);
    f.bytes(e.dwords.data(), std::size_t{4} * e.dword_count);
    if (named) {
      std::array<char, detail::kGenerationName> name{};
      const auto text = name_of(e.generation);
      std::copy_n(text.begin(), std::min(text.size(), name.size() - 1), name.begin());
      f.bytes(name.data(), name.size());
    }
  } else if (detail::has_more(e.kind)) {
    f.number(e.value);
    f.number(e.address.value);
    f.number(std::uint64_t{e.text.value});
  }
  f.finish({.bytes = static_cast<std::uint16_t>(bytes),
            .kind = static_cast<std::uint8_t>(e.kind),
            .dwords = static_cast<std::uint8_t>(e.dword_count | (named ? detail::kNamed : 0)),
            .number = e.lane.value});
  return true;
}

bool RecordsWriter::write(const Trace& names, const Event& e) noexcept {
  const bool kept = put_new(names) && put(e);
  if (!kept) lose();
  return kept;
}

void RecordsWriter::lose() noexcept {
  if (header_ || grow()) __atomic_fetch_add(&header_->lost, 1, __ATOMIC_RELAXED);
}

}}}  // namespace sdma::v0_3::trace
