// SPDX-License-Identifier: MIT
#include "drm_file.hpp"

#include "../real.hpp"

#include <dirent.h>
#include <cstdlib>
#include <set>

namespace sdma::emulator {

DrmFile& DrmFiles::file(std::uint32_t serial, std::uint32_t gpu) {
  return files_.try_emplace(serial, memory_, gpu).first->second;
}

int DrmFiles::acquire(std::uint32_t serial, std::uint32_t gpu) {
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

void DrmFiles::sweep(const Arena& arena) noexcept {
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

}  // namespace sdma::emulator
