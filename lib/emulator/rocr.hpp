// SPDX-License-Identifier: MIT
#pragma once
// The ROCr that this process has loaded, and what is in it.
//
//   const auto rocr = search_rocr(bytes);
//   if (rocr.file && !rocr.found) ...            // ROCr is loaded, and does not contain these bytes
//
// Any thread. No allocation.
#include <link.h>
#include <cstddef>
#include <cstring>
#include <span>

namespace sdma::emulator {

struct RocrSearch {
  std::span<const std::byte> bytes{};
  const char* file{};  ///< null: no ROCr is loaded
  bool found{};        ///< its memory contains the bytes
};

inline RocrSearch search_rocr(std::span<const std::byte> bytes) noexcept {
  RocrSearch search{.bytes = bytes};
  ::dl_iterate_phdr(
      [](dl_phdr_info* i, std::size_t, void* p) {
        auto& s = *static_cast<RocrSearch*>(p);
        if (!i->dlpi_name || !std::strstr(i->dlpi_name, "libhsa-runtime64.so")) return 0;
        s.file = i->dlpi_name;
        for (int n = 0; n < i->dlpi_phnum && !s.found; ++n) {
          const auto& h = i->dlpi_phdr[n];
          if (h.p_type != PT_LOAD || (h.p_flags & PF_R) == 0) continue;
          const auto* at = reinterpret_cast<const void*>(i->dlpi_addr + h.p_vaddr);
          s.found = ::memmem(at, h.p_filesz, s.bytes.data(), s.bytes.size()) != nullptr;
        }
        return 1;
      },
      &search);
  return search;
}

}  // namespace sdma::emulator
