// SPDX-License-Identifier: MIT
#include "hsa.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>

#include <string_view>

namespace sdma { inline namespace v0_3 { namespace detail::rocr {
namespace {

constexpr const char* kHint =
    "install ROCr (Debian: libhsa-runtime64-1; ROCm: hsa-rocr), or give its path in RocrOptions::libhsa";

}  // namespace

const char* Hsa::message(Status s) const noexcept {
  const char* text = nullptr;
  return status_string(s, &text) == kSuccess && text ? text : "an unknown status of ROCr";
}

std::string loaded() {
  std::string file;
  ::dl_iterate_phdr(
      [](dl_phdr_info* i, std::size_t, void* out) {
        const std::string_view name = i->dlpi_name ? i->dlpi_name : "";
        if (name.substr(name.rfind('/') + 1).rfind("libhsa-runtime64", 0) != 0) return 0;
        *static_cast<std::string*>(out) = name;
        return 1;
      },
      &file);
  return file;
}

void* address(const std::string& file, const char* symbol) noexcept {
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_NOLOAD);
  if (!library) return nullptr;
  void* at = dlsym(library, symbol);
  dlclose(library);  // it was loaded before, and stays
  return at;
}

Result<const Hsa*, Diagnostic> load(const std::string& wanted) {
  const auto here = wanted.empty() ? loaded() : std::string();
  const auto name = !wanted.empty() ? wanted : !here.empty() ? here : "libhsa-runtime64.so.1";
  return load_once<Hsa>(name, kHint, [&](Hsa& h) -> std::string {
    h.name = name;
    if (const auto* lacking = h.library.lacking())
      return fmt::format("does not export {}, so it may not be ROCr", lacking);
    if (!h.queue_info) h.create_queues = nullptr;
    if (!h.destroy_earlier || !h.earlier_info) h.create_earlier = nullptr;
    if (!h.open_shared || !h.close_shared) h.share = nullptr;
    return "";
  });
}

}}}  // namespace sdma::v0_3::detail::rocr
