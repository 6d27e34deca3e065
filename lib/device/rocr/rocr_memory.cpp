// SPDX-License-Identifier: MIT
// Memory of a ROCr device: from ROCr's pools, or adopted from others.
#include "rocr_node.hpp"

#include <fmt/format.h>

#include <sys/mman.h>
#include <unistd.h>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>

namespace sdma { inline namespace v0_3 { namespace detail {

using namespace rocr;

/// Coarse-grained memory is for data; what engines signal through is in the most coherent pool that there is.
RocrNode::Pools RocrNode::pools_of(Agent agent, bool host) const {
  struct Search {
    const Hsa& hsa;
    std::optional<Pool> fine{}, coarse{}, extended{};
  } s{.hsa = hsa_};
  (void)hsa_.iterate_pools(
      agent,
      [](Pool p, void* data) {
        auto& found = *static_cast<Search*>(data);
        std::uint32_t segment = 0, flags = 0;
        bool may_allocate = false;
        (void)found.hsa.pool_info(p, kSegment, &segment);
        (void)found.hsa.pool_info(p, kGlobalFlags, &flags);
        (void)found.hsa.pool_info(p, kMayAllocate, &may_allocate);
        if (segment != 0 || !may_allocate || (flags & kKernarg) != 0) return kSuccess;
        auto& place = (flags & kExtended) != 0 ? found.extended : (flags & kFine) != 0 ? found.fine : found.coarse;
        if (!place) place = p;
        return kSuccess;
      },
      &s);
  const auto words = s.extended ? s.extended : s.fine ? s.fine : s.coarse;
  Pools out{.data = host || !s.coarse ? words : s.coarse, .words = words};
  std::uint32_t access = kNever;
  if (out.data) (void)hsa_.agent_pool_info(cpu_, *out.data, kAccess, &access);
  out.host_access = host || access != kNever;
  return out;
}

std::vector<Agent> RocrNode::agents_in(std::uint64_t gpus) const {
  std::vector<Agent> out;
  for (std::size_t g = 0; g < agents_.size(); ++g)
    if ((gpus >> g & 1) != 0) out.push_back(agents_[g]);
  return out;
}

Result<RocrNode::NewBlock, Diagnostic> RocrNode::allocate_block(const MemoryRequest& r) {
  if (!in_opening_process()) return forked_error("allocate");
  if (auto d = refuse(r, node_.topology)) return *d;
  const auto failed = [&](std::string message, std::string hint) {
    return Diagnostic{.where = place_of(r), .message = std::move(message), .hint = std::move(hint)};
  };
  if (r.shareable && !r.where) {
    auto file = shareable_pages(place_of(r), round_up(r.bytes, kPage));
    return file ? lock_pages(r, std::move(*file)) : Result<NewBlock, Diagnostic>(file.error());
  }
  const auto& pools = r.where ? gpu_pools_[r.where->value] : host_pools_;
  const auto pool = r.purpose == Purpose::data ? pools.data : pools.words;
  if (!pool) return failed("ROCr has no memory pool for it", "request memory of another GPU, or of the host");
  const bool visible = pools.host_access;
  if (!visible && r.host_access)
    return failed("the host cannot reach this GPU's memory", "set host_access = false: the BAR of the GPU is small");
  const auto bytes = round_up(r.bytes, kPage), all = r.alignment > kPage ? bytes + r.alignment : bytes;
  void* base = nullptr;
  if (const auto s = hsa_.allocate(*pool, all, 0, &base); s != kSuccess || !base) {
    auto none = failed("out of memory: " + why(s), "free memory, or request less");
    none.cause = Cause::no_memory;
    return none;
  }
  auto agents = agents_in(r.gpus);
  if (r.where && visible) agents.push_back(cpu_);
  if (!agents.empty())
    if (const auto s = hsa_.allow_access(static_cast<std::uint32_t>(agents.size()), agents.data(), nullptr, base);
        s != kSuccess) {
      (void)hsa_.free(base);
      return failed(fmt::format("cannot be mapped for GPUs {:#x}: {}", r.gpus, why(s)),
                    "GPUs that no link connects cannot reach each other's memory");
    }
  const auto block = keep(r, base, all, visible);
  if (!r.where) std::memset(block.host, 0, bytes);  // ROCr may hand out what it had before
  return block;
}

void RocrNode::free_block(std::uint64_t id) noexcept {
  const std::lock_guard lock(memory_);
  const auto found = blocks_.extract(id);
  if (!found) return;
  const auto& b = found.mapped();
  if (b.file < 0) return void((b.imported ? hsa_.close_dmabuf : b.opened ? hsa_.close_shared : hsa_.free)(b.base));
  (void)hsa_.unlock(b.host);
  munmap(b.base, b.base_bytes);
  close(b.file);
}

/// Host memory that processes share: ROCr gives only GPU memory a name, so each process locks the pages of a file.
Result<RocrNode::NewBlock, Diagnostic> RocrNode::lock_pages(const MemoryRequest& r, Descriptor file) {
  const auto failed = [&](std::string why) {
    return Diagnostic{.where = place_of(r),
                      .message = "out of memory: " + std::move(why),
                      .hint = "free memory, request less, or raise ulimit -l",
                      .cause = Cause::no_memory};
  };
  const auto bytes = round_up(r.bytes, kPage);
  const auto pages = map_pages(file.get(), bytes, std::max(r.alignment, kPage));
  if (!pages.at) return failed(std::strerror(errno));
  auto agents = agents_in(r.gpus);
  void* at = nullptr;
  if (const auto s = hsa_.lock(pages.at, bytes, agents.data(), static_cast<int>(agents.size()), &at); s != kSuccess) {
    munmap(pages.base, pages.base_bytes);
    return failed(why(s));
  }
  return keep({.base = pages.base,
               .base_bytes = pages.base_bytes,
               .va = reinterpret_cast<std::uint64_t>(at),
               .bytes = r.bytes,
               .host = pages.at,
               .gpus = r.gpus,
               .shareable = true,
               .file = file.release()});
}

std::string RocrNode::export_block(void* base, std::uint64_t bytes, ShareToken& token) {
  if (!hsa_.share) return "this ROCr has no hsa_amd_ipc_memory_create";
  const auto status = hsa_.share(base, bytes, token.data());
  return status == kSuccess ? "" : why(status);
}

std::string RocrNode::import_block(const ShareToken& token, std::uint64_t bytes, std::uint64_t gpus, void** base) {
  if (!hsa_.share) return "this ROCr has no hsa_amd_ipc_memory_attach";
  const auto agents = agents_in(gpus);
  const auto status =
      hsa_.open_shared(token.data(), bytes, static_cast<std::uint32_t>(agents.size()), agents.data(), base);
  return status == kSuccess ? "" : why(status);
}

std::string RocrNode::block_to_dmabuf(void* base, std::uint64_t bytes, int& fd, std::uint64_t& offset) {
  if (!hsa_.export_dmabuf) return "this ROCr has no hsa_amd_portable_export_dmabuf";
  const auto status = hsa_.export_dmabuf(base, bytes, &fd, &offset);
  return status == kSuccess ? "" : why(status);
}

std::string RocrNode::block_of_dmabuf(int fd, std::uint64_t gpus, void** base, std::uint64_t& bytes) {
  if (!hsa_.open_dmabuf || !hsa_.close_dmabuf) return "this ROCr has no hsa_amd_interop_map_buffer";
  auto agents = agents_in(gpus);
  std::size_t has = 0;
  const auto status =
      hsa_.open_dmabuf(static_cast<std::uint32_t>(agents.size()), agents.data(), fd, 0, &has, base, nullptr, nullptr);
  bytes = has;
  return status == kSuccess ? "" : why(status);
}

Result<Memory, Diagnostic> RocrNode::adopt(void* pointer, std::uint64_t bytes, std::uint64_t gpus) {
  if (!in_opening_process()) return forked_error("adopt");
  const auto failed = [&](std::string message, std::string hint) {
    return Diagnostic{.where = fmt::format("adopt pointer={} bytes={}", pointer, bytes),
                      .message = std::move(message),
                      .hint = std::move(hint)};
  };
  auto wanted = agents_in(gpus);
  if (!pointer || bytes == 0) return failed("the range is empty", "pass an allocation and its length in bytes");
  if (wanted.empty())
    return failed("no GPU may access it", fmt::format("set a bit of `gpus` from 0 to {}", agents_.size() - 1));
  PointerInfo info{.size = sizeof info};
  std::uint32_t count = 0;
  Agent* list = nullptr;
  if (const auto s = hsa_.pointer_info(pointer, &info, std::malloc, &count, &list); s != kSuccess)
    return failed("ROCr says nothing about it: " + why(s), "the pointer must be to memory that exists");
  const std::unique_ptr<Agent, decltype(&std::free)> owned(list, std::free);
  const std::span<const Agent> reachable(list, list ? count : 0);

  Block b{.bytes = bytes, .host = static_cast<std::byte*>(pointer)};
  if (info.type == PointerType::unknown) {
    void* at = nullptr;
    const auto s = hsa_.lock(pointer, bytes, wanted.data(), static_cast<int>(wanted.size()), &at);
    if (s != kSuccess)
      return failed("ROCr does not know this memory, and cannot lock it as the host's: " + why(s),
                    "pass memory of HIP, of this process's ROCr or of the host, all of it mapped; raise ulimit -l");
    b.base = pointer;
    b.va = reinterpret_cast<std::uint64_t>(at);
  } else {
    // A locked range has one address for the host and may have another for GPUs.
    auto* const start = info.type == PointerType::locked ? info.host_base : info.agent_base;
    const auto offset = reinterpret_cast<std::uint64_t>(pointer) - reinterpret_cast<std::uint64_t>(start);
    if (offset >= info.bytes || bytes > info.bytes - offset)
      return failed(fmt::format("its allocation has {} bytes from {} on", info.bytes, fmt::ptr(start)),
                    "adopt a range that lies in one allocation");
    b.va = reinterpret_cast<std::uint64_t>(info.agent_base) + offset;
    b.owner = gpu_of(info.owner);
    if (b.owner && !gpu_pools_[b.owner->value].host_access) b.host = nullptr;
    // allow_access replaces the list of agents, except the owner: what others have been granted must stay.
    bool missing = false;
    std::vector<Agent> all(reachable.begin(), reachable.end());
    for (const auto a : wanted)
      if (std::find(all.begin(), all.end(), a) == all.end() && !(a == info.owner)) {
        all.push_back(a);
        missing = true;
      }
    if (missing) {
      const auto s = info.type == PointerType::locked
                         ? kNotHandled
                         : hsa_.allow_access(static_cast<std::uint32_t>(all.size()), all.data(), nullptr, start);
      if (s != kSuccess)
        return failed(info.type == PointerType::locked ? "its owner has locked it for other GPUs"
                                                       : "ROCr gives the GPUs no access to it: " + why(s),
                      "adopt it for GPUs that can reach it");
    }
  }
  const auto id = next_adopted_.fetch_add(1);
  {
    const std::lock_guard lock(memory_);
    adopted_.emplace(id, b);
  }
  hold();
  return Memory(Lease(give_back<&RocrNode::give_back_adopted>, this, id), GpuVa{b.va}, bytes, b.host);
}

void RocrNode::give_back_adopted(std::uint64_t id) noexcept {
  const std::lock_guard lock(memory_);
  const auto b = adopted_.extract(id);
  if (b && b.mapped().base) (void)hsa_.unlock(b.mapped().base);
}

}}}  // namespace sdma::v0_3::detail
