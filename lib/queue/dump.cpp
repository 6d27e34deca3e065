// SPDX-License-Identifier: MIT
#include "sdma/queue/dump.hpp"

#include "sdma/core/file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

namespace sdma { inline namespace v0_3 {

namespace {

constexpr std::uint32_t kVersion1 = 1;

/// The beginning of a dump. The label follows, filled with zeros to whole dwords, and then the ring.
struct FileHeader {
  std::array<char, 8> magic{'S', 'D', 'M', 'A', 'R', 'I', 'N', 'G'};
  std::uint32_t version = kVersion1, size = 72;
  std::uint64_t read{}, committed{}, reserved{}, wptr{}, doorbell{};
  std::uint32_t gpu{}, engine{}, label{}, dwords{};

  std::size_t dwords_at() const noexcept { return sizeof(FileHeader) + (label + std::size_t{3}) / 4 * 4; }
  std::size_t total() const noexcept { return dwords_at() + dwords * std::size_t{4}; }
};
static_assert(sizeof(FileHeader) == 72 && std::endian::native == std::endian::little,
              "a file has the bytes of this struct");

Diagnostic wrong(std::string_view name, std::size_t offset, std::string message, std::string hint = {}) {
  auto d = error_at({.file = std::string(name), .offset = offset}, std::move(message), std::move(hint));
  d.rule = "dump";
  return d;
}
Result<FileHeader, Diagnostic> header(std::span<const std::byte> in, std::string_view name) {
  if (!is_dump(in)) return wrong(name, 0, "this is not a ring dump", "a dump begins with SDMARING");
  if (in.size() < sizeof(FileHeader))
    return wrong(name, in.size(), fmt::format("the header ends after {} of {} bytes", in.size(), sizeof(FileHeader)));
  FileHeader h;
  std::memcpy(&h, in.data(), sizeof h);
  if (h.version != kVersion1)
    return wrong(name, offsetof(FileHeader, version), fmt::format("unknown format version {}", h.version),
                 "this library reads version 1");
  if (h.size != sizeof h)
    return wrong(name, offsetof(FileHeader, size),
                 fmt::format("the header gives its size as {} bytes instead of {}", h.size, sizeof h));
  if (h.label > kMaxDumpLabel)
    return wrong(name, offsetof(FileHeader, label),
                 fmt::format("the label has {} bytes; at most {} are allowed", h.label, kMaxDumpLabel));
  if (h.dwords > kMaxDumpDwords)
    return wrong(name, offsetof(FileHeader, dwords),
                 fmt::format("the ring has {} dwords; at most {} are allowed", h.dwords, kMaxDumpDwords));
  return h;
}

}  // namespace

namespace detail {

RingDump snapshot(const RingMemory& m, std::uint64_t read, std::uint64_t committed, std::uint64_t reserved) {
  RingDump d{.read = read, .committed = committed, .reserved = reserved};
  if (m.wptr) d.wptr = order::Native::load(m.wptr, order::Native::kRptr);
  if (m.doorbell) d.doorbell = order::Native::load(m.doorbell, order::Native::kRptr);
  d.dwords.assign(m.dwords.begin(), m.dwords.end());
  return d;
}

}  // namespace detail

Result<Pending, Diagnostic> pending(const RingDump& d, std::string_view name) {
  if (d.read % 4 != 0)
    return wrong(name, offsetof(FileHeader, read), fmt::format("read is {:#x}, not a multiple of 4", d.read));
  if (d.wptr % 4 != 0)
    return wrong(name, offsetof(FileHeader, wptr), fmt::format("wptr is {:#x}, not a multiple of 4", d.wptr));
  if (d.read > d.wptr)
    return wrong(name, offsetof(FileHeader, read), fmt::format("read is {:#x}, ahead of wptr {:#x}", d.read, d.wptr));
  const auto n = (d.wptr - d.read) / 4;
  if (n != 0 && n >= d.dwords.size())
    return wrong(name, offsetof(FileHeader, read),
                 fmt::format("read {:#x} lags wptr {:#x} by a whole ring of {} dwords or more", d.read, d.wptr,
                             d.dwords.size()));
  Pending p{{}, d.read, d.dwords.size()};
  if (n == 0) return p;
  const auto first = static_cast<std::ptrdiff_t>(d.read / 4 % d.dwords.size());
  const auto piece = std::min(static_cast<std::ptrdiff_t>(n), static_cast<std::ptrdiff_t>(d.dwords.size()) - first);
  p.dwords.assign(d.dwords.begin() + first, d.dwords.begin() + first + piece);
  p.dwords.insert(p.dwords.end(), d.dwords.begin(), d.dwords.begin() + (static_cast<std::ptrdiff_t>(n) - piece));
  return p;
}

std::vector<std::byte> to_bytes(const RingDump& d) {
  const auto label = std::string_view(d.label).substr(0, kMaxDumpLabel);
  const FileHeader h{.read = d.read,
                     .committed = d.committed,
                     .reserved = d.reserved,
                     .wptr = d.wptr,
                     .doorbell = d.doorbell,
                     .gpu = d.gpu.value,
                     .engine = d.engine.value,
                     .label = static_cast<std::uint32_t>(label.size()),
                     .dwords = static_cast<std::uint32_t>(d.dwords.size())};
  std::vector<std::byte> out(h.total());
  std::memcpy(out.data(), &h, sizeof h);
  std::copy(label.begin(), label.end(), reinterpret_cast<char*>(out.data() + sizeof h));
  const auto bytes = std::as_bytes(std::span(d.dwords));
  std::copy(bytes.begin(), bytes.end(), out.begin() + static_cast<std::ptrdiff_t>(h.dwords_at()));
  return out;
}

bool is_dump(std::span<const std::byte> in) noexcept {
  const auto magic = FileHeader{}.magic;
  return in.size() >= magic.size() && std::memcmp(in.data(), magic.data(), magic.size()) == 0;
}

Result<RingDump, Diagnostic> from_bytes(std::span<const std::byte> in, std::string_view name) {
  const auto h = header(in, name);
  if (!h) return h.error();
  if (in.size() < h->total())
    return wrong(name, in.size(), fmt::format("the dump ends after {} of {} bytes", in.size(), h->total()),
                 "the file is incomplete: write or copy it again");
  if (in.size() > h->total())
    return wrong(name, h->total(), fmt::format("{} extra bytes after the dump's last dword", in.size() - h->total()));
  for (auto at = sizeof(FileHeader) + h->label; at < h->dwords_at(); ++at)
    if (in[at] != std::byte{}) return wrong(name, at, "the label is not padded with zeros");
  RingDump d{.read = h->read,
             .committed = h->committed,
             .reserved = h->reserved,
             .wptr = h->wptr,
             .doorbell = h->doorbell,
             .gpu = {h->gpu},
             .engine = {h->engine},
             .label = std::string(reinterpret_cast<const char*>(in.data() + sizeof(FileHeader)), h->label),
             .dwords = std::vector<std::uint32_t>(h->dwords)};
  const auto bytes = in.subspan(h->dwords_at());
  std::copy(bytes.begin(), bytes.end(), std::as_writable_bytes(std::span(d.dwords)).begin());
  return d;
}

Result<void, Diagnostic> save(const RingDump& d, const std::string& path) {
  if (d.dwords.size() > kMaxDumpDwords)
    return Diagnostic{
        .rule = "dump",
        .where = path,
        .message = fmt::format("the ring has {} dwords; at most {} are allowed", d.dwords.size(), kMaxDumpDwords)};
  const auto bytes = to_bytes(d);
  auto saved = save_file(path, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  if (!saved) saved.error().rule = "dump";
  return saved;
}

Result<RingDump, Diagnostic> load_dump(const std::string& path) {
  FileReader file{path};
  std::string text;
  /// Reads until `size` bytes are there, or the file ends.
  const auto read_to = [&](std::size_t size) -> Result<void, Diagnostic> {
    constexpr std::size_t kStep = std::size_t{1} << 20;
    while (text.size() < size) {
      auto more = file.read(text, std::min(size - text.size(), kStep));
      if (!more) return more.error().rule = "dump", std::move(more.error());
      if (!*more) break;
    }
    return {};
  };
  const auto bytes = [&] { return std::as_bytes(std::span(text)); };
  if (auto e = read_to(sizeof(FileHeader)); !e) return std::move(e.error());
  const auto h = header(bytes(), path);
  if (!h) return h.error();
  // Requests one byte more than there should be, to detect trailing bytes.
  if (auto e = read_to(h->total() + 1); !e) return std::move(e.error());
  return from_bytes(bytes(), path);
}

}}  // namespace sdma::v0_3
