// SPDX-License-Identifier: MIT
#include "arena.hpp"

#include "../real.hpp"

#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cstdio>

namespace sdma::emulator {
Arena::Arena() {
  if (!size_permitted(kFirstObject)) return;
  fd_ = away(::memfd_create(kArenaName, MFD_CLOEXEC));
  if (fd_ < 0) return;
  struct stat s {};
  if (::ftruncate(fd_, static_cast<off_t>(kFirstObject)) != 0 || SDMA_REAL(fstat)(fd_, &s) != 0) {
    ::close(fd_);
    fd_ = -1;
    return;
  }
  dev_ = s.st_dev;
  inode_ = s.st_ino;
}

Arena::~Arena() { abandon(); }

void Arena::abandon() noexcept {
  for (const auto& [offset, file] : files_) file.close();
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

bool Arena::File::own(int descriptor) noexcept {
  struct stat s {};
  fd = descriptor;
  if (fd < 0 || SDMA_REAL(fstat)(fd, &s) != 0) return false;
  dev = s.st_dev;
  inode = s.st_ino;
  return true;
}

bool Arena::File::valid() const noexcept {
  struct stat s {};
  return SDMA_REAL(fstat)(fd, &s) == 0 && s.st_dev == dev && s.st_ino == inode;
}

void Arena::File::close() const noexcept {
  if (valid()) ::close(fd);
}

int Arena::open_node(std::uint64_t tag, int flags) const noexcept {
  const int fd = SDMA_REAL(open)(FdLink(fd_).path, kOnlyIdentity | (flags & (O_CLOEXEC | O_NONBLOCK)));
  if (fd >= 0) SDMA_REAL(lseek)(fd, static_cast<off_t>(tag), SEEK_SET);
  return fd;
}

std::byte* Arena::view(std::uint64_t offset, std::uint64_t bytes) const noexcept {
  const auto place = find(offset, bytes);
  if (!place) return nullptr;
  // Not the interposed mmap, which is for the program's descriptors.
  void* p = machine_mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, place->fd,
                         static_cast<off_t>(place->offset));
  if (p == MAP_FAILED) return nullptr;
  ::madvise(p, bytes, MADV_DONTFORK);
  return static_cast<std::byte*>(p);
}

void Arena::drop(std::byte* view, std::uint64_t bytes) noexcept { ::munmap(view, bytes); }

void Arena::remove(std::uint64_t offset) noexcept {
  const std::lock_guard lock(files_mutex_);
  const auto it = files_.find(offset);
  if (it == files_.end()) return;
  it->second.close();
  files_.erase(it);
}

std::optional<Place> Arena::find(std::uint64_t offset, std::uint64_t bytes) const noexcept {
  if (offset < kFirstObject) {
    if (fd_ < 0 || bytes > kFirstObject - offset) return std::nullopt;
    return Place{fd_, offset};
  }
  const std::lock_guard lock(files_mutex_);
  auto it = files_.upper_bound(offset);
  if (it == files_.begin()) return std::nullopt;
  --it;
  const auto& [begin, file] = *it;
  const auto end = page_up(file.bytes);
  if (offset - begin >= end || bytes > end - (offset - begin) || !file.valid()) return std::nullopt;
  return Place{file.fd, offset - begin};
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
  if (!own) {
    if (object_of(fd)) return Descriptor{.tag = kDmabuf};
    char room[64];
    if (memfd_name(FdLink(fd).path, room) != kArenaName) return std::nullopt;
  }
  const auto at = SDMA_REAL(lseek)(fd, 0, SEEK_CUR);
  return Descriptor{.tag = at < 0 ? 0 : static_cast<std::uint64_t>(at), .ours = own};
}

}  // namespace sdma::emulator
