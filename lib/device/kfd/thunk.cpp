// SPDX-License-Identifier: MIT
#include "thunk.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <map>
#include <memory>
#include <mutex>

namespace sdma::inline v0::detail::thunk {

const char* message(Status s) noexcept {
  switch (s) {
    case kSuccess: return "no error";
    case 1: return "the driver refused";
    case 2: return "library and driver are incompatible";
    case 3: return "a parameter is invalid";
    case 4: return "a handle is invalid";
    case 5: return "there is no such node";
    case kNoMemory: return "no memory";
    case kTooSmall: return "a buffer is too small";
    case 10: return "not implemented";
    case 11: return "not supported on this node";
    case 12: return "not available right now";
    case 13: return "out of resources";
    case 20: return "the driver is not open";
    case 21: return "the driver does not answer";
    case kAlreadyOpened: return "the driver is already open";
    case 30: return "the wait failed";
    case 31: return "the wait timed out";
    case 37: return "an address is not aligned";
  }
  return "an unknown status";
}

const char* take_functions(void* library, Thunk& t) {
  const char* lacking = nullptr;
  const auto take = [&](auto& to, const char* symbol) {
    to = reinterpret_cast<std::remove_reference_t<decltype(to)>>(dlsym(library, symbol));
    if (!to) lacking = symbol;
  };
  take(t.create_queue, "hsaKmtCreateQueueExt");
  take(t.share, "hsaKmtShareMemory");
  take(t.open_shared, "hsaKmtRegisterSharedHandle");
  take(t.close_shared, "hsaKmtDeregisterMemory");
  lacking = nullptr;
  take(t.open, "hsaKmtOpenKFD");
  take(t.close, "hsaKmtCloseKFD");
  take(t.version, "hsaKmtGetVersion");
  take(t.acquire_system, "hsaKmtAcquireSystemProperties");
  take(t.node, "hsaKmtGetNodeProperties");
  take(t.memory, "hsaKmtGetNodeMemoryProperties");
  take(t.allocate, "hsaKmtAllocMemory");
  take(t.free, "hsaKmtFreeMemory");
  take(t.map, "hsaKmtMapMemoryToGPUNodes");
  take(t.unmap, "hsaKmtUnmapMemoryToGPU");
  take(t.create_event, "hsaKmtCreateEvent");
  take(t.destroy_event, "hsaKmtDestroyEvent");
  take(t.destroy_queue, "hsaKmtDestroyQueue");
  take(t.update_queue, "hsaKmtUpdateQueue");
  return lacking;
}

Result<const Thunk*, Diagnostic> load_thunk(const std::string& name) {
  static std::mutex mutex;
  static auto* const loaded = new std::map<std::string, std::unique_ptr<Thunk>>;  // never destroyed, like the library
  const std::lock_guard lock(mutex);
  if (const auto it = loaded->find(name); it != loaded->end()) return it->second.get();

  constexpr const char* kHint =
      "install it (Debian: libhsakmt1; ROCm: hsakmt or rocr-runtime), or give its path in KfdOptions::libhsakmt";
  void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!library) {
    const char* why = dlerror();
    return Diagnostic{
        .where = name, .message = std::string("cannot be loaded: ") + (why ? why : "no reason given"), .hint = kHint};
  }
  auto t = std::make_unique<Thunk>();
  if (const char* lacking = take_functions(library, *t)) {
    dlclose(library);
    return Diagnostic{.where = name,
                      .message = fmt::format("does not export {}, so it may not be libhsakmt", lacking),
                      .hint = kHint};
  }
  return loaded->emplace(name, std::move(t)).first->second.get();
}

}  // namespace sdma::inline v0::detail::thunk
