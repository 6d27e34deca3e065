#include "sdma/queue/dump.hpp"

#include "sdma/core/file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstring>

namespace sdma {
inline namespace v0 {

namespace {

constexpr std::string_view kMagic = "SDMARING";
constexpr std::uint32_t kVersion1 = 1;

struct Header {
  std::uint32_t label{}, dwords{};
  static constexpr std::size_t kVersion = 8, kSize = 12, kRead = 16, kCommitted = 24, kReserved = 32, kWptr = 40,
                               kDoorbell = 48, kGpu = 56, kEngine = 60, kLabel = 64, kDwords = 68, kBytes = 72;

  std::size_t dwords_at() const noexcept { return kBytes + (label + std::size_t{3}) / 4 * 4; }
  std::size_t total() const noexcept { return dwords_at() + dwords * std::size_t{4}; }
};

template <class T> void append(std::vector<std::byte>& out, T v) {
  for (std::size_t i = 0; i < sizeof v; ++i) out.push_back(static_cast<std::byte>(v >> (i * 8)));
}
template <class T> T read_at(std::span<const std::byte> in, std::size_t at) noexcept {
  T v = 0;
  for (std::size_t i = 0; i < sizeof v; ++i) v = static_cast<T>(v | std::to_integer<T>(in[at + i]) << (i * 8));
  return v;
}

Diagnostic wrong(std::string_view name, std::size_t offset, std::string message, std::string hint = {}) {
  return {.rule = "dump",
          .where = fmt::format("{}:{:#06x}", name, offset),
          .message = std::move(message),
          .hint = std::move(hint)};
}
Diagnostic failed(const std::string& path, std::string_view what) {
  const int error = errno;
  return {.rule = "dump", .where = path, .message = fmt::format("{}: {}", what, std::strerror(error))};
}

Result<Header, Diagnostic> header(std::span<const std::byte> in, std::string_view name) {
  if (!is_dump(in)) return wrong(name, 0, "this is not a ring dump", "a dump begins with SDMARING");
  if (in.size() < Header::kBytes)
    return wrong(name, in.size(), fmt::format("the header ends after {} of {} bytes", in.size(), +Header::kBytes));
  const auto version = read_at<std::uint32_t>(in, Header::kVersion);
  if (version != kVersion1)
    return wrong(name, Header::kVersion, fmt::format("unknown format version {}", version),
                 "this library reads version 1");
  if (const auto size = read_at<std::uint32_t>(in, Header::kSize); size != Header::kBytes)
    return wrong(name, Header::kSize,
                 fmt::format("the header gives its size as {} bytes instead of {}", size, +Header::kBytes));
  const Header h{read_at<std::uint32_t>(in, Header::kLabel), read_at<std::uint32_t>(in, Header::kDwords)};
  if (h.label > kMaxDumpLabel)
    return wrong(name, Header::kLabel,
                 fmt::format("the label has {} bytes; at most {} are allowed", h.label, kMaxDumpLabel));
  if (h.dwords > kMaxDumpDwords)
    return wrong(name, Header::kDwords,
                 fmt::format("the ring has {} dwords; at most {} are allowed", h.dwords, kMaxDumpDwords));
  return h;
}

class File {
 public:
  explicit File(const char* path) noexcept : fd_(::open(path, O_RDONLY | O_CLOEXEC)) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() {
    if (fd_ >= 0) ::close(fd_);
  }
  explicit operator bool() const noexcept { return fd_ >= 0; }

  /// Reads up to `more` bytes; fewer if the file ends. On an error, returns false with errno set.
  bool read(std::vector<std::byte>& out, std::size_t more) {
    constexpr std::size_t kStep = std::size_t{1} << 20;
    while (more > 0) {
      const auto had = out.size(), step = std::min(more, kStep);
      out.resize(had + step);
      const auto n = ::read(fd_, out.data() + had, step);
      out.resize(had + static_cast<std::size_t>(n > 0 ? n : 0));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return n == 0;
      more -= static_cast<std::size_t>(n);
    }
    return true;
  }

 private:
  int fd_;
};

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
  if (d.read % 4 != 0) return wrong(name, Header::kRead, fmt::format("read is {:#x}, not a multiple of 4", d.read));
  if (d.wptr % 4 != 0) return wrong(name, Header::kWptr, fmt::format("wptr is {:#x}, not a multiple of 4", d.wptr));
  if (d.read > d.wptr)
    return wrong(name, Header::kRead, fmt::format("read is {:#x}, ahead of wptr {:#x}", d.read, d.wptr));
  const auto n = (d.wptr - d.read) / 4;
  if (n != 0 && n >= d.dwords.size())
    return wrong(name, Header::kRead,
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
  const Header h{static_cast<std::uint32_t>(label.size()), static_cast<std::uint32_t>(d.dwords.size())};
  std::vector<std::byte> out;
  out.reserve(h.total());
  for (char c : kMagic) out.push_back(static_cast<std::byte>(c));
  append(out, kVersion1);
  append(out, static_cast<std::uint32_t>(+Header::kBytes));
  for (auto v : {d.read, d.committed, d.reserved, d.wptr, d.doorbell}) append(out, v);
  for (auto v : {d.gpu.value, d.engine.value, h.label, h.dwords}) append(out, v);
  for (char c : label) out.push_back(static_cast<std::byte>(c));
  out.resize(h.dwords_at());
  for (auto w : d.dwords) append(out, w);
  return out;
}

bool is_dump(std::span<const std::byte> in) noexcept {
  return in.size() >= kMagic.size() && std::memcmp(in.data(), kMagic.data(), kMagic.size()) == 0;
}

Result<RingDump, Diagnostic> from_bytes(std::span<const std::byte> in, std::string_view name) {
  const auto h = header(in, name);
  if (!h) return h.error();
  if (in.size() < h->total())
    return wrong(name, in.size(), fmt::format("the dump ends after {} of {} bytes", in.size(), h->total()),
                 "the file is incomplete: write or copy it again");
  if (in.size() > h->total())
    return wrong(name, h->total(), fmt::format("{} extra bytes after the dump's last dword", in.size() - h->total()));
  for (auto at = Header::kBytes + h->label; at < h->dwords_at(); ++at)
    if (in[at] != std::byte{}) return wrong(name, at, "the label is not padded with zeros");
  const auto word = [&](std::size_t at) { return read_at<std::uint64_t>(in, at); };
  RingDump d{.read = word(Header::kRead),
             .committed = word(Header::kCommitted),
             .reserved = word(Header::kReserved),
             .wptr = word(Header::kWptr),
             .doorbell = word(Header::kDoorbell),
             .gpu = {read_at<std::uint32_t>(in, Header::kGpu)},
             .engine = {read_at<std::uint32_t>(in, Header::kEngine)}};
  for (std::size_t i = 0; i < h->label; ++i) d.label.push_back(std::to_integer<char>(in[Header::kBytes + i]));
  d.dwords.resize(h->dwords);
  for (std::size_t i = 0; i < d.dwords.size(); ++i) d.dwords[i] = read_at<std::uint32_t>(in, h->dwords_at() + i * 4);
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
  File f(path.c_str());
  if (!f) return failed(path, "cannot be opened");
  std::vector<std::byte> bytes;
  if (!f.read(bytes, Header::kBytes)) return failed(path, "cannot be read");
  const auto h = header(bytes, path);
  if (!h) return h.error();
  // Requests one byte more than there should be, to detect trailing bytes.
  if (!f.read(bytes, h->total() - Header::kBytes + 1)) return failed(path, "cannot be read");
  return from_bytes(bytes, path);
}

}  // namespace v0
}  // namespace sdma
