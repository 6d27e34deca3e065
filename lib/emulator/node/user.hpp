// SPDX-License-Identifier: MIT
#pragma once
// Access to the program's memory as in a kernel: copies return EFAULT where a plain access would kill the program.
//
//   Args args;
//   if (!from_user(&args, pointer, sizeof args)) return EFAULT;
//
// Any thread may call these functions.
#include <cstddef>
#include <cstdint>

namespace sdma::emulator {

bool from_user(void* to, std::uint64_t from, std::size_t bytes) noexcept;
bool to_user(std::uint64_t to, const void* from, std::size_t bytes) noexcept;
/// Checks pages that the kernel would pin. Returns 0; EFAULT if a page is not mapped or not readable; EPERM if it must
/// be writable and is not; ENOMEM. Later changes of the program's mappings are not noticed.
int check_pages(std::uint64_t address, std::uint64_t bytes, bool written);
/// True if this can be an address of a program.
constexpr bool plausible(std::uint64_t address, std::uint64_t bytes) noexcept {
  constexpr std::uint64_t kEnd = std::uint64_t{1} << 47;
  return address < kEnd && bytes <= kEnd - address;
}

}  // namespace sdma::emulator
