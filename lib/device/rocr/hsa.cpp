// SPDX-License-Identifier: MIT
#include "hsa.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>

#include <map>
#include <memory>
#include <mutex>
#include <string_view>

namespace sdma::inline v0::detail::rocr {
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
  static std::mutex mutex;
  static auto* const all = new std::map<std::string, std::unique_ptr<Hsa>>;  // never destroyed, like the library
  const auto here = wanted.empty() ? loaded() : std::string();
  const auto name = !wanted.empty() ? wanted : !here.empty() ? here : "libhsa-runtime64.so.1";
  const std::lock_guard lock(mutex);
  if (const auto it = all->find(name); it != all->end()) return it->second.get();

  void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!library) {
    const char* why = dlerror();
    return Diagnostic{
        .where = name, .message = fmt::format("cannot be loaded: {}", why ? why : "no reason given"), .hint = kHint};
  }
  auto h = std::make_unique<Hsa>();
  h->name = name;
  const char* lacking = nullptr;
  const auto may = [&](auto& to, const char* symbol) {
    to = reinterpret_cast<std::remove_reference_t<decltype(to)>>(dlsym(library, symbol));
    return to != nullptr;
  };
  const auto take = [&](auto& to, const char* symbol) {
    if (!may(to, symbol)) lacking = symbol;
  };
  take(h->init, "hsa_init");
  take(h->shut_down, "hsa_shut_down");
  take(h->status_string, "hsa_status_string");
  take(h->system_info, "hsa_system_get_info");
  take(h->iterate_agents, "hsa_iterate_agents");
  take(h->agent_info, "hsa_agent_get_info");
  take(h->iterate_pools, "hsa_amd_agent_iterate_memory_pools");
  take(h->pool_info, "hsa_amd_memory_pool_get_info");
  take(h->agent_pool_info, "hsa_amd_agent_memory_pool_get_info");
  take(h->allocate, "hsa_amd_memory_pool_allocate");
  take(h->free, "hsa_amd_memory_pool_free");
  take(h->allow_access, "hsa_amd_agents_allow_access");
  take(h->lock, "hsa_amd_memory_lock");
  take(h->unlock, "hsa_amd_memory_unlock");
  take(h->pointer_info, "hsa_amd_pointer_info");
  take(h->create_signal, "hsa_signal_create");
  take(h->destroy_signal, "hsa_signal_destroy");
  take(h->on_system_event, "hsa_amd_register_system_event_handler");
  take(h->destroy_queue, "hsa_queue_destroy");
  take(h->inactivate_queue, "hsa_queue_inactivate");
  if (lacking)
    return Diagnostic{
        .where = name, .message = fmt::format("does not export {}, so it may not be ROCr", lacking), .hint = kHint};
  if (!may(h->create_queues, "hsa_amd_queue_create") || !may(h->queue_info, "hsa_amd_queue_get_info"))
    h->create_queues = nullptr;
  if (!may(h->create_earlier, "hsa_amd_sdma_queue_create") || !may(h->destroy_earlier, "hsa_amd_sdma_queue_destroy") ||
      !may(h->earlier_info, "hsa_amd_sdma_queue_get_info"))
    h->create_earlier = nullptr;
  if (!may(h->share, "hsa_amd_ipc_memory_create") || !may(h->open_shared, "hsa_amd_ipc_memory_attach") ||
      !may(h->close_shared, "hsa_amd_ipc_memory_detach"))
    h->share = nullptr;
  may(h->preferred_engines, "hsa_amd_memory_get_preferred_copy_engine");
  h->has_thunk = thunk::take_functions(library, h->thunk) == nullptr;
  return all->emplace(name, std::move(h)).first->second.get();
}

}  // namespace sdma::inline v0::detail::rocr
