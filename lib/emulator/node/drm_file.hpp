// SPDX-License-Identifier: MIT
#pragma once
// A file that a program has opened on a DRM node: its GEM handles, its mappings and its contexts.
//
//   auto& file = node.drm_files.file(serial, gpu);
//   file.create(args);          // GEM_CREATE: VRAM or GTT, a handle from 1
//   file.import(prime);         // PRIME_FD_TO_HANDLE: one handle per buffer and file, however often it is imported
//   file.va(args);              // GEM_VA
//
//   handle   -> pages, which a KFD object, a DMABUF, or another file may
//            hold as well; GEM_CLOSE removes the file's mappings of them
//   acquired    by ACQUIRE_VM: the GPU's queues use the mappings of this file, and it lives as long as the process
//
// The program's close of a descriptor is not intercepted: the files that have no descriptor any more are found when it
// opens the next one, and when memory runs out.
//
// Threads: under the node's lock. Results are 0 or an errno. A call that fails or throws has changed nothing.
#include "../../kfd/drm_abi.hpp"
#include "../real.hpp"
#include "gpu_vm.hpp"

#include <dirent.h>
#include <cstdlib>
#include <map>
#include <memory>
#include <set>

namespace sdma::emulator {

class DrmFile {
 public:
  DrmFile(Memory& m, std::uint32_t gpu) : memory_(m), gpu_(gpu), vm_(gpu) {}

  int create(drm::GemCreate&);
  int close(std::uint32_t handle);
  int mmap_offset(drm::GemMmap&) const;
  int export_fd(drm::Prime&) const;
  int import_fd(drm::Prime&);
  int metadata(drm::GemMetadata&) const;
  int wait_idle(drm::GemWaitIdle&) const;
  int operate(const drm::GemOp&) const;
  int va(const drm::GemVa&);
  int context(drm::Context&);

  GpuVm& vm() noexcept { return vm_; }

 private:
  const std::shared_ptr<Pages>* find(std::uint32_t handle) const noexcept;
  template <class Map> static std::uint32_t free_id(const Map&) noexcept;

  Memory& memory_;
  std::uint32_t gpu_;
  GpuVm vm_;
  std::map<std::uint32_t, std::shared_ptr<Pages>> handles_{};
  std::map<std::uint32_t, std::uint32_t> contexts_{};  ///< the clocks that each asks for
};

/// The files of a process, by the serial number that their descriptors share.
class DrmFiles {
 public:
  explicit DrmFiles(Memory& m) noexcept : memory_(m) {}

  DrmFile& file(std::uint32_t serial, std::uint32_t gpu) {
    return files_.try_emplace(serial, memory_, gpu).first->second;
  }
  /// Makes the GPU's queues use the mappings of a file. EBUSY: they use those of another one.
  int acquire(std::uint32_t serial, std::uint32_t gpu) {
    auto& space = memory_.gpu(gpu);
    if (space.acquired) {
      const auto at = acquired_.find(gpu);
      return at != acquired_.end() && at->second == serial ? 0 : EBUSY;
    }
    auto& f = file(serial, gpu);
    const auto [at, fresh] = acquired_.try_emplace(gpu, serial);
    if (const int error = f.vm().join(space.space)) return acquired_.erase(at), error;
    space.acquired = true;
    space.vm = &f.vm();
    return 0;
  }
  /// Forgets the files without a descriptor. `arena`: what descriptors refer to.
  void sweep(const Arena& arena) noexcept {
    if (files_.size() <= acquired_.size()) return;
    auto* all = SDMA_REAL(opendir)("/proc/self/fd");
    if (!all) return;
    std::set<std::uint32_t> open;
    try {
      for (const auto& [gpu, serial] : acquired_) open.insert(serial);
      while (const auto* e = SDMA_REAL(readdir)(all)) {
        const auto d = descriptor_of(std::atoi(e->d_name), &arena);
        if (d && d->ours && is_drm(*d)) open.insert(serial_of(*d));
      }
      std::erase_if(files_, [&](const auto& f) { return open.count(f.first) == 0; });
    } catch (const std::bad_alloc&) {  // until next time
    }
    SDMA_REAL(closedir)(all);
  }

 private:
  Memory& memory_;
  std::map<std::uint32_t, DrmFile> files_{};
  std::map<std::uint32_t, std::uint32_t> acquired_{};  ///< by GPU
};

}  // namespace sdma::emulator
