// SPDX-License-Identifier: MIT
#include "virtual_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <string>
#include <system_error>

namespace stand_in {
namespace {

bool granular(std::uint64_t value) { return value % VirtualMemory::kGranularity == 0; }

/// How much of each device's memory is taken.
std::atomic<std::size_t>& taken(int device) {
  static auto* const all = new std::array<std::atomic<std::size_t>, 64>{};
  return (*all)[static_cast<std::size_t>(device)];
}

const std::string kFileName = "stand-in memory of GPU ";

void* accessible(int file, std::size_t bytes) {
  void* got = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
  return got == MAP_FAILED ? nullptr : got;
}

void* inaccessible(void* at, std::size_t bytes, int flags) {
  void* got = ::mmap(at, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);
  return got == MAP_FAILED ? nullptr : got;
}

}  // namespace

/// The memory of a handle.
class VirtualMemory::Bytes {
 public:
  /// `file`: -1 if it cannot be exported. `own`: it counts among the memory of this process.
  Bytes(std::byte* at, std::size_t size, int device, int file, bool own)
      : at_(at), size_(size), device_(device), file_(file), own_(own) {
    if (own_) taken(device) += size;
  }
  Bytes(const Bytes&) = delete;
  Bytes& operator=(const Bytes&) = delete;
  ~Bytes() {
    ::munmap(at_, size_);
    if (file_ >= 0) ::close(file_);
    if (own_) taken(device_) -= size_;
  }

  std::byte* at() const noexcept { return at_; }
  std::size_t size() const noexcept { return size_; }
  int device() const noexcept { return device_; }
  int file() const noexcept { return file_; }

 private:
  std::byte* at_;
  std::size_t size_;
  int device_, file_;
  bool own_;
};

VirtualMemory& VirtualMemory::get() {
  static auto* const only = new VirtualMemory;
  return *only;
}

Status VirtualMemory::create(abi::Handle* out, std::size_t bytes, int device, bool exports) {
  if (bytes == 0 || !granular(bytes)) return kInvalidValue;
  const std::lock_guard lock(mutex_);
  if (bytes > kDeviceBytes - taken(device)) return kOutOfMemory;
  const int fd = ::memfd_create((kFileName + std::to_string(device)).c_str(), MFD_CLOEXEC);
  if (fd < 0) return kOutOfMemory;
  void* at = ::ftruncate(fd, static_cast<off_t>(bytes)) == 0 ? accessible(fd, bytes) : nullptr;
  if (!exports || !at) ::close(fd);
  if (!at) return kOutOfMemory;
  *out = next_handle_++;
  handles_.emplace(*out, std::make_shared<Bytes>(static_cast<std::byte*>(at), bytes, device, exports ? fd : -1, true));
  return kSuccess;
}

Status VirtualMemory::export_file(abi::Handle h, int* file) {
  const std::lock_guard lock(mutex_);
  const auto at = handles_.find(h);
  if (at == handles_.end() || at->second->file() < 0) return kInvalidValue;
  *file = ::fcntl(at->second->file(), F_DUPFD, 0);
  return *file < 0 ? kUnknown : kSuccess;
}

Status VirtualMemory::import_file(abi::Handle* out, int file) {
  std::error_code none;
  const auto name = std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(file), none).string();
  const auto at = name.find(kFileName);
  struct stat is {};
  if (at == name.npos || ::fstat(file, &is) != 0) return kInvalidValue;
  const auto bytes = static_cast<std::size_t>(is.st_size);
  void* const mapped = accessible(file, bytes);
  const int own = ::fcntl(file, F_DUPFD_CLOEXEC, 0);
  if (!mapped || own < 0) return kOutOfMemory;
  const std::lock_guard lock(mutex_);
  *out = next_handle_++;
  handles_.emplace(*out, std::make_shared<Bytes>(static_cast<std::byte*>(mapped), bytes,
                                                 std::atoi(name.c_str() + at + kFileName.size()), own, false));
  return kSuccess;
}

Status VirtualMemory::release(abi::Handle h) {
  const std::lock_guard lock(mutex_);
  return handles_.erase(h) == 1 ? kSuccess : kInvalidValue;
}

Status VirtualMemory::reserve(Pointer* out, std::size_t bytes, std::size_t alignment, Pointer at) {
  if (bytes == 0 || !granular(bytes) || !granular(at) || (alignment != 0 && !std::has_single_bit(alignment)))
    return kInvalidValue;
  const auto align = std::max(alignment, kGranularity);
  const std::lock_guard lock(mutex_);
  // The address is a wish.
  if (at != 0 && at % align == 0) {
    void* wanted = reinterpret_cast<void*>(at);
    if (void* got = inaccessible(wanted, bytes, MAP_FIXED_NOREPLACE); got == wanted) {
      reserved_.emplace(*out = at, bytes);
      return kSuccess;
    } else if (got) {
      ::munmap(got, bytes);
    }
  }
  const auto room = bytes + align;
  void* got = inaccessible(nullptr, room, 0);
  if (!got) return kOutOfMemory;
  const auto begin = reinterpret_cast<Pointer>(got), aligned = (begin + align - 1) / align * align;
  if (aligned != begin) ::munmap(got, aligned - begin);
  if (begin + room != aligned + bytes)
    ::munmap(reinterpret_cast<void*>(aligned + bytes), begin + room - aligned - bytes);
  reserved_.emplace(*out = aligned, bytes);
  return kSuccess;
}

Status VirtualMemory::unreserve(Pointer at, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  const auto it = reserved_.find(at);
  if (it == reserved_.end() || it->second != bytes) return kInvalidValue;
  const auto first = mappings_.lower_bound(at);
  if (first != mappings_.end() && first->first < at + bytes) return kInvalidValue;
  ::munmap(reinterpret_cast<void*>(at), bytes);
  reserved_.erase(it);
  return kSuccess;
}

Status VirtualMemory::map(Pointer at, std::size_t bytes, std::size_t offset, abi::Handle h) {
  const std::lock_guard lock(mutex_);
  const auto handle = handles_.find(h);
  if (handle == handles_.end() || bytes == 0 || !granular(at) || !granular(bytes) || !granular(offset) ||
      offset > handle->second->size() || bytes > handle->second->size() - offset)
    return kInvalidValue;
  const auto range = reserved_.upper_bound(at);
  if (range == reserved_.begin()) return kInvalidValue;
  const auto& [begin, size] = *std::prev(range);
  if (at - begin >= size || bytes > size - (at - begin)) return kInvalidValue;
  const auto next = mappings_.lower_bound(at);
  if (next != mappings_.end() && next->first < at + bytes) return kInvalidValue;
  if (next != mappings_.begin() && std::prev(next)->first + std::prev(next)->second.size > at) return kInvalidValue;
  mappings_.emplace(at, Mapping{.bytes = handle->second, .offset = offset, .size = bytes});
  return kSuccess;
}

std::optional<std::pair<VirtualMemory::Mappings::iterator, VirtualMemory::Mappings::iterator>>
VirtualMemory::whole_mappings(Pointer at, std::size_t bytes) {
  const auto first = mappings_.find(at);
  auto last = first;
  const auto end = at + bytes;
  for (; last != mappings_.end() && last->first == at && at < end; ++last) at += last->second.size;
  if (bytes == 0 || at != end) return std::nullopt;
  return std::pair{first, last};
}

Status VirtualMemory::unmap(Pointer at, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  const auto range = whole_mappings(at, bytes);
  if (!range) return kInvalidValue;
  mappings_.erase(range->first, range->second);
  return kSuccess;
}

Status VirtualMemory::set_access(Pointer at, std::size_t bytes, int device, int flags) {
  const std::lock_guard lock(mutex_);
  const auto range = whole_mappings(at, bytes);
  // None, read, or read and write.
  if (!range || (flags != 0 && flags != 1 && flags != 3)) return kInvalidValue;
  const auto bit = std::uint64_t{1} << device;
  for (auto it = range->first; it != range->second; ++it) {
    auto& m = it->second;
    m.readers = flags != 0 ? m.readers | bit : m.readers & ~bit;
    m.writers = flags == 3 ? m.writers | bit : m.writers & ~bit;
  }
  return kSuccess;
}

Status VirtualMemory::allocate(Pointer* out, std::size_t bytes, int device) {
  Allocation a{.bytes = bytes,
               .mapped = (bytes + kGranularity - 1) / kGranularity * kGranularity,
               .device = device,
               .handle = 0};
  if (const auto code = create(&a.handle, a.mapped, device)) return code;
  if (const auto code = reserve(out, a.mapped, 0, 0)) return code;
  if (const auto code = map(*out, a.mapped, 0, a.handle)) return code;
  const std::lock_guard lock(mutex_);
  auto& m = mappings_.at(*out);
  m.readers = m.writers = ways_[static_cast<std::size_t>(device)] | std::uint64_t{1} << device;
  allocations_.emplace(*out, a);
  return kSuccess;
}

Status VirtualMemory::free(Pointer at) {
  std::unique_lock lock(mutex_);
  const auto taken_out = allocations_.extract(at);
  lock.unlock();
  if (!taken_out) return kInvalidValue;
  const auto& a = taken_out.mapped();
  (void)unmap(at, a.mapped);
  (void)release(a.handle);
  return unreserve(at, a.mapped);
}

bool VirtualMemory::open_way(int device, int of) {
  const std::lock_guard lock(mutex_);
  auto& ways = ways_[static_cast<std::size_t>(of)];
  const auto bit = std::uint64_t{1} << device;
  if ((ways & bit) != 0) return false;
  ways |= bit;
  for (const auto& [at, a] : allocations_) {
    if (a.device != of) continue;
    auto& m = mappings_.at(at);
    m.readers |= bit;
    m.writers |= bit;
  }
  return true;
}

std::optional<VirtualMemory::Range> VirtualMemory::range(Pointer at) const noexcept {
  const std::shared_lock lock(mutex_);
  const auto it = mappings_.upper_bound(at);
  if (it == mappings_.begin() || at - std::prev(it)->first >= std::prev(it)->second.size) return std::nullopt;
  const auto& [start, m] = *std::prev(it);
  const auto a = allocations_.find(start);
  return Range{start, a != allocations_.end() ? a->second.bytes : m.size, m.bytes->device()};
}

bool VirtualMemory::reserved(Pointer at) const noexcept {
  const std::shared_lock lock(mutex_);
  const auto it = reserved_.upper_bound(at);
  return it != reserved_.begin() && at - std::prev(it)->first < std::prev(it)->second;
}

std::optional<Piece> VirtualMemory::find(Pointer at, std::size_t bytes, int device, Use use) const {
  const std::shared_lock lock(mutex_);
  auto it = mappings_.upper_bound(at);
  if (it == mappings_.begin()) return std::nullopt;
  const auto& m = (--it)->second;
  const auto skip = static_cast<std::size_t>(at - it->first);
  const auto allowed = use == Use::read ? m.readers : m.writers;
  if (skip >= m.size || (allowed >> device & 1) == 0) return std::nullopt;
  return Piece{.keep = m.bytes, .data = m.bytes->at() + m.offset + skip, .size = std::min(bytes, m.size - skip)};
}

}  // namespace stand_in
