// SPDX-License-Identifier: MIT
// A ROCr device opens: ROCr, its agents, the driver's numbers for them.
#include "rocr_node.hpp"

#include "../kfd/kfd_drm.hpp"
#include "../kfd/kfd_probe.hpp"
#include "../sysfs_part.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>

namespace sdma { inline namespace v0_3 { namespace detail {

using namespace rocr;

namespace {

struct FoundAgent {
  Agent agent{};
  std::uint32_t kind{}, node{};
};
std::vector<FoundAgent> agents_of(const Hsa& hsa) {
  struct Search {
    const Hsa& hsa;
    std::vector<FoundAgent> found{};
  } s{.hsa = hsa};
  (void)hsa.iterate_agents(
      [](Agent a, void* data) {
        auto& search = *static_cast<Search*>(data);
        FoundAgent f{.agent = a};
        if (search.hsa.agent_info(a, kDevice, &f.kind) == kSuccess &&
            search.hsa.agent_info(a, kDriverNode, &f.node) == kSuccess)
          search.found.push_back(f);
        return kSuccess;
      },
      &s);
  return s.found;
}

/// How this ROCr makes queues, or why it does not.
std::optional<Diagnostic> choose_way(const Hsa& h, RocrQueues& way) {
  way = h.create_queues ? RocrQueues::runtime : h.create_earlier ? RocrQueues::earlier : RocrQueues::thunk;
  if (way != RocrQueues::thunk || h.has_thunk) return {};
  return Diagnostic{.where = h.name,
                    .message =
                        "gives away no sDMA queues: it does not export hsa_amd_queue_create, and contains its "
                        "own libhsakmt",
                    .hint =
                        "use ROCm 10.0.0 or later (HSA AMD interface 1.26); without HIP and ROCr in the process, "
                        "KfdDevice (--device=kfd) works with any"};
}

void read_node(const RocrOptions& o, const std::vector<FoundAgent>& agents, RocrProbe& p) {
  const auto files = read_sysfs(o.topology);
  if (!files) return p.missing.push_back(files.error());
  const auto node = from_sysfs(*files);
  if (!node) return p.missing.push_back(node.error());
  std::vector<std::size_t> keep;
  std::string others;
  for (const auto& a : agents) {
    if (a.kind != kGpu) continue;
    for (std::size_t i = 0; i < node->gpus.size(); ++i) {
      if (readable_before(*files, node->gpus[i].kfd_node) != a.node) continue;
      const auto& g = node->topology.gpus[i];
      if (g.gfx / 10000 == 9 && generation_of_target(g.gfx) && g.engines() != 0) {
        keep.push_back(i);
        p.gpus.push_back(a.agent);
        p.thunk_nodes.push_back(a.node);
      } else {
        others += fmt::format("{}{} with {} sDMA engines", others.empty() ? "" : ", ", gfx_name(g.gfx), g.engines());
      }
    }
  }
  p.node = only(*node, keep);
  if (keep.empty())
    return p.missing.push_back(
        {.where = p.hsa->name,
         .message = others.empty() ? "shows no GPU of this node"
                                   : fmt::format("shows no gfx9 GPU with sDMA engines, but {}", others),
         .hint = "ROCR_VISIBLE_DEVICES hides GPUs; without one, use SoftDevice or sdma emulate -- PROGRAM"});
  if (keep.size() > 64)
    p.missing.push_back({.where = p.hsa->name,
                         .message = fmt::format("a node cannot have {} GPUs", keep.size()),
                         .hint = "show 1 to 64 with ROCR_VISIBLE_DEVICES"});
}

/// Where ROCr recommends engines for a link, they are the driver's numbers, too.
void take_recommended_engines(RocrProbe& p) {
  if (!p.hsa->preferred_engines) return;
  for (auto& l : p.node.topology.links) {
    if (l.from.kind != LinkEnd::Kind::gpu || l.to.kind != LinkEnd::Kind::gpu) continue;
    std::uint32_t mask = 0;
    const auto s = p.hsa->preferred_engines(p.gpus[l.to.index], p.gpus[l.from.index], &mask);
    const auto known = mask & p.node.topology.gpus[l.from.index].live_engines();
    if (s == kSuccess && known != 0) l.engine_mask = known;
  }
}

}  // namespace

RocrProbe probe(const RocrOptions& o) {
  RocrProbe p;
  const auto h = load(o.libhsa);
  if (!h) return {.missing = {h.error()}};
  if (const auto s = (*h)->init(); s != kSuccess) {
    return {
        .missing = {{.where = (*h)->name,
                     .message = fmt::format("hsa_init failed ({}): {}", s, (*h)->message(s)),
                     .hint = "check /dev/kfd and the groups of this user. If a KfdDevice of this process has the GPUs, "
                             "open a RocrDevice in its place"}}};
  }
  p.hsa = *h;
  std::uint16_t major = 0;
  if (p.hsa->system_info(kVersionMajor, &major) != kSuccess || major != 1)
    p.missing.push_back({.where = p.hsa->name,
                         .message = fmt::format("has version {} of the interface; this library knows version 1", major),
                         .hint = "use a ROCr with an interface of version 1"});
  if (auto d = choose_way(*p.hsa, p.queues)) p.missing.push_back(std::move(*d));
  const auto agents = agents_of(*p.hsa);
  const auto cpu = std::find_if(agents.begin(), agents.end(), [](const auto& a) { return a.kind == kCpu; });
  if (cpu == agents.end())
    p.missing.push_back({.where = p.hsa->name, .message = "shows no processor", .hint = "this ROCr cannot be used"});
  else p.cpu = cpu->agent;
  read_node(o, agents, p);
  take_recommended_engines(p);
  return p;
}

RocrNode::RocrNode(const RocrOptions& o, RocrProbe&& p)
    : hsa_(*p.hsa), ways_(p.queues), node_(std::move(p.node)), agents_(std::move(p.gpus)), cpu_(p.cpu) {
  for (std::size_t i = 0; i < agents_.size(); ++i)
    gpus_.push_back({.thunk_node = p.thunk_nodes[i], .gpu_id = node_.gpus[i].gpu_id});
  fd_ = ::open(o.kfd.c_str(), O_RDWR | O_CLOEXEC);
}

Result<RocrNode*, Diagnostic> RocrNode::open(const RocrOptions& o) {
  auto p = probe(o);
  if (!p.missing.empty()) {
    if (p.hsa) (void)p.hsa->shut_down();
    return p.missing.front();
  }
  auto* n = new RocrNode(o, std::move(p));
  if (auto d = n->begin(o)) {
    drop(n);
    return *d;
  }
  return n;
}

std::optional<Diagnostic> RocrNode::begin(const RocrOptions& o) {
  if (fd_ < 0) return cannot_open(o.kfd, errno);
  host_pools_ = pools_of(cpu_, true);
  for (std::size_t i = 0; i < agents_.size(); ++i) {
    gpu_pools_.push_back(pools_of(agents_[i], false));
    HdpFlush hdp;
    if (hsa_.agent_info(agents_[i], kHdpFlush, &hdp) == kSuccess) gpus_[i].hdp_flush = hdp.memory;
    // Only the rate of the clock, which stays unknown where the kernel does not give it.
    if (const int render =
            ::open(fmt::format("{}{}", o.render, node_.gpus[i].render_minor).c_str(), O_RDWR | O_CLOEXEC);
        render >= 0) {
      KfdGpu who;
      if (drm::identify(render, "", who) == 0) gpus_[i].clock_hz = who.clock_hz;
      ::close(render);
    }
  }
  if (auto d = watch_faults()) return d;
  if (ways_ == RocrQueues::runtime) return {};
  if (ways_ == RocrQueues::thunk) {
    kfd::GetVersion v;
    if (const int error = kfd::call(fd_, kfd::Nr::get_version, v, kfd::kOut)) return cannot_open(o.kfd, error);
    driver_queues_.emplace(hsa_.thunk, fd_, thunk::Version{v.major, v.minor});
  }
  return watch_system_events();
}

RocrNode::~RocrNode() {
  for (const auto& [id, signal] : events_) (void)hsa_.destroy_signal(signal);
  while (!blocks_.empty()) free_block(blocks_.begin()->first);  // pages of signals
  driver_queues_.reset();
  (void)hsa_.shut_down();
}

std::string RocrNode::version() const {
  std::uint16_t major = 0, minor = 0;
  (void)hsa_.system_info(kVersionMajor, &major);
  (void)hsa_.system_info(kVersionMinor, &minor);
  return fmt::format("{}.{}", major, minor);
}

}}}  // namespace sdma::v0_3::detail
