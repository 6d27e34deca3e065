// SPDX-License-Identifier: MIT
#pragma once
// A kernel of a loaded code object, by its name. ROCr copies the loadable segments of a code object to GPU memory, and
// the first of them contains the ELF header, the dynamic symbols and the metadata note.
//
//   base      ELF header   program headers   note   .dynsym   .hash   .dynstr   kernel descriptors   code ...
//             ^ found page by page before the address             NAME.kd, NAME ^
//
//   char room[...]; auto name = kernel_at(kernel_object, reader, room);  // "__amd_rocclr_copyBuffer"; empty: not found
//   Arguments args; if (arguments_of(kernel_object, name, reader, args)) args.find("size") ...
//
// The memory belongs to the program: it may contain anything and change at any time. Every read is bounded, and what is
// found is copied. Call it inside a Section of the reader. One thread; no allocation. Nothing throws; whatever is not
// as expected is "not found".
#include "../../engine/address_space.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace sdma::emulator {

inline constexpr std::size_t kSymbolBytes = 512;  ///< longer names are cut

/// The name of the kernel whose descriptor or code begins at `va`, without ".kd".
struct KernelName {
  std::array<char, kSymbolBytes> text{};
  std::size_t size{};
  std::string_view view() const noexcept { return {text.data(), size}; }
  explicit operator bool() const noexcept { return size != 0; }
};
KernelName kernel_at(GpuVa va, AddressSpace::Reader&) noexcept;

/// The arguments of a kernel, as the metadata describes them.
struct Arguments {
  static constexpr std::size_t kMost = 48;
  struct Argument {
    std::array<char, 32> name{};  ///< "": hidden, or longer than any that is known
    std::uint32_t offset{}, bytes{};
    bool hidden{}, offset_of_grid{};  ///< passed by the runtime; one of hidden_global_offset_x, y and z
    std::string_view view() const noexcept { return name.data(); }
  };
  std::array<Argument, kMost> all{};
  std::size_t count{};
  std::uint64_t bytes{};  ///< of the whole segment
};
/// nullopt: the code object has no metadata for this kernel, or more arguments than kMost.
std::optional<Arguments> arguments_of(GpuVa kernel_object, std::string_view name, AddressSpace::Reader&) noexcept;

}  // namespace sdma::emulator
