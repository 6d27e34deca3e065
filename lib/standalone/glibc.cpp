// SPDX-License-Identifier: MIT
// What the libraries of a newer compiler expect of the C library, and an older glibc lacks. libgcc finds the tables of
// exceptions with _dl_find_object (glibc 2.35), and libstdc++ asks __libc_single_threaded (glibc 2.32) whether it needs
// atomic operations. Both are hidden, so that nothing else in a process finds them.
#include <dlfcn.h>
#include <link.h>
#include <sys/single_threaded.h>

#include <cstdint>

namespace {

/// Which object has the address, and where it and its table of exceptions lie.
struct Search {
  std::uintptr_t address;
  dl_find_object* result;
};

int examine(dl_phdr_info* object, std::size_t, void* argument) {
  const auto& search = *static_cast<Search*>(argument);
  std::uintptr_t begin = UINTPTR_MAX, end = 0, table = 0;
  bool found = false;
  for (std::uint16_t i = 0; i < object->dlpi_phnum; ++i) {
    const auto& part = object->dlpi_phdr[i];
    const auto at = object->dlpi_addr + part.p_vaddr;
    if (part.p_type == PT_GNU_EH_FRAME) table = at;
    if (part.p_type != PT_LOAD) continue;
    begin = at < begin ? at : begin;
    end = at + part.p_memsz > end ? at + part.p_memsz : end;
    found = found || (search.address >= at && search.address - at < part.p_memsz);
  }
  if (!found) return 0;
  if (table == 0) return -1;
  *search.result = {};
  search.result->dlfo_map_start = reinterpret_cast<void*>(begin);
  search.result->dlfo_map_end = reinterpret_cast<void*>(end);
  search.result->dlfo_eh_frame = reinterpret_cast<void*>(table);
  return 1;
}

}  // namespace

extern "C" {

/// 0 with the object of the address; -1 if no object has it, or if the object has no table. dlfo_link_map, which libgcc
/// does not read, remains null.
[[gnu::visibility("hidden")]] int _dl_find_object(void* address, dl_find_object* result) noexcept {
  Search search{.address = reinterpret_cast<std::uintptr_t>(address), .result = result};
  return ::dl_iterate_phdr(examine, &search) > 0 ? 0 : -1;
}

/// Always false, which is slower and never wrong: this glibc does not say when the second thread begins.
[[gnu::visibility("hidden")]] char __libc_single_threaded = 0;
}
