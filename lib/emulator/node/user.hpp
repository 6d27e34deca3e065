#pragma once
// The program's memory as a kernel sees it: copies that answer EFAULT where a plain access would kill the program.
//
//   Args args;
//   if (!from_user(&args, pointer, sizeof args)) return EFAULT;
//
// Any thread.
#include <cstddef>
#include <cstdint>

namespace sdma::emulator {

bool from_user(void* to, std::uint64_t from, std::size_t bytes) noexcept;
bool to_user(std::uint64_t to, const void* from, std::size_t bytes) noexcept;
/// Pins pages as far as a look can: 0; EFAULT where something is not mapped or not readable; EPERM where it must be written and
/// cannot. What the program unmaps later is not noticed.
int check_pages(std::uint64_t address, std::uint64_t bytes, bool written);
/// Could this be an address of a program at all?
constexpr bool plausible(std::uint64_t address, std::uint64_t bytes) noexcept {
  constexpr std::uint64_t kEnd = std::uint64_t{1} << 47;
  return address < kEnd && bytes <= kEnd - address;
}

}  // namespace sdma::emulator
