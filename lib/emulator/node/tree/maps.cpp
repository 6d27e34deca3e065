// SPDX-License-Identifier: MIT
// The mappings of the process itself, as its own runtime sees them:
//
//   /proc/self/maps     memory of the node is "/dev/dri/renderD128", as the driver's is; doorbells are "/dev/kfd"
//
// Runtimes find GPU memory for their core dumps by these names. /proc/PID/maps,
// which other programs read, has the memfds that the mappings really are.
#include "../../../core/maps.hpp"
#include "../arena.hpp"
#include "parts.hpp"

#include <fmt/format.h>

namespace sdma::emulator {
namespace {

constexpr std::string_view kMemfd = "/memfd:";

/// How the driver would call the file of a mapping; "" if it is not a file of the node.
std::string driver_name(const detail::MapsLine& m) {
  if (!m.path.starts_with(kMemfd)) return {};
  const auto file = m.path.substr(kMemfd.size());
  if (file.substr(0, file.find(' ')) != kArenaName) return {};  // " (deleted)"
  if (m.offset < kFirstObject) return "/dev/kfd";
  const auto& gpus = tree().node().gpus;
  const auto gpu = gpu_at(m.offset);
  return fmt::format("/dev/dri/renderD{}", gpus[gpu < gpus.size() ? gpu : 0].render_minor);
}

std::string maps(std::uint64_t) {
  const auto real = machine_file("/proc/self/maps");
  std::string out;
  out.reserve(real.size());
  for (std::string_view rest = real; !rest.empty();) {
    const auto line = detail::take_line(rest);
    const auto m = detail::maps_line(line);
    const auto name = m ? driver_name(*m) : std::string();
    out += name.empty() ? line : line.substr(0, line.size() - m->path.size());
    out += name;
    out += '\n';
  }
  return out;
}

}  // namespace

void add_maps(Tree& t) { t.add_live("/proc/self/maps", maps, 0); }

}  // namespace sdma::emulator
