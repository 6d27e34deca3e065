#include "arena.hpp"

#include "../real.hpp"

#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cstdio>

namespace sdma::emulator {
namespace {

/// The name of our memfds in /proc/PID/fd, which identifies a descriptor from another process.
constexpr const char* kMemfdName = "sdma-kfd";
constexpr std::uint64_t kPassed = std::uint64_t{63} << 32;
constexpr off_t passed_at(std::uint32_t number) noexcept {
  return static_cast<off_t>(kPassed + number * std::uint64_t{sizeof(Passed)});
}

}  // namespace

bool read_passed(int arena, std::uint32_t number, Passed* out) noexcept {
  return ::pread(arena, out, sizeof *out, passed_at(number)) == sizeof *out && out->nonce != 0;
}

bool write_passed(int arena, std::uint32_t number, const Passed& p) noexcept {
  return ::pwrite(arena, &p, sizeof p, passed_at(number)) == sizeof p;
}

Arena::Arena() {
  constexpr off_t kBytes = off_t{1} << 56;
  const int low = ::memfd_create(kMemfdName, MFD_CLOEXEC);
  if (low < 0) return;
  // A high number, because some programs rely on the next free number or close all small ones.
  fd_ = SDMA_REAL(fcntl)(low, F_DUPFD_CLOEXEC, 900);
  if (fd_ < 0) fd_ = low;
  else ::close(low);
  struct stat s {};
  if (::ftruncate(fd_, kBytes) != 0 || SDMA_REAL(fstat)(fd_, &s) != 0) {
    ::close(fd_);
    fd_ = -1;
    return;
  }
  dev_ = s.st_dev;
  inode_ = s.st_ino;
}

Arena::~Arena() { abandon(); }

void Arena::abandon() noexcept {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

int Arena::open_node(std::uint64_t tag, int flags) const noexcept {
  const int fd = SDMA_REAL(open)(FdLink(fd_).path, flags & (O_ACCMODE | O_CLOEXEC | O_NONBLOCK));
  if (fd >= 0) SDMA_REAL(lseek)(fd, static_cast<off_t>(tag), SEEK_SET);
  return fd;
}

std::uint64_t Arena::reserve(std::uint64_t bytes) noexcept {
  return next_.fetch_add(page_up(bytes), std::memory_order_relaxed);
}

std::byte* Arena::view(std::uint64_t offset, std::uint64_t bytes) const noexcept {
  return view_of({fd_, offset}, bytes);
}

std::byte* Arena::view_of(Place at, std::uint64_t bytes) noexcept {
  // Not the interposed mmap, which treats offsets of a DMABUF as offsets in the object.
  void* p = machine_mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, at.fd,
                         static_cast<off_t>(at.offset));
  if (p == MAP_FAILED) return nullptr;
  ::madvise(p, bytes, MADV_DONTFORK);
  return static_cast<std::byte*>(p);
}

void Arena::drop(std::byte* view, std::uint64_t bytes) noexcept { ::munmap(view, bytes); }

void Arena::punch(std::uint64_t offset, std::uint64_t bytes) const noexcept {
  ::fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset), static_cast<off_t>(bytes));
}

void Arena::stand_for(std::uint64_t offset, std::uint64_t bytes, Place place) {
  const std::lock_guard lock(stands_mutex_);
  stands_[offset] = {bytes, place};
}

void Arena::stands_no_more(std::uint64_t offset) noexcept {
  const std::lock_guard lock(stands_mutex_);
  stands_.erase(offset);
}

std::optional<Place> Arena::stands_for(std::uint64_t offset) const noexcept {
  const std::lock_guard lock(stands_mutex_);
  auto it = stands_.upper_bound(offset);
  if (it == stands_.begin()) return {};
  --it;
  if (offset - it->first >= it->second.bytes) return {};
  return Place{it->second.place.fd, it->second.place.offset + (offset - it->first)};
}

FdLink::FdLink(int fd) noexcept { std::snprintf(path, sizeof path, "/proc/self/fd/%d", fd); }

std::string_view memfd_name(const char* link, std::span<char> room) noexcept {
  constexpr std::string_view kBefore = "/memfd:";
  const auto length = SDMA_REAL(readlink)(link, room.data(), room.size());
  const std::string_view target(room.data(), length > 0 ? static_cast<std::size_t>(length) : 0);
  return target.starts_with(kBefore) ? target.substr(kBefore.size(), target.find(' ') - kBefore.size()) : "";
}

bool names_arena(const char* link) noexcept {
  char room[64];
  return memfd_name(link, room) == kMemfdName;
}

std::optional<Descriptor> descriptor_of(int fd, const Arena* ours) noexcept {
  struct stat s {};
  // Our memfd is a regular file without links, unlike almost every other file.
  if (fd < 0 || SDMA_REAL(fstat)(fd, &s) != 0 || !S_ISREG(s.st_mode) || s.st_nlink != 0) return std::nullopt;
  const bool own = ours && ours->owns(s.st_dev, s.st_ino);
  if (!own && !names_arena(FdLink(fd).path)) return std::nullopt;
  const auto at = SDMA_REAL(lseek)(fd, 0, SEEK_CUR);
  return Descriptor{.tag = at < 0 ? 0 : static_cast<std::uint64_t>(at), .ours = own};
}

}  // namespace sdma::emulator
