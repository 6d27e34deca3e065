#include "interface.hpp"

#include "model.hpp"

#include <cerrno>
#include <exception>

using sdma::emulator::Model;

struct hsakmt_model {
  Model model{};
};

namespace {

/// The caller is C, so no exception may reach it.
template <class Fn> int guarded(Fn&& fn) noexcept {
  try {
    return fn();
  } catch (const std::exception&) {
    return ENOMEM;
  }
}

const hsakmt_model_functions functions{
    .version_major = 0,
    .version_minor = 4,
    .create = []() -> hsakmt_model* {
      hsakmt_model* m = nullptr;
      (void)guarded([&] { return m = new hsakmt_model, 0; });
      return m;
    },
    .destroy = [](hsakmt_model* m) { delete m; },
    // Only announced memory counts, range by range: an access between ranges is a fault.
    .set_global_aperture = [](hsakmt_model*, void*, std::uint64_t) {},
    .alloced_memory = [](hsakmt_model* m, void* address, std::uint64_t bytes,
                         std::uint32_t) { (void)guarded([&] { return m->model.add_memory(address, bytes); }); },
    .freed_memory = [](hsakmt_model* m, void* address,
                       std::uint64_t) { (void)guarded([&] { return m->model.remove_memory(address); }); },
    .register_queue = [](hsakmt_model* m,
                         const hsakmt_model_queue_info* i) { return guarded([&] { return m->model.add_queue(*i); }); },
    .set_set_event = [](hsakmt_model* m, hsakmt_model_set_event fn, void* data) { m->model.on_event(fn, data); },
    .destroy_queue = [](hsakmt_model* m,
                        std::uint32_t id) { return guarded([&] { return m->model.remove_queue(id); }); },
};

}  // namespace

extern "C" [[gnu::visibility("default")]] const hsakmt_model_functions* get_hsakmt_model_functions() {
  return &functions;
}
