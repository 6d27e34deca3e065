// SPDX-License-Identifier: MIT
#pragma once
// What the handles of one KFD device share: the driver's descriptor, memory, signals, events, queues and faults.
//
// The device's destructor disables its queues; their rings and pointers stay until the handles are destroyed. Internal
// to the library.
#include "../driver_node.hpp"
#include "driver_queues.hpp"
#include "kfd_drm.hpp"
#include "kfd_probe.hpp"

#include <unordered_map>
#include <vector>

namespace sdma { inline namespace v0_3 { namespace detail {

class KfdNode final : public DriverNode<KfdNode> {
 public:
  static constexpr std::string_view kShareName = "kfd";
  static Result<KfdNode*, Diagnostic> open(const KfdOptions&);
  /// Stops execution: disables all queues.
  void stop() noexcept;

  Result<Event, Diagnostic> create_event() override;

  const Topology& topology() const noexcept override { return node_.topology; }
  const std::vector<KfdGpu>& gpus() const noexcept { return identities_; }
  thunk::Version version() const noexcept { return version_; }

 private:
  friend SharedNode;
  friend DriverNode;

  KfdNode(const KfdOptions&, Probe&&);
  ~KfdNode();
  std::optional<Diagnostic> begin(const KfdOptions&);
  std::optional<Diagnostic> look_at_gpus(const KfdOptions&);

  Result<NewBlock, Diagnostic> allocate_block(const MemoryRequest&);
  void free_block(std::uint64_t id) noexcept;
  thunk::Status map_for(std::uint64_t gpus, void* base, std::uint64_t bytes) noexcept;
  std::string export_block(void* base, std::uint64_t bytes, ShareToken&);
  std::string import_block(const ShareToken&, std::uint64_t bytes, std::uint64_t gpus, void** base);
  std::string block_to_dmabuf(void* base, std::uint64_t bytes, int& fd, std::uint64_t& offset);
  std::string block_of_dmabuf(int fd, std::uint64_t gpus, void** base, std::uint64_t& bytes);
  void free_event(std::uint64_t id) noexcept;

  std::optional<Diagnostic> make_queue(const QueueRequest& r, QueueState& q) {
    return make_driver_queue(*driver_queues_, r, q);
  }
  void unmake_queue(const QueueState& q) noexcept { driver_queues_->destroy(q); }

  const SysfsNode node_;
  const thunk::Thunk& thunk_;
  const std::uint32_t cpu_node_;
  bool opened_ = false;
  thunk::Version version_{};
  std::vector<KfdGpu> identities_;
  std::optional<DriverQueues> driver_queues_;
  std::unordered_map<std::uint32_t, thunk::Event*> events_;  // guarded by memory_
};

}}}  // namespace sdma::v0_3::detail
