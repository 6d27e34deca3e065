// SPDX-License-Identifier: MIT
#include "interface.hpp"

#include "model.hpp"

#include <cstdio>
#include <exception>

struct hsakmt_model {
  sdma::emulator::Model model{};
};

namespace {

/// The caller is C, so no exception may reach it. Null after one.
template <class Fn> auto guarded(Fn&& fn) noexcept -> decltype(fn()) {
  try {
    return fn();
  } catch (const std::exception& e) {
    std::fprintf(stderr, "sdma model: %s\n", e.what());
    return nullptr;
  }
}

template <class Fn> void reported(Fn&& fn) noexcept {
  (void)guarded([&]() -> const char* {
    const char* error = fn();
    if (error) std::fprintf(stderr, "sdma model: %s\n", error);
    return error;
  });
}

const hsakmt_model_functions functions{
    .version_major = 0,
    .version_minor = 4,
    .create = [] { return guarded([] { return new hsakmt_model; }); },
    .destroy = [](hsakmt_model* m) { delete m; },
    .set_global_aperture =
        [](hsakmt_model* m, void* base, std::uint64_t size) {
          reported([&] { return m->model.set_aperture(static_cast<std::byte*>(base), size); });
        },
    .alloced_memory = [](hsakmt_model* m, void* address, std::uint64_t size,
                         std::uint32_t) { reported([&] { return m->model.add_memory(address, size); }); },
    .freed_memory = [](hsakmt_model* m, void* address,
                       std::uint64_t) { reported([&] { return m->model.remove_memory(address); }); },
    // The engine needs neither: set_set_event replaces the first, and sDMA packets never wait for an event.
    .set_notify_event = [](hsakmt_model*, void (*)(void*), void*) {},
    .set_wait_event = [](hsakmt_model*, void (*)(void*, std::uint64_t, std::uint64_t), void*) {},
    .register_queue =
        [](hsakmt_model* m, hsakmt_model_queue_info* i) {
          hsakmt_model_queue* q = nullptr;
          reported([&] { return m->model.add_queue(*i, q); });
          return q;
        },
    .set_set_event = [](hsakmt_model* m, hsakmt_model_set_event_fn fn, void* data) { m->model.on_event(fn, data); },
    .destroy_queue = [](hsakmt_model* m, hsakmt_model_queue* q) { m->model.remove_queue(q); },
};

}  // namespace

extern "C" [[gnu::visibility("default")]] const hsakmt_model_functions* get_hsakmt_model_functions() {
  return &functions;
}
