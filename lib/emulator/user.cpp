#include "user.hpp"

#include <sys/uio.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>

namespace sdma::emulator {
namespace {

/// The kernel copies between two places of this process and answers EFAULT. Where a container forbids that, plainly.
template <class Fn> bool copy(Fn&& call, void* to, const void* from, std::size_t bytes) noexcept {
  const ssize_t n = call();
  if (n >= 0) return static_cast<std::size_t>(n) == bytes;
  if (errno != ENOSYS && errno != EPERM) return false;
  std::memcpy(to, from, bytes);
  return true;
}

}  // namespace

bool from_user(void* to, std::uint64_t from, std::size_t bytes) noexcept {
  if (bytes == 0) return true;
  if (!plausible(from, bytes)) return false;
  const iovec mine{to, bytes}, theirs{reinterpret_cast<void*>(from), bytes};
  return copy([&] { return ::process_vm_readv(::getpid(), &mine, 1, &theirs, 1, 0); }, to, theirs.iov_base, bytes);
}

bool to_user(std::uint64_t to, const void* from, std::size_t bytes) noexcept {
  if (bytes == 0) return true;
  if (!plausible(to, bytes)) return false;
  const iovec mine{const_cast<void*>(from), bytes}, theirs{reinterpret_cast<void*>(to), bytes};
  return copy([&] { return ::process_vm_writev(::getpid(), &mine, 1, &theirs, 1, 0); }, theirs.iov_base, from, bytes);
}

}  // namespace sdma::emulator
