// SPDX-License-Identifier: MIT
#pragma once
// The configuration of the node: environment variables, set by `sdma emulate` and read once by each process.
//
//   SDMA_EMULATE_GPUS=8  SDMA_EMULATE_GPU=gfx942  SDMA_EMULATE_VRAM=192G  SDMA_EMULATE_ORDER=strict
//   SDMA_EMULATE_SEED=0  SDMA_EMULATE_TRACE=FILE  SDMA_EMULATE_WATCH=1  SDMA_EMULATE_DOORBELLS=protect
//   SDMA_EMULATE_NAMES=FILE  SDMA_EMULATE_NO_SYSTEM_MEM_LIMIT=1
//   SDMA_EMULATE_KERNELS=refuse  SDMA_EMULATE_ENGINES=16  SDMA_EMULATE_MACHINE=ID
//   SDMA_EMULATE_KFD_VERSION=1.17  SDMA_EMULATE_INDIRECT=run
//   SDMA_EMULATE_REQUIRE_NODE=1    read by preload/leaving.cpp, before anything may allocate
//
// `sdma emulate` refuses values that it cannot parse. If a variable was set by
// hand to a wrong value, the default is used, and a message on stderr says so.
#include "../engine/pipeline.hpp"
#include "../kfd/abi.hpp"

#include <cstdint>
#include <string>

namespace sdma::emulator {

/// How an idle node notices that a program has stored a doorbell. See doorbells.hpp.
enum class Watch : std::uint8_t { protect, park, spin };

/// What becomes of a kernel dispatch that the node cannot execute. See skipped.hpp.
enum class Kernels : std::uint8_t { refuse, skip };

struct Options {
  std::uint32_t gpus = 1;
  std::uint32_t gfx = 90402;
  std::uint32_t engines = 0;  ///< of each GPU, the first of its product's; 0: all
  std::uint64_t vram_bytes = std::uint64_t{192} << 30;
  Ordering ordering = Ordering::strict;
  std::uint64_t seed = 0;
  std::string trace{};
  std::string names{};  ///< a file of names for addresses (core/names.hpp), or ""
  bool live = false;    ///< print events on stderr as they happen
  Watch watch = Watch::protect;
  bool no_system_mem_limit = false;  ///< the module parameter
  Kernels kernels = Kernels::refuse;
  IndirectBuffers indirect = IndirectBuffers::run;
  std::uint32_t kfd_minor = kfd::kMinor;  ///< of the driver's ioctl interface
  std::string machine{};  ///< which machine the process is on, or "": one of its own. See node/shared_limits.hpp
};

/// The options of this process.
const Options& options();

}  // namespace sdma::emulator
