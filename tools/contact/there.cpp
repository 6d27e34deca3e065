// SPDX-License-Identifier: MIT
// What is there, before anything is submitted; and what a full run lacks, with the remedy.
#include "contact/steps.hpp"

#include <fmt/format.h>

#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

namespace sdma::tool::contact {
namespace {

using namespace std::chrono_literals;

Json limit(int which) {
  rlimit r{};
  if (::getrlimit(static_cast<__rlimit_resource>(which), &r) != 0 || r.rlim_cur == RLIM_INFINITY) return nullptr;
  return std::uint64_t{r.rlim_cur};
}

/// A limit of the process that is too low for a full run.
struct Limit {
  int which;
  std::uint64_t least;
  const char *what, *remedy;
};
constexpr Limit kLimits[] = {
    {RLIMIT_NOFILE, 1024, "open files", "ulimit -n 1024"},
    {RLIMIT_MEMLOCK, std::uint64_t{64} << 20, "bytes of locked memory",
     "ulimit -l unlimited, after a line for memlock in /etc/security/limits.conf"},
    {RLIMIT_AS, std::uint64_t{1} << 40, "bytes of address space", "ulimit -v unlimited"},
};

/// The system, of which only the version of the kernel is written, and what keeps a device from being opened.
Json system_of(const Settings& s) {
  utsname u{};
  ::uname(&u);
  std::vector<Diagnostic> missing;
  if (s.device == DeviceKind::kfd) missing = KfdDevice::missing();
  if (s.device == DeviceKind::cuda) missing = CudaDevice::missing();
  Json j = with_state(missing.empty() ? "passed" : "failed");
  if (s.device != DeviceKind::soft)
    for (const auto& l : kLimits)
      if (const auto now = limit(l.which); !now.is_null() && now < l.least)
        missing.push_back({.severity = Severity::note,
                           .where = "limits",
                           .message = fmt::format("{} {} are permitted, and a full run may need {}",
                                                  now.get<std::uint64_t>(), l.what, l.least),
                           .hint = fmt::format("in the shell before it: {}", l.remedy)});
  j["kernel"] = std::string(u.release);
  j["processors"] = ::sysconf(_SC_NPROCESSORS_ONLN);
  j["locked_memory_bytes"] = limit(RLIMIT_MEMLOCK);
  j["descriptors"] = limit(RLIMIT_NOFILE);
  j["emulated"] = emulated();
  j["missing"] = json::of(missing);
  return j;
}

/// What this node cannot show.
std::vector<Diagnostic> gaps(const Topology& t) {
  std::vector<Diagnostic> all;
  const auto add = [&](std::string where, std::string message, std::string hint) {
    all.push_back({.severity = Severity::note,
                   .where = std::move(where),
                   .message = std::move(message),
                   .hint = std::move(hint)});
  };
  if (t.gpus.size() < 2)
    add("gpu0", "there is no second GPU: nothing is tried between GPUs, and no collective is measured",
        "run it on a node with several GPUs, or make all of them visible to this process");
  for (std::uint32_t g = 0; g < t.gpus.size(); ++g) {
    if (t.completion(GpuId{g}, std::nullopt) != Completion::atomic)
      add(fmt::format("gpu{}", g), "its link to the host completes no 64-bit atomics",
          "enable PCIe AtomicOps in the firmware of the host, and use a slot whose switches route them");
    for (std::uint32_t p = 0; p < t.gpus.size(); ++p)
      if (p != g && !t.link(LinkEnd::gpu(g), LinkEnd::gpu(p)))
        add(fmt::format("gpu{}", g), fmt::format("there is no direct link to gpu{}", p),
            "check with the node's tools that its xGMI links are up");
  }
  return all;
}

void identify(const Device& device, Json& j) {
  Json gpus = Json::array();
  if (const auto* kfd = dynamic_cast<const KfdDevice*>(&device)) {
    j["interface"] = "KFD " + kfd->version();
    for (const auto& g : kfd->gpus())
      gpus.push_back({{"driver", g.driver},
                      {"sdma_firmware", g.sdma_firmware},
                      {"sdma_feature", g.sdma_feature},
                      {"compute_firmware", g.compute_firmware},
                      {"clock_hz", g.clock_hz == 0 ? Json() : Json(g.clock_hz)}});
  } else if (const auto* cuda = dynamic_cast<const CudaDevice*>(&device)) {
    j["interface"] = cuda->version();
    for (const auto& g : cuda->gpus())
      gpus.push_back({{"name", g.name}, {"capability", g.capability}, {"host_atomics", g.host_atomics}});
  } else if (const auto* rocr = dynamic_cast<const RocrDevice*>(&device)) {
    j["interface"] = "ROCr, interface " + rocr->version();
  } else {
    j["interface"] = "software";
  }
  j["gpus"] = std::move(gpus);
}

}  // namespace

Json what_is_there(const Settings& s, Deadline end) {
  const std::vector<Item> items{{.id = "system",
                                 .group = "system",
                                 .work = [&s](Device*) { return system_of(s); },
                                 .limit = s.patience,
                                 .bare = true},
                                {.id = "node",
                                 .group = "node",
                                 .work =
                                     [](Device* d) {
                                       Json j = with_state("passed");
                                       identify(*d, j);
                                       j["topology"] = json::of(d->topology());
                                       j["missing"] = json::of(gaps(d->topology()));
                                       return j;
                                     },
                                 .limit = s.patience}};
  return perform(s, "there", items, end);
}

}  // namespace sdma::tool::contact
