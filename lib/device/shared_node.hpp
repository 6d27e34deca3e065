// SPDX-License-Identifier: MIT
#pragma once
// What the handles of any device share: a reference count, the process that opened the device, and words for signals.
//
//   class SoftNode final : public SharedNode<SoftNode> { friend SharedNode; ... };
//
//   hold(); return Memory(Lease(give_back<&SoftNode::free_block>, this, id), ...);  // calls free_block, then drop
//
// A node exists until the device and every handle are destroyed: each holds a reference. In the child of a fork it is
// never destroyed: everything in it belongs to the parent, threads do not exist, and locks may be held forever.
// Requires of Node: `topology()`; `allocate_block(const MemoryRequest&)`, which returns Result<NewBlock, Diagnostic>;
// `free_block(id)`; if it shares memory with other processes, the name of its kind of device, `kShareName`,
// `offer_of(const Memory&)`, which returns Result<Offer, Diagnostic>, and
// `open_block(const MemoryRequest&, FetchedObject&)`,
// which returns Result<NewBlock, Diagnostic>. Any thread; internal.
#include "opened.hpp"
#include "request.hpp"
#include "sdma/core/units.hpp"

#include <fmt/format.h>

#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

namespace sdma { inline namespace v0_3 { namespace detail {

/// Words for signals, cut from pages of memory; each has its own cache line. Words are reused in the order in which
/// they were given back. So if an engine still stores to a freed word by mistake, that word is not in use again at
/// once.
///
///   while (!(taken = slots.take(where))) slots.add_page(host, va, where);      // under the owner's lock
///
/// Not thread-safe.
class SignalSlots {
 public:
  static constexpr std::size_t kLine = 64, kPageBytes = 4096;
  struct Slot {
    std::uint64_t* word{};
    GpuVa va{};
    std::optional<GpuId> where{};
  };

  void add_page(std::byte* host, GpuVa va, std::optional<GpuId> where) {
    for (std::size_t i = 0; i < kPageBytes; i += kLine)
      free_.push_back({.word = reinterpret_cast<std::uint64_t*>(host + i), .va = va + i, .where = where});
  }
  /// A free slot in that place's memory, and its id; nullopt: there is none, add a page.
  std::optional<std::pair<std::uint64_t, Slot>> take(std::optional<GpuId> where) {
    const auto at = std::find_if(free_.begin(), free_.end(), [&](const Slot& s) { return s.where == where; });
    if (at == free_.end()) return {};
    const std::pair taken(next_++, *at);
    taken_.insert(taken);
    free_.erase(at);
    return taken;
  }
  void give_back(std::uint64_t id) {
    const auto it = taken_.find(id);
    if (it == taken_.end()) return;
    free_.push_back(it->second);
    taken_.erase(it);
  }

 private:
  std::vector<Slot> free_{};
  std::unordered_map<std::uint64_t, Slot> taken_{};
  std::uint64_t next_ = 1;
};

template <class Node> class SharedNode : public Device {
 public:
  SharedNode(const SharedNode&) = delete;
  SharedNode& operator=(const SharedNode&) = delete;

  void hold() noexcept { holders_.fetch_add(1, std::memory_order_relaxed); }
  /// Gives up a reference; the last call deletes the node.
  static void drop(Node* n) noexcept {
    if (n->holders_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete n;
  }
  /// For the destructor of a device. In the child of a fork, the node belongs to the parent.
  static void shut_down(Node* n) noexcept {
    if (!n->in_opening_process()) return;
    n->stop();
    drop(n);
  }
  bool in_opening_process() const noexcept { return getpid() == opener_pid_; }

  Result<Memory, Diagnostic> allocate(const MemoryRequest& r) final {
    auto* const n = static_cast<Node*>(this);
    const auto b = n->allocate_block(r);
    if (!b) return b.error();
    hold();
    const bool visible = !r.where || r.host_access;
    return Memory(Lease(give_back<&SharedNode::free_memory>, n, b->id), b->va, r.bytes, visible ? b->host : nullptr);
  }

  Result<SharedHandle, Diagnostic> share(const Memory& m) final {
    if constexpr (Node::kShareName.empty()) {
      return Device::share(m);
    } else {
      if (!in_opening_process()) return forked_error("share");
      const auto o = static_cast<Node*>(this)->offer_of(m);
      if (!o) return o.error();
      return shares_.offer(m.id(), o->object, o->fd);
    }
  }
  Result<Memory, Diagnostic> open_shared(const SharedHandle& h) final {
    if constexpr (Node::kShareName.empty()) return Device::open_shared(h);
    else return open_block_of(h);
  }
  Result<Dmabuf, Diagnostic> export_dmabuf(const Memory& m) final {
    if constexpr (requires(Node & n) { n.dmabuf_of(m); }) {
      if (!in_opening_process()) return forked_error("export_dmabuf");
      return static_cast<Node*>(this)->dmabuf_of(m);
    } else {
      return Device::export_dmabuf(m);
    }
  }
  Result<Memory, Diagnostic> import_dmabuf(const DmabufRequest& from) final {
    const MemoryRequest r{.where = from.where, .bytes = from.bytes, .gpus = from.gpus};
    if constexpr (requires(Node & n) { n.open_dmabuf(r, from); })
      return imported("import_dmabuf", r, [&](Node& n) { return n.open_dmabuf(r, from); });
    else return Device::import_dmabuf(from);
  }
  Result<IpcHandle, Diagnostic> export_ipc(const Memory& m) final {
    if constexpr (requires(Node & n) { n.ipc_of(m); }) {
      if (!in_opening_process()) return forked_error("export_ipc");
      return static_cast<Node*>(this)->ipc_of(m);
    } else {
      return Device::export_ipc(m);
    }
  }
  Result<Memory, Diagnostic> import_ipc(const IpcHandle& h, std::optional<GpuId> where, std::uint64_t gpus) final {
    const MemoryRequest r{.where = where, .bytes = h.bytes, .gpus = gpus};
    if constexpr (requires(Node & n) { n.open_ipc(r, h); })
      return imported("import_ipc", r, [&](Node& n) { return n.open_ipc(r, h); });
    else return Device::import_ipc(h, where, gpus);
  }
  std::optional<MemoryOwner> origin(GpuVa va) const final {
    return in_opening_process() ? opened_.origin(va) : std::nullopt;
  }

 protected:
  struct NewBlock {  // memory that does not have a handle yet
    std::uint64_t id{};
    GpuVa va{};
    std::byte* host{};  ///< null: not mapped for the host
  };

  struct Offer {  // what other processes get
    SharedObject object{};
    int fd = -1;
  };

  SharedNode() = default;
  ~SharedNode() = default;

  static Diagnostic not_shareable(const Memory& m) {
    return {.where = fmt::format("share {:#x}", m.va().value),
            .message = "this memory cannot be shared",
            .hint = "allocate it on this device, with MemoryRequest::shareable"};
  }
  static SharedObject shared_object(const Memory& m, std::optional<GpuId> owner, std::uint64_t gpus) noexcept {
    return {.gpu = owner ? owner->value : SharedObject::kHost, .bytes = m.bytes(), .gpus = gpus};
  }
  /// This process has opened memory of that one. A node may learn more of it.
  void met(const SharedHandle&, const FetchedObject&, Deadline) {}
  /// Handles of this device's memory are no longer good.
  void stop_sharing() noexcept { shares_.stop(); }

  static Diagnostic forked_error(const char* where) {
    return {.where = where,
            .message = "this device belongs to the parent process",
            .hint = "open a new device in the child"};
  }
  /// The function that a handle calls to give back its lease.
  template <auto F> static void give_back(void* node, std::uint64_t id) noexcept {
    auto* n = static_cast<Node*>(node);
    if (!n->in_opening_process()) return;
    (n->*F)(id);
    drop(n);
  }

  /// Returns the id and the place of a word for a signal; allocates a page of words if no word is free.
  Result<std::pair<std::uint64_t, SignalSlots::Slot>, Diagnostic> take_signal(std::optional<GpuId> where) {
    for (;;) {
      {
        const std::lock_guard lock(memory_);
        if (const auto taken = signals_.take(where)) return *taken;
      }
      const auto page = static_cast<Node*>(this)->allocate_block(
          {.where = where, .bytes = SignalSlots::kPageBytes, .purpose = Purpose::words});
      if (!page) return page.error();
      const std::lock_guard lock(memory_);
      signals_.add_page(page->host, page->va, where);
    }
  }
  void free_signal(std::uint64_t id) noexcept {
    const std::lock_guard lock(memory_);
    signals_.give_back(id);
  }

  mutable std::mutex memory_;
  ShareServer shares_{Node::kShareName};

 private:
  Result<Memory, Diagnostic> open_block_of(const SharedHandle& h) {
    auto* const n = static_cast<Node*>(this);
    if (!in_opening_process()) return forked_error("open_shared");
    const auto d = Deadline::in(share::kAnswer);
    auto f = fetch(h, Node::kShareName, opened_.owner(h.socket), d);
    if (!f) return f.error();
    MemoryRequest r{.bytes = f->object.bytes, .gpus = f->object.gpus};
    if (f->object.gpu != SharedObject::kHost) r.where = GpuId{f->object.gpu};
    if (auto why = refuse(r, n->topology())) return *why;
    const auto b = n->open_block(r, *f);
    if (!b) return b.error();
    n->met(h, *f, d);
    opened_.add(b->id, {.va = b->va, .bytes = r.bytes, .socket = h.socket, .owner = f->owner});
    hold();
    return Memory(Lease(give_back<&SharedNode::free_memory>, n, b->id), b->va, r.bytes, b->host);
  }
  template <class Open>
  Result<Memory, Diagnostic> imported(const char* call, const MemoryRequest& r, const Open& open) {
    auto* const n = static_cast<Node*>(this);
    if (!in_opening_process()) return forked_error(call);
    if (auto why = refuse(r, n->topology())) {
      why->where = call;
      return *why;
    }
    const auto b = open(*n);
    if (!b) return b.error();
    hold();
    return Memory(Lease(give_back<&SharedNode::free_memory>, n, b->id), b->va, r.bytes, b->host);
  }
  void free_memory(std::uint64_t id) noexcept {
    shares_.withdraw(id);
    opened_.remove(id);
    static_cast<Node*>(this)->free_block(id);
  }

  OpenedMemory opened_;
  const int opener_pid_ = getpid();
  std::atomic<std::uint64_t> holders_{1};
  SignalSlots signals_;  // guarded by memory_
};

}}}  // namespace sdma::v0_3::detail
