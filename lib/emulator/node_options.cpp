// SPDX-License-Identifier: MIT
#include "node_options.hpp"

#include "../device/product.hpp"
#include "sdma/core/number.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <string_view>

namespace sdma::emulator {
namespace {

bool number(std::string_view text, std::uint64_t& out) {
  const auto n = parse_size(text);
  if (n) out = *n;
  return n.has_value();
}

/// Calls `take` with the value of a variable if it is set. `take` returns false for an invalid value.
template <class Fn> void variable(const char* name, Fn take) {
  const char* v = std::getenv(name);
  if (v && !take(std::string_view(v)))
    fmt::print(stderr, "sdma emulator: {}={} is not valid: using the default\n", name, v);
}

Options read() {
  Options o;
  std::uint64_t n = 0;
  variable("SDMA_EMULATE_GPUS", [&](auto v) {
    return number(v, n) && n >= 1 && n <= 8 && ((o.gpus = static_cast<std::uint32_t>(n)), true);
  });
  variable("SDMA_EMULATE_GPU", [&](auto v) {
    const auto* p = product_of(v);
    return p && ((o.gfx = p->gfx), true);
  });
  variable("SDMA_EMULATE_ENGINES", [&](auto v) {
    const auto& p = product_like(o.gfx);
    return number(v, n) && n >= 1 && n <= p.host_engines + p.xgmi_engines &&
           ((o.engines = static_cast<std::uint32_t>(n)), true);
  });
  o.vram_bytes = product_like(o.gfx).memory_bytes();
  variable("SDMA_EMULATE_VRAM", [&](auto v) {
    return number(v, n) && n >= 4096 && n <= std::uint64_t{1} << 40 &&
           ((o.vram_bytes = n & ~std::uint64_t{4095}), true);
  });
  variable("SDMA_EMULATE_ORDER", [&](auto v) {
    for (auto m : {Ordering::strict, Ordering::rocr, Ordering::adversarial})
      if (v == name(m)) return (o.ordering = m), true;
    return false;
  });
  variable("SDMA_EMULATE_SEED", [&](auto v) { return number(v, o.seed); });
  variable("SDMA_EMULATE_TRACE", [&](auto v) { return (o.trace = v), true; });
  variable("SDMA_EMULATE_MACHINE", [&](auto v) { return (o.machine = v), true; });
  variable("SDMA_EMULATE_NAMES", [&](auto v) { return (o.names = v), true; });
  variable("SDMA_EMULATE_WATCH", [&](auto v) { return (o.live = v == "1"), v == "0" || v == "1"; });
  variable("SDMA_EMULATE_NO_SYSTEM_MEM_LIMIT",
           [&](auto v) { return (o.no_system_mem_limit = v == "1"), v == "0" || v == "1"; });
  variable("SDMA_EMULATE_DOORBELLS", [&](auto v) {
    o.watch = v == "park" ? Watch::park : v == "spin" ? Watch::spin : Watch::protect;
    return v == "park" || v == "spin" || v == "protect";
  });
  variable("SDMA_EMULATE_KERNELS", [&](auto v) {
    o.kernels = v == "skip" ? Kernels::skip : Kernels::refuse;
    return v == "skip" || v == "refuse";
  });
  variable("SDMA_EMULATE_INDIRECT", [&](auto v) {
    for (auto i : {IndirectBuffers::run, IndirectBuffers::ignore, IndirectBuffers::stall, IndirectBuffers::fault})
      if (v == name(i)) return (o.indirect = i), true;
    return false;
  });
  variable("SDMA_EMULATE_KFD_VERSION", [&](auto v) {
    const auto minor = kfd::minor_of(v);
    return minor && ((o.kfd_minor = *minor), true);
  });
  return o;
}

}  // namespace

const Options& options() {
  static const auto* o = new Options(read());  // never destroyed: engine threads outlive the destructors at exit
  return *o;
}

}  // namespace sdma::emulator
