// SPDX-License-Identifier: MIT
// Memory of a KFD device by purpose.
#include "kfd_node.hpp"

#include <fmt/format.h>

namespace sdma { inline namespace v0_3 { namespace detail {
namespace {

/// Flags by purpose and place. Memory must be uncached for a running kernel to see an engine's store; "fine-grained"
/// alone does not change how this GPU's caches treat its own memory.
std::uint32_t flags_of(const MemoryRequest& r) noexcept {
  std::uint32_t f = thunk::kHostAccess;
  if (r.where) f |= thunk::kNonPaged | thunk::kNoSubstitute;
  else f |= thunk::kNoNumaBind;
  if (r.purpose == Purpose::data) return r.where ? f | thunk::kCoarse : f;
  f |= thunk::kNonPaged | thunk::kUncached;
  return r.purpose == Purpose::packets ? f | thunk::kExecute : f;
}

}  // namespace

Result<KfdNode::NewBlock, Diagnostic> KfdNode::allocate_block(const MemoryRequest& r) {
  if (!in_opening_process()) return forked_error("allocate");
  if (auto d = refuse(r, node_.topology)) return *d;
  const auto node = r.where ? gpus_[r.where->value].thunk_node : cpu_node_;
  const auto bytes = round_up(r.bytes, kPage), all = r.alignment > kPage ? bytes + r.alignment : bytes;
  void* base = nullptr;
  auto flags = flags_of(r);
  if (r.shareable) flags |= thunk::kNonPaged;  // pages of the process itself cannot be shared
  auto status = thunk_.allocate(node, all, {flags}, &base);
  if (status != thunk::kSuccess && r.where && !r.host_access) {
    // The BAR of this GPU does not cover all of its memory: memory that the host need not access may lie outside.
    flags &= ~thunk::kHostAccess;
    base = nullptr;
    status = thunk_.allocate(node, all, {flags}, &base);
  }
  if (status != thunk::kSuccess)
    return Diagnostic{.where = place_of(r),
                      .message = fmt::format("out of memory: {}", thunk::message(status)),
                      .hint = r.where && r.host_access ? "free memory, request less, or set host_access = false if the "
                                                         "BAR is small"
                                                       : "free memory, request less, or raise ulimit -l",
                      .cause = Cause::no_memory};
  status = map_for(r.gpus, base, all);
  if (status != thunk::kSuccess) {
    (void)thunk_.free(base, all);
    return Diagnostic{.where = place_of(r),
                      .message = fmt::format("cannot be mapped for GPUs {:#x}: {}", r.gpus, thunk::message(status)),
                      .hint = "GPUs that no link connects cannot reach each other's memory"};
  }
  return keep(r, base, all, (flags & thunk::kHostAccess) != 0);
}

thunk::Status KfdNode::map_for(std::uint64_t gpus, void* base, std::uint64_t bytes) noexcept {
  std::vector<std::uint32_t> nodes;
  for (std::size_t g = 0; g < gpus_.size(); ++g)
    if ((gpus >> g & 1) != 0) nodes.push_back(gpus_[g].thunk_node);
  std::uint64_t alternate = 0;
  return nodes.empty() ? thunk::kSuccess : thunk_.map(base, bytes, &alternate, {}, nodes.size(), nodes.data());
}

std::string KfdNode::export_block(void* base, std::uint64_t bytes, ShareToken& token) {
  if (!thunk_.share) return "this libhsakmt has no hsaKmtShareMemory";
  const auto status = thunk_.share(base, bytes, token.data());
  return status == thunk::kSuccess ? "" : thunk::message(status);
}

std::string KfdNode::import_block(const ShareToken& token, std::uint64_t bytes, std::uint64_t gpus, void** base) {
  if (!thunk_.open_shared || !thunk_.close_shared) return "this libhsakmt has no hsaKmtRegisterSharedHandle";
  std::uint64_t has = 0;
  if (const auto status = thunk_.open_shared(token.data(), base, &has); status != thunk::kSuccess)
    return thunk::message(status);
  auto status = has < bytes ? thunk::kTooSmall : map_for(gpus, *base, has);
  if (status == thunk::kSuccess) return "";
  (void)thunk_.close_shared(*base);
  return thunk::message(status);
}

std::string KfdNode::block_to_dmabuf(void* base, std::uint64_t bytes, int& fd, std::uint64_t& offset) {
  if (!thunk_.export_dmabuf) return "this libhsakmt has no hsaKmtExportDMABufHandle";
  const auto status = thunk_.export_dmabuf(base, bytes, &fd, &offset);
  return status == thunk::kSuccess ? "" : thunk::message(status);
}

std::string KfdNode::block_of_dmabuf(int fd, std::uint64_t gpus, void** base, std::uint64_t& bytes) {
  if (!thunk_.open_dmabuf || !thunk_.close_shared) return "this libhsakmt has no hsaKmtRegisterGraphicsHandleToNodes";
  std::vector<std::uint32_t> nodes;
  for (std::size_t g = 0; g < gpus_.size(); ++g)
    if ((gpus >> g & 1) != 0) nodes.push_back(gpus_[g].thunk_node);
  thunk::GraphicsResource found;
  auto status = thunk_.open_dmabuf(static_cast<std::uint64_t>(fd), &found, nodes.size(), nodes.data());
  if (status != thunk::kSuccess) return thunk::message(status);
  *base = found.address;
  bytes = found.bytes;
  status = map_for(gpus, found.address, found.bytes);
  if (status == thunk::kSuccess) return "";
  (void)thunk_.close_shared(found.address);
  return thunk::message(status);
}

void KfdNode::free_block(std::uint64_t id) noexcept {
  const std::lock_guard lock(memory_);
  const auto b = blocks_.extract(id);
  if (!b) return;
  (void)thunk_.unmap(b.mapped().base);
  if (b.mapped().opened) (void)thunk_.close_shared(b.mapped().base);
  else (void)thunk_.free(b.mapped().base, b.mapped().base_bytes);
}

}}}  // namespace sdma::v0_3::detail
