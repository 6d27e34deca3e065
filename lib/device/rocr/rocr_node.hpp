// SPDX-License-Identifier: MIT
#pragma once
// What the handles of one ROCr device share: ROCr's agents and pools, memory, events, queues and faults.
//
//   open: probe (hsa_init, agents, topology) -> RocrNode -> ... -> last handle: hsa_shut_down
//   ROCr's threads -> callbacks -> Watched (which queue of which node) -> the faults of that node
//
// Callbacks never hold a pointer to a node: a number leads to it as long as the queue exists. Internal to the library.
#include "../driver_node.hpp"
#include "../sysfs.hpp"
#include "hsa.hpp"
#include "sdma/device/rocr.hpp"

#include <optional>
#include <unordered_map>
#include <vector>

namespace sdma { inline namespace v0_3 { namespace detail {

/// What `open` has found, with hsa_init called if `hsa` is set.
struct RocrProbe {
  std::vector<Diagnostic> missing{};
  const rocr::Hsa* hsa{};
  RocrQueues queues{};
  SysfsNode node{};                          ///< the GPUs that ROCr shows, in its order
  std::vector<rocr::Agent> gpus{};           ///< in the order of node.gpus
  std::vector<std::uint32_t> thunk_nodes{};  ///< the same
  rocr::Agent cpu{};
};
RocrProbe probe(const RocrOptions&);

class RocrNode final : public DriverNode<RocrNode> {
 public:
  static constexpr std::string_view kShareName = "rocr";
  static Result<RocrNode*, Diagnostic> open(const RocrOptions&);
  /// Stops execution, as far as ROCr can: disables or inactivates all queues.
  void stop() noexcept;

  Result<Memory, Diagnostic> adopt(void* pointer, std::uint64_t bytes, std::uint64_t gpus);
  Result<Event, Diagnostic> create_event() override;

  std::optional<Fault> fault(const Queue&) const noexcept override;
  const Topology& topology() const noexcept override { return node_.topology; }
  RocrQueues queues() const noexcept { return ways_; }
  std::string version() const;

  // Called by ROCr's threads.
  void queue_failed(GpuId, rocr::Status, rocr::HsaQueue*) noexcept;
  void keep_memory_fault(GpuId, std::uint64_t va, std::uint32_t reason) noexcept;
  std::optional<GpuId> gpu_of(rocr::Agent) const noexcept;

 private:
  friend SharedNode;
  friend DriverNode;
  /// The pools of an agent by what they are for.
  struct Pools {
    std::optional<rocr::Pool> data{}, words{};
    bool host_access = false;
  };

  RocrNode(const RocrOptions&, RocrProbe&&);
  ~RocrNode();
  std::optional<Diagnostic> begin(const RocrOptions&);
  std::optional<Diagnostic> watch_system_events();
  Pools pools_of(rocr::Agent, bool host) const;
  std::vector<rocr::Agent> agents_in(std::uint64_t gpus) const;
  std::string why(rocr::Status s) const { return hsa_.message(s); }

  Result<NewBlock, Diagnostic> allocate_block(const MemoryRequest&);
  void free_block(std::uint64_t id) noexcept;
  Result<NewBlock, Diagnostic> lock_pages(const MemoryRequest&, Descriptor file);
  Result<NewBlock, Diagnostic> open_block(const MemoryRequest& r, FetchedObject& f) {
    return f.fd ? lock_pages(r, std::move(f.fd)) : DriverNode::open_block(r, f);
  }
  std::string export_block(void* base, std::uint64_t bytes, ShareToken&);
  std::string import_block(const ShareToken&, std::uint64_t bytes, std::uint64_t gpus, void** base);
  std::string block_to_dmabuf(void* base, std::uint64_t bytes, int& fd, std::uint64_t& offset);
  std::string block_of_dmabuf(int fd, std::uint64_t gpus, void** base, std::uint64_t& bytes);
  void give_back_adopted(std::uint64_t id) noexcept;
  void free_event(std::uint64_t id) noexcept;

  std::optional<Diagnostic> make_queue(const QueueRequest&, QueueState&);
  std::optional<Diagnostic> by_runtime(const QueueRequest&, QueueState&);
  std::optional<Diagnostic> by_earlier(const QueueRequest&, QueueState&);
  EngineId engine_for(const QueueRequest&) const noexcept;
  void unmake_queue(const QueueState&) noexcept;

  const rocr::Hsa& hsa_;
  const RocrQueues ways_;
  SysfsNode node_;
  const std::vector<rocr::Agent> agents_;
  const rocr::Agent cpu_;
  Pools host_pools_;
  std::vector<Pools> gpu_pools_;
  std::optional<DriverQueues> driver_queues_;
  std::unordered_map<std::uint64_t, rocr::SignalHandle> events_;  // guarded by memory_
  std::atomic<std::uint64_t> next_adopted_{1};
};

}}}  // namespace sdma::v0_3::detail
