// SPDX-License-Identifier: MIT
// Core files: what an ELF core and the notes of a `gpucore.*` say about queues.
#include "sdma/doctor/read.hpp"

#include "../core/plural.hpp"
#include "../kfd/abi.hpp"
#include "process.hpp"

#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace sdma { inline namespace v0_3 { namespace doctor {
namespace {

/// The note of a gpucore file: amd_core_dump.cpp of ROCr writes it.
constexpr std::uint32_t kCoreState = 33;
constexpr std::string_view kOwner{"AMDGPU\0", 7};
constexpr std::uint64_t kVersion = 1;
/// The entries of the note are the driver's.
using kfd::DeviceEntry;
using kfd::QueueEntry;
constexpr bool is_sdma(std::uint32_t type) noexcept {
  return type == kfd::kQueueSdma || type == kfd::kQueueSdmaXgmi || type == kfd::kQueueSdmaByEngine;
}
constexpr std::uint32_t kMostRing = 0x40000000;

class CoreReader {
 public:
  CoreReader(Snapshot& s, std::span<const std::byte> bytes, std::string_view name)
      : s_(s), bytes_(bytes), name_(name) {}

  Result<void, Diagnostic> run() {
    Elf64_Ehdr header{};
    if (!get(0, header)) return wrong("this core file is cut off: its header is not complete");
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB)
      return wrong("this is not a core file of a 64-bit little-endian process");
    if (header.e_type != ET_CORE)
      return wrong("this ELF file is not a core file", "give the core file, not the program");
    std::uint64_t count = header.e_phnum;
    if (count == PN_XNUM) {  // more segments than fit: the first section header has their number
      Elf64_Shdr first{};
      if (!get(header.e_shoff, first))
        return wrong("this core file is cut off: the number of its segments is not there");
      count = first.sh_info;
    }
    if (header.e_phentsize != sizeof(Elf64_Phdr) || count > bytes_.size() / sizeof(Elf64_Phdr) ||
        !has(header.e_phoff, count * sizeof(Elf64_Phdr)))
      return wrong("this core file is cut off: its list of segments is not complete");
    std::vector<Elf64_Phdr> notes;
    for (std::uint64_t i = 0; i < count; ++i) {
      Elf64_Phdr p{};
      get(header.e_phoff + i * sizeof p, p);
      if (p.p_type == PT_LOAD) load(p);
      if (p.p_type == PT_NOTE) notes.push_back(p);
    }
    std::sort(pieces_.begin(), pieces_.end(), [](const Piece& a, const Piece& b) { return a.va < b.va; });
    std::sort(mappings_.begin(), mappings_.end(), [](auto& a, auto& b) { return a.begin < b.begin; });
    add_memory();
    for (const auto& n : notes)
      if (auto done = each_note(n); !done) return done;
    if (cut_ > 0)
      s_.notes.push_back(fmt::format("{}: {} segments are cut off, so their memory is not known", name_, cut_));
    if (queues_ == 0 && s_.queues.size() == before_) no_queues();
    if (!has_state_) add_ranges();
    return {};
  }

 private:
  struct Piece {
    std::uint64_t va{};
    std::span<const std::byte> bytes{};
  };

  Diagnostic wrong(std::string message, std::string hint = {}) const {
    return {.rule = "dump", .where = std::string(name_), .message = std::move(message), .hint = std::move(hint)};
  }
  bool has(std::uint64_t at, std::uint64_t n) const noexcept { return at <= bytes_.size() && n <= bytes_.size() - at; }
  template <class T> bool get(std::uint64_t at, T& out) const noexcept {
    if (!has(at, sizeof out)) return false;
    std::memcpy(&out, bytes_.data() + at, sizeof out);
    return true;
  }

  void load(const Elf64_Phdr& p) {
    mappings_.push_back({.begin = p.p_vaddr, .end = p.p_vaddr + p.p_memsz, .readable = (p.p_flags & PF_R) != 0});
    if (p.p_filesz == 0) {
      lists_all_ = lists_all_ || p.p_memsz != 0;  // the kernel left the contents out
      return;
    }
    if (!has(p.p_offset, p.p_filesz)) {
      ++cut_;
      return;
    }
    pieces_.push_back({p.p_vaddr, bytes_.subspan(p.p_offset, p.p_filesz)});
  }
  /// Reads memory of the core, and else what was known before.
  void add_memory() {
    s_.peek = [pieces = pieces_, before = s_.peek](GpuVa va, std::span<std::byte> out) {
      auto next = std::upper_bound(pieces.begin(), pieces.end(), va.value,
                                   [](std::uint64_t at, const Piece& p) { return at < p.va; });
      if (next != pieces.begin()) {
        const auto& p = *std::prev(next);
        const auto at = va.value - p.va;
        if (at <= p.bytes.size() && out.size() <= p.bytes.size() - at) {
          const auto taken = p.bytes.subspan(at, out.size());
          std::copy(taken.begin(), taken.end(), out.begin());
          return Errc::ok;
        }
      }
      return before ? before(va, out) : Errc::unmapped;
    };
  }

  Result<void, Diagnostic> each_note(const Elf64_Phdr& p) {
    if (!has(p.p_offset, p.p_filesz)) return wrong("this core file is cut off: its notes are not complete");
    const auto padded = [](std::uint64_t n) { return (n + 3) / 4 * 4; };
    for (auto at = p.p_offset; at < p.p_offset + p.p_filesz;) {
      Elf64_Nhdr n{};
      if (!get(at, n)) return wrong("this core file has a note that is cut off");
      const auto name_at = at + sizeof n, data_at = name_at + padded(n.n_namesz);
      if (!has(data_at, n.n_descsz)) return wrong("this core file has a note that is cut off");
      const std::string_view owner{reinterpret_cast<const char*>(bytes_.data() + name_at), n.n_namesz};
      if (n.n_type == kCoreState && owner == kOwner)
        if (auto done = core_state(bytes_.subspan(data_at, n.n_descsz)); !done) return done;
      if (n.n_type == NT_FILE) files(bytes_.subspan(data_at, n.n_descsz));
      at = data_at + padded(n.n_descsz);
    }
    return {};
  }

  /// The files that the process had mapped: uint64 count and page size, then uint64 begin, end and position of each,
  /// then their names. Those of GPUs have no contents in a core of the kernel.
  void files(std::span<const std::byte> d) {
    const auto number = [&](std::size_t i) {
      std::uint64_t n = 0;
      if (d.size() / sizeof n > i) std::memcpy(&n, d.data() + i * sizeof n, sizeof n);
      return n;
    };
    constexpr std::size_t kHead = 2, kEach = 3;
    const auto count = number(0);
    if (count > d.size() / (kEach * 8)) return;
    std::string_view names{reinterpret_cast<const char*>(d.data()), d.size()};
    names.remove_prefix(std::min((kHead + count * kEach) * 8, names.size()));
    for (std::uint64_t i = 0; i < count && !names.empty(); ++i) {
      const auto name = names.substr(0, names.find('\0'));
      names.remove_prefix(std::min(name.size() + 1, names.size()));
      device_mappings_ += name.starts_with("/dev/dri/renderD") || name.starts_with("/dev/kfd");
      const auto begin = number(kHead + i * kEach), end = number(kHead + i * kEach + 1);
      const auto first = std::lower_bound(mappings_.begin(), mappings_.end(), begin,
                                          [](const Mapping& m, std::uint64_t at) { return m.begin < at; });
      for (auto m = first; m != mappings_.end() && m->end <= end && m->file.empty(); ++m) m->file = std::string(name);
    }
  }

  /// The kernel lists every mapping, with contents or without. A debugger's core lists only those that it has read, so
  /// an address that is not listed there may be mapped.
  void add_ranges() {
    auto ranges = ranges_of(mappings_);
    std::move(ranges.begin(), ranges.end(), std::back_inserter(s_.ranges));
    s_.ranges_complete = s_.ranges_complete || lists_all_;
  }

  /// uint64 version; uint32 driver's version, major and minor; uint64 bytes of the runtime's information; uint32 number
  /// and size of the devices, then of the queues; then these three, each padded to a multiple of 8.
  Result<void, Diagnostic> core_state(std::span<const std::byte> d) {
    struct Header {
      std::uint64_t version;
      std::uint32_t major, minor;
      std::uint64_t runtime_bytes;
      std::uint32_t devices, device_bytes, queues, queue_bytes;
    } h{};
    static_assert(sizeof h == 40);
    has_state_ = true;
    if (d.size() < sizeof h) return wrong("the note of the GPU's state is cut off");
    std::memcpy(&h, d.data(), sizeof h);
    if (h.version != kVersion)
      return wrong(
          fmt::format("the note of the GPU's state has version {}, and only version {} is known", h.version, kVersion));
    const auto padded = [](std::uint64_t n) { return (n + 7) / 8 * 8; };
    const auto left = d.size() - sizeof h;
    const auto devices = std::uint64_t{h.devices} * h.device_bytes, queues = std::uint64_t{h.queues} * h.queue_bytes;
    if (h.runtime_bytes > left || devices > left || queues > left ||
        padded(h.runtime_bytes) + padded(devices) + queues > left)
      return wrong("the note of the GPU's state is cut off");
    const auto devices_at = sizeof h + padded(h.runtime_bytes), queues_at = devices_at + padded(devices);
    for (std::uint32_t i = 0;
         i < h.devices && h.device_bytes >= offsetof(DeviceEntry, gpu_id) + sizeof(DeviceEntry::gpu_id); ++i) {
      std::uint32_t id = 0;
      std::memcpy(&id, d.data() + devices_at + std::uint64_t{i} * h.device_bytes + offsetof(DeviceEntry, gpu_id),
                  sizeof id);
      gpus_.push_back(id);
    }
    if (h.queues > 0 && h.queue_bytes < sizeof(QueueEntry))
      return wrong(
          fmt::format("a queue of the GPU's state has {} bytes instead of {}", h.queue_bytes, sizeof(QueueEntry)));
    for (std::uint32_t i = 0; i < h.queues; ++i) {
      QueueEntry q{};
      std::memcpy(&q, d.data() + queues_at + std::uint64_t{i} * h.queue_bytes, sizeof q);
      ++queues_;
      if (is_sdma(q.type)) queue(q);
    }
    // Since mid-2026, ROCr lists queues of compute alone. A file with a queue of sDMA is older, and has all of them.
    const bool lists_sdma = s_.queues.size() > before_;
    s_.all_queues = s_.all_queues || lists_sdma;
    if (queues_ > 0 && !lists_sdma)
      s_.notes.push_back(fmt::format(
          "{}: this file has {} of compute, and none of sDMA. ROCr has left them out since mid-2026, so the process may "
          "have some: give the rings as well (umr, debugfs), or examine the process while it lives (--attach)",
          name_, plural(queues_, "queue")));
    return {};
  }

  template <class T> Known<T> read(std::uint64_t va) const {
    T value{};
    if (s_.peek(GpuVa{va}, std::as_writable_bytes(std::span(&value, 1))) != Errc::ok) return {};
    return {value, Source::dump};
  }
  void queue(const QueueEntry& e) {
    const auto gpu = std::find(gpus_.begin(), gpus_.end(), e.gpu_id);
    QueueSnapshot q{.name = gpu == gpus_.end() ? fmt::format("gpu id {:#x} queue {}", e.gpu_id, e.queue_id)
                                               : fmt::format("gpu {} queue {}", gpu - gpus_.begin(), e.queue_id),
                    .id = e.queue_id};
    if (gpu != gpus_.end()) q.gpu = {GpuId{static_cast<std::uint32_t>(gpu - gpus_.begin())}, Source::dump};
    q.ring_va = {GpuVa{e.ring}, Source::dump};
    q.ring_bytes = {e.ring_bytes, Source::dump};
    q.rptr = read<std::uint64_t>(e.rptr);
    q.wptr = read<std::uint64_t>(e.wptr);
    q.exceptions = {e.exceptions, Source::dump};
    std::vector<std::uint32_t> ring(e.ring_bytes <= kMostRing ? e.ring_bytes / 4 : 0);
    if (s_.peek(GpuVa{e.ring}, std::as_writable_bytes(std::span(ring))) == Errc::ok) q.ring = std::move(ring);
    else s_.notes.push_back(fmt::format("{}: the ring of {} at {:#x} is not in the file", name_, q.name, e.ring));
    if (!q.rptr || !q.wptr)
      s_.notes.push_back(
          fmt::format("{}: rptr at {:#x} and wptr at {:#x} of {} are not in the file", name_, e.rptr, e.wptr, q.name));
    s_.queues.push_back(std::move(q));
  }

  void no_queues() {
    s_.notes.push_back(fmt::format(
        "{}: a core file of the kernel has no queues; its memory is used for words, and for rings that are ordinary "
        "memory of the program{}",
        name_, device_mappings_ > 0 ? fmt::format(". {} mappings of GPUs are not dumped", device_mappings_) : ""));
  }

  Snapshot& s_;
  std::span<const std::byte> bytes_;
  std::string_view name_;
  std::vector<Piece> pieces_;
  std::vector<std::uint32_t> gpus_;
  std::vector<Mapping> mappings_;
  bool lists_all_ = false, has_state_ = false;
  std::size_t cut_ = 0, queues_ = 0, device_mappings_ = 0, before_ = s_.queues.size();
};

}  // namespace

bool is_core(std::span<const std::byte> bytes) noexcept {
  return bytes.size() >= SELFMAG && std::memcmp(bytes.data(), ELFMAG, SELFMAG) == 0;
}

bool is_gpu_core(std::span<const std::byte> bytes) noexcept {
  Elf64_Ehdr header{};
  if (!is_core(bytes) || bytes.size() < sizeof header) return false;
  std::memcpy(&header, bytes.data(), sizeof header);
  return header.e_machine == EM_AMDGPU;
}

Result<void, Diagnostic> add_core(Snapshot& s, std::span<const std::byte> bytes, std::string_view name) {
  return CoreReader{s, bytes, name}.run();
}

}}}  // namespace sdma::v0_3::doctor
