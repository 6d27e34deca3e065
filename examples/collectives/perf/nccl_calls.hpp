// SPDX-License-Identifier: MIT
#pragma once
// The part of NCCL's ABI that nccl.cpp uses, stated here, so that a build needs no NCCL. RCCL has the same functions.
//
//   auto library = NcclCalls::find(Rival::nccl);
//   auto calls = NcclCalls::load(*library, Collective::all_gather);        // which functions must be there
//   calls->all_gather(from, to, bytes, kBytes, comm, stream);              // ncclAllGather
//
// tests/collectives_perf/nccl_abi.cpp compares this with <nccl.h> where that is installed. Configuration: a struct
// that begins with its size and the version of NCCL that it is written for. A newer NCCL takes members that it does
// not find there as undefined; an older one is never given this struct. The calls are plain values. Errors: a
// Diagnostic of loading.
#include "gpu_streams.hpp"
#include "loaded_library.hpp"
#include "settings.hpp"

#include <fmt/format.h>

#include <climits>
#include <cstddef>

namespace collectives::perf {

struct NcclCalls {
  using Status = int;
  using Comm = struct CommTag*;
  using Window = struct WindowTag*;
  using Stream = StreamDriver::Stream;
  struct Id {
    char bytes[128];
  };
  static constexpr Status kSuccess = 0;
  static constexpr int kBytes = 1;            ///< ncclUint8
  static constexpr int kSymmetric = 1;        ///< NCCL_WIN_COLL_SYMMETRIC
  static constexpr int kUndefined = INT_MIN;  ///< NCCL_CONFIG_UNDEF_INT
  static constexpr int kNoKernels = 2;        ///< NCCL_CTA_POLICY_ZERO
  static constexpr int kCopyEngines = 22800;  ///< the version from which kNoKernels means copy engines

  /// ncclConfig_t of NCCL 2.28.
  struct Config {
    std::size_t size = sizeof(Config);
    unsigned magic = 0xcafebeef;
    unsigned version = kCopyEngines;
    int blocking = kUndefined, cga_cluster_size = kUndefined, min_ctas = kUndefined, max_ctas = kUndefined;
    const char* net_name = nullptr;
    int split_share = kUndefined, traffic_class = kUndefined;
    const char* comm_name = nullptr;
    int collnet_enable = kUndefined, cta_policy = kUndefined, shrink_share = kUndefined, nvls_ctas = kUndefined,
        channels_per_net_peer = kUndefined, nvlink_centric = kUndefined;
  };

  /// Bytes to each rank or from each: all_gather, all_to_all.
  using Symmetric = Status(const void* from, void* to, std::size_t count, int type, Comm, Stream);
  /// Bytes from the root or to it: broadcast, scatter, gather.
  using Rooted = Status(const void* from, void* to, std::size_t count, int type, int root, Comm, Stream);

  /// Bytes to one other rank, or from it: alltoallv.
  using Send = Status(const void* from, std::size_t count, int type, int peer, Comm, Stream);
  using Receive = Status(void* to, std::size_t count, int type, int peer, Comm, Stream);

  Status (*get_version)(int*){};
  Status (*get_unique_id)(Id*){};
  Status (*init_rank)(Comm*, int ranks, Id, int rank){};
  Status (*init_rank_config)(Comm*, int ranks, Id, int rank, Config*){};
  const char* (*error_string)(Status){};
  const char* (*last_error)(Comm){};
  Status (*async_error)(Comm, Status*){};
  Status (*group_start)(){};
  Status (*group_end)(){};
  const char* name{};      ///< of the collective: "ncclAllGather"
  Symmetric* symmetric{};  ///< this, the next one, or the last two
  Rooted* rooted{};
  Send* send{};
  Receive* receive{};
  Status (*allocate)(void**, std::size_t){};                                  ///< null: RCCL, older versions
  Status (*register_window)(Comm, void*, std::size_t, Window*, int flags){};  ///< NCCL 2.27

  int version{};  ///< 22809: 2.28.9

  /// libnccl.so.2 or librccl.so.1.
  static sdma::Result<LoadedLibrary, sdma::Diagnostic> find(Rival r) {
    if (r == Rival::rccl)
      return LoadedLibrary::load({.option = "--against",
                                  .what = "RCCL",
                                  .variable = "SDMA_RCCL_LIBRARY",
                                  .names = {"librccl.so.1"},
                                  .hint = "add its folder to LD_LIBRARY_PATH (ROCm has it in /opt/rocm/lib)"});
    return LoadedLibrary::load(
        {.option = "--against",
         .what = "NCCL",
         .variable = "SDMA_NCCL_LIBRARY",
         .names = {"libnccl.so.2"},
         .hint = "add its folder to LD_LIBRARY_PATH (Python's package nvidia-nccl-cu13 has it in "
                 "site-packages/nvidia/nccl/lib, Debian's package libnccl2 among the libraries of the system)"});
  }
  static sdma::Result<NcclCalls, sdma::Diagnostic> load(LoadedLibrary library, Collective collective) {
    NcclCalls c;
    library.take(c.get_version, "ncclGetVersion");
    library.take(c.error_string, "ncclGetErrorString");
    if (auto d = library.lacking()) return *d;
    if (const auto s = c.get_version(&c.version); s != kSuccess)
      return sdma::Diagnostic{.where = "--against", .message = fmt::format("ncclGetVersion: {}", c.error_string(s))};
    library.take(c.get_unique_id, "ncclGetUniqueId");
    library.take(c.init_rank, "ncclCommInitRank");
    library.take(c.init_rank_config, "ncclCommInitRankConfig", false);
    library.take(c.last_error, "ncclGetLastError", false);
    library.take(c.async_error, "ncclCommGetAsyncError");
    library.take(c.group_start, "ncclGroupStart");
    library.take(c.group_end, "ncclGroupEnd");
    const auto take = [&](auto*& to, const char* symbol, bool needed = true) {
      library.take(to, c.name = symbol, needed);
    };
    switch (collective) {
      case Collective::all_gather: take(c.symmetric, "ncclAllGather"); break;
      case Collective::all_to_all:
        take(c.symmetric, "ncclAllToAll", false);  // RCCL's
        if (!c.symmetric) take(c.symmetric, "ncclAlltoAll");
        break;
      case Collective::alltoallv:
        take(c.receive, "ncclRecv");
        take(c.send, "ncclSend");
        break;
      case Collective::broadcast: take(c.rooted, "ncclBroadcast"); break;
      case Collective::scatter: take(c.rooted, "ncclScatter"); break;
      case Collective::gather: take(c.rooted, "ncclGather"); break;
    }
    library.take(c.allocate, "ncclMemAlloc", false);
    library.take(c.register_window, "ncclCommWindowRegister", false);
    if (auto d = library.lacking()) {
      d->message += fmt::format(" (version {})", c.version_text());
      return *d;
    }
    return c;
  }
  /// Has it the calls of the copy-engine mode?
  bool copies() const { return version >= kCopyEngines && init_rank_config && register_window && allocate; }
  /// "2.28.9"
  std::string version_text() const {
    return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
  }
};

}  // namespace collectives::perf
