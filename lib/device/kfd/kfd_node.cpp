// SPDX-License-Identifier: MIT
#include "kfd_node.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace sdma { inline namespace v0_3 { namespace detail {

KfdNode::KfdNode(const KfdOptions& o, Probe&& p) : node_(std::move(p.node)), thunk_(*p.thunk), cpu_node_(p.thunk_cpu) {
  for (std::size_t i = 0; i < node_.gpus.size(); ++i)
    gpus_.push_back({.thunk_node = p.thunk_nodes[i], .gpu_id = node_.gpus[i].gpu_id});
  fd_ = ::open(o.kfd.c_str(), O_RDWR | O_CLOEXEC);
}

KfdNode::~KfdNode() {
  while (!blocks_.empty()) free_block(blocks_.begin()->first);  // pages of signals
  if (opened_) (void)thunk_.close();
}

Result<KfdNode*, Diagnostic> KfdNode::open(const KfdOptions& o) {
  auto p = probe(o);
  if (!p.missing.empty()) return p.missing.front();
  if (p.node.gpus.size() > 64)
    return Diagnostic{.where = o.topology,
                      .message = fmt::format("a node cannot have {} GPUs", p.node.gpus.size()),
                      .hint = "use 1 to 64 GPUs"};
  auto* n = new KfdNode(o, std::move(p));
  if (auto d = n->begin(o)) {
    drop(n);
    return *d;
  }
  return n;
}

std::optional<Diagnostic> KfdNode::begin(const KfdOptions& o) {
  const auto failed = [](const char* where, thunk::Status s) {
    return Diagnostic{.where = where,
                      .message = thunk::message(s),
                      .hint =
                          "another library of this process may have opened the driver in an incompatible way; "
                          "HSAKMT_DEBUG_LEVEL=7 makes libhsakmt print more"};
  };
  if (fd_ < 0) return cannot_open(o.kfd, errno);
  if (const auto s = thunk_.open(); s != thunk::kSuccess && s != thunk::kAlreadyOpened)
    return failed("hsaKmtOpenKFD", s);
  opened_ = true;
  if (const auto s = thunk_.version(&version_); s != thunk::kSuccess) return failed("hsaKmtGetVersion", s);
  if (const auto d = refuse_version(version_.major, version_.minor); !d.empty()) return d.front();
  // Never released: the snapshot belongs to the process, and other code in it may rely on the snapshot.
  thunk::SystemProperties system;
  if (const auto s = thunk_.acquire_system(&system); s != thunk::kSuccess)
    return failed("hsaKmtAcquireSystemProperties", s);
  driver_queues_.emplace(thunk_, fd_, version_);
  if (auto d = look_at_gpus(o)) return d;
  return watch_faults();
}

/// Identifies each GPU, and finds the page through which its host data path is flushed.
std::optional<Diagnostic> KfdNode::look_at_gpus(const KfdOptions& o) {
  for (std::size_t i = 0; i < gpus_.size(); ++i) {
    auto& g = gpus_[i];
    const auto& kernel = node_.gpus[i];
    thunk::Grown<thunk::NodeProperties> p;
    if (const auto s = thunk_.node(g.thunk_node, &p.known); s != thunk::kSuccess || p.known.simds == 0)
      return Diagnostic{
          .where = fmt::format("gpu{}", i),
          .message = fmt::format("libhsakmt's node {} is not the kernel's node {}", g.thunk_node, kernel.kfd_node),
          .hint = "the topology and libhsakmt disagree: check ROCR_VISIBLE_DEVICES and cgroups"};
    std::vector<thunk::MemoryProperties> banks(p.known.memory_banks + 1);
    if (thunk_.memory(g.thunk_node, p.known.memory_banks, banks.data()) == thunk::kSuccess)
      for (const auto& b : banks)
        if (b.heap == thunk::kHeapMmioRemap && b.base != 0)
          g.hdp_flush = reinterpret_cast<volatile std::uint32_t*>(b.base);

    const auto path = fmt::format("{}{}", o.render, kernel.render_minor);
    const int render = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (render < 0) return cannot_open(path, errno);
    auto& who = identities_.emplace_back(KfdGpu{.kernel = kernel});
    const int error = drm::identify(render, o.libdrm, who);
    ::close(render);
    if (error != 0)
      return Diagnostic{.where = path,
                        .message = fmt::format("cannot be identified: {}", std::strerror(error)),
                        .hint = "it may not be a render node of amdgpu"};
    g.clock_hz = who.clock_hz;
  }
  return {};
}

void KfdNode::stop() noexcept {
  stop_sharing();
  const std::lock_guard lock(queues_mutex_);
  for (const auto& [id, q] : queues_) driver_queues_->disable(q);
}

}}}  // namespace sdma::v0_3::detail
