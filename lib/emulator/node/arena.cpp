// SPDX-License-Identifier: MIT
#include "arena.hpp"

#include "../queues/events.hpp"
#include "../real.hpp"

#include "../../core/descriptor.hpp"
#include "../../core/maps.hpp"
#include "../../engine/execute.hpp"

#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iterator>

namespace sdma::emulator {
namespace {

/// A piece holds many objects, or one that is larger.
constexpr std::uint64_t kPieceBytes = std::uint64_t{256} << 20;

/// Says once that the machine, not the node, refuses something, because programs report a bare ENOMEM.
void report_refusal(const char* call, std::uint64_t bytes) noexcept {
  const int error = errno;
  static std::atomic<bool> said{false};
  if (!said.exchange(true))
    std::fprintf(stderr, "sdma emulator: the machine refuses %.1f MiB for GPUs: %s: %s%s\n",
                 static_cast<double>(bytes) / (1 << 20), call, std::strerror(error),
                 error == ENOMEM ? " (limits: ulimit -v, vm.max_map_count)" : "");
  errno = error;
}

}  // namespace

Arena::Arena() {
  for (std::uint32_t g = 0; g < next_.size(); ++g) next_[g] = begin_[g] = std::uint64_t{g + 1} << kGpuShift;
  if (!size_permitted(kArenaBytes)) return;
  fd_ = away(::memfd_create(kArenaName, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (fd_ < 0) {
    report_refusal("memfd_create", 0);
    return;
  }
  struct stat s {};
  if (::ftruncate(fd_, static_cast<off_t>(kArenaBytes)) != 0 ||
      SDMA_REAL(fcntl)(fd_, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0 ||
      SDMA_REAL(fstat)(fd_, &s) != 0) {
    ::close(fd_);
    fd_ = -1;
    return;
  }
  dev_ = s.st_dev;
  inode_ = s.st_ino;
}

Arena::~Arena() {
  for (const auto& [offset, piece] : pieces_) drop(piece.view, piece.bytes);
  abandon();
}

void Arena::abandon() noexcept {
  imports_.clear();
  if (valid()) ::close(fd_);
  fd_ = -1;
}

bool Arena::valid() const noexcept {
  struct stat s {};
  return fd_ >= 0 && SDMA_REAL(fstat)(fd_, &s) == 0 && owns(s.st_dev, s.st_ino);
}

int Arena::open_node(std::uint64_t tag, int flags) const noexcept {
  constexpr int kKept = O_ACCMODE | O_CLOEXEC | O_NONBLOCK;
  const int fd = SDMA_REAL(open)(FdLink(fd_).path, O_APPEND | (flags & kKept));
  if (fd >= 0) SDMA_REAL(lseek)(fd, static_cast<off_t>(tag), SEEK_SET);
  return fd;
}

std::byte* Arena::view(int fd, std::uint64_t offset, std::uint64_t bytes) noexcept {
  // Not the interposed mmap, which is for the program's descriptors.
  void* p =
      machine_mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, static_cast<off_t>(offset));
  if (p == MAP_FAILED) {
    if (fd >= 0) report_refusal("mmap", bytes);  // without the arena, that is said already
    return nullptr;
  }
  ::madvise(p, bytes, MADV_DONTFORK);
  ::madvise(p, bytes, MADV_DONTDUMP);
  return static_cast<std::byte*>(p);
}

void Arena::drop(std::byte* view, std::uint64_t bytes) noexcept { machine_munmap(view, bytes); }

/// The piece that contains an offset, or the end.
Arena::Pieces::iterator Arena::piece_of(std::uint64_t offset) noexcept {
  auto it = pieces_.upper_bound(offset);
  if (it == pieces_.begin()) return pieces_.end();
  --it;
  return offset - it->first < it->second.bytes ? it : pieces_.end();
}

void Arena::leave_piece(std::uint64_t offset) noexcept {
  const auto it = piece_of(offset);
  if (it == pieces_.end() || --it->second.users != 0) return;
  if (begin_[gpu_at(offset)] == it->first) return;  // the next object will be in it
  drop(it->second.view, it->second.bytes);
  pieces_.erase(it);
}

/// Begins another piece of a GPU. What is left of the one before it is not used.
bool Arena::make_piece(std::uint32_t gpu, std::uint64_t bytes) {
  const auto size = std::max(bytes, kPieceBytes), end = next_[gpu];
  const auto least = std::max(std::uint64_t{gpu} << kGpuShift, kFirstObject);
  if (end - least < size) return errno = ENOMEM, false;
  const auto at = pieces_.try_emplace(end - size, Piece{.bytes = size}).first;
  at->second.view = view(fd_, end - size, size);
  if (!at->second.view) return pieces_.erase(at), false;
  const auto before = pieces_.find(begin_[gpu]);
  if (before != pieces_.end() && before->second.users == 0) {
    drop(before->second.view, before->second.bytes);
    pieces_.erase(before);
  }
  begin_[gpu] = end - size;
  return true;
}

std::uint64_t Arena::allocate(std::uint32_t gpu, std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  sweep();
  if (!valid()) return errno = EBADF, 0;
  if (next_[gpu] - begin_[gpu] < bytes && !make_piece(gpu, bytes)) return 0;
  const auto offset = next_[gpu] - bytes;
  objects_.try_emplace(offset, Live{.bytes = bytes});
  next_[gpu] = offset;
  ++piece_of(offset)->second.users;
  return offset;
}

/// Gives the bytes of a released object back to the machine.
void Arena::free_bytes(Lives::iterator it) noexcept {
  const auto& [offset, live] = *it;
  if (live.slot != 0) (void)write_record(fd_, {.slot = live.slot});
  if (valid())
    ::fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                static_cast<off_t>(live.bytes));
  leave_piece(offset);
}

void Arena::release(std::uint64_t offset) noexcept {
  const std::lock_guard lock(mutex_);
  auto gone = objects_.extract(offset);
  if (gone.empty()) return;
  kept_bytes_ += gone.mapped().bytes;
  kept_.insert(std::move(gone));
}

/// Marks the objects of which the program has a mapping, which it often removes only after it has freed them.
void Arena::mark_mapped() noexcept {
  const detail::Descriptor maps(SDMA_REAL(open)("/proc/self/maps", O_RDONLY | O_CLOEXEC));
  for (auto& [offset, live] : kept_) live.mapped = !maps;  // what was not searched is not freed
  detail::each_mapping(maps.get(), [&](const detail::MapsLine& m) {
    const auto ours = [&](const auto& p) {
      return m.from - reinterpret_cast<std::uintptr_t>(p.second.view) < p.second.bytes;
    };
    if (m.inode != inode_ || std::any_of(pieces_.begin(), pieces_.end(), ours)) return true;
    auto it = kept_.lower_bound(m.offset);
    if (it != kept_.begin() && m.offset - std::prev(it)->first < std::prev(it)->second.bytes) --it;
    for (; it != kept_.end() && it->first < m.offset + (m.to - m.from); ++it) it->second.mapped = true;
    return true;
  });
}

/// Frees the objects that nothing holds any more, once there are enough of them to be worth the search.
void Arena::sweep() noexcept {
  constexpr std::uint64_t kEnough = 16 << 20, kEach = kEnough / 1024;
  const auto weight = [&] { return kept_bytes_ + kept_.size() * kEach; };
  if (weight() < patience_ + kEnough) return;
  mark_mapped();
  for (auto it = kept_.begin(); it != kept_.end();) {
    const auto& live = it->second;
    if (live.mapped || (live.slot != 0 && is_held(fd_, live.slot))) {
      ++it;
      continue;
    }
    kept_bytes_ -= live.bytes;
    free_bytes(it);
    it = kept_.erase(it);
  }
  patience_ = weight();
}

bool Arena::take_back(std::uint64_t offset) noexcept {
  const std::lock_guard lock(mutex_);
  auto back = kept_.extract(offset);
  if (back.empty()) return false;
  kept_bytes_ -= back.mapped().bytes;
  objects_.insert(std::move(back));
  return true;
}

std::byte* Arena::at(std::uint64_t offset) const noexcept {
  const std::lock_guard lock(mutex_);
  const auto it = const_cast<Arena*>(this)->piece_of(offset);
  return it->second.view + (offset - it->first);
}

std::uint32_t Arena::record(std::uint64_t offset, const ObjectInfo& o) noexcept {
  const std::lock_guard lock(mutex_);
  const auto it = objects_.find(offset);
  if (it == objects_.end()) return 0;
  if (it->second.slot != 0) return it->second.slot;
  auto made = o;
  made.slot = slots_ + 1;
  made.nonce = static_cast<std::uint32_t>(host_ticks()) | 1;
  if (!valid() || !write_record(fd_, made)) return 0;
  ++slots_;
  return it->second.slot = made.slot;
}

std::shared_ptr<const Source> Arena::source(const char* link, ino_t inode) {
  const std::lock_guard lock(mutex_);
  auto& known = sources_[inode];
  if (auto s = known.lock()) return s;
  struct stat s {};
  const int fd = away(SDMA_REAL(open)(link, O_RDWR | O_CLOEXEC));
  if (fd < 0) return nullptr;
  if (SDMA_REAL(fstat)(fd, &s) != 0 || s.st_ino != inode) return ::close(fd), nullptr;
  auto made = std::make_shared<const Source>(fd, inode);
  known = made;
  return made;
}

std::uint64_t Arena::import(std::shared_ptr<const Source> source, std::uint64_t from, std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  const auto offset = next_import_;
  imports_.try_emplace(offset, Import{.bytes = bytes, .from = from, .source = std::move(source)});
  next_import_ += bytes;
  return offset;
}

void Arena::forget(std::uint64_t offset) noexcept {
  const std::lock_guard lock(mutex_);
  imports_.erase(offset);
}

std::optional<Place> Arena::find(std::uint64_t offset, std::uint64_t bytes) const noexcept {
  if (offset == Events::kEventsOffset && bytes <= kEventPageBytes) offset = kEventPage;
  if (offset < kRecords) {
    if (fd_ < 0 || bytes > kRecords - offset) return std::nullopt;
    return Place{fd_, offset};
  }
  const std::lock_guard lock(mutex_);
  const auto in = [&](const auto& all) {
    auto it = all.upper_bound(offset);
    if (it != all.begin()) --it;
    else it = all.end();
    return it != all.end() && offset - it->first < it->second.bytes && bytes <= it->second.bytes - (offset - it->first)
               ? it
               : all.end();
  };
  if (offset >= kFirstImport) {
    const auto it = in(imports_);
    if (it == imports_.end()) return std::nullopt;
    return Place{it->second.source->fd, it->second.from + (offset - it->first)};
  }
  if (!valid() || in(objects_) == objects_.end()) return std::nullopt;
  return Place{fd_, offset};
}

FdLink::FdLink(int fd) noexcept { std::snprintf(path, sizeof path, "/proc/self/fd/%d", fd); }

std::string_view memfd_name(const char* link, std::span<char> room) noexcept {
  constexpr std::string_view kBefore = "/memfd:";
  const auto length = SDMA_REAL(readlink)(link, room.data(), room.size());
  const std::string_view target(room.data(), length > 0 ? static_cast<std::size_t>(length) : 0);
  return target.starts_with(kBefore) ? target.substr(kBefore.size(), target.find(' ') - kBefore.size()) : "";
}

std::optional<Descriptor> descriptor_of(int fd, const Arena* ours) noexcept {
  struct stat s {};
  // A memfd is a regular file without links, unlike almost every other file.
  if (fd < 0 || SDMA_REAL(fstat)(fd, &s) != 0 || !S_ISREG(s.st_mode) || s.st_nlink != 0) return std::nullopt;
  const bool own = ours && ours->owns(s.st_dev, s.st_ino);
  char room[64];
  if (!own && memfd_name(FdLink(fd).path, room) != kArenaName) return std::nullopt;
  const auto at = SDMA_REAL(lseek)(fd, 0, SEEK_CUR);
  if (at < 0 || (static_cast<std::uint64_t>(at) & kTag) == 0) return std::nullopt;
  return Descriptor{.tag = static_cast<std::uint64_t>(at), .ours = own};
}

}  // namespace sdma::emulator
