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
#include "device/requested_library.hpp"
#include "gpu_streams.hpp"
#include "settings.hpp"

#include <fmt/format.h>

#include <climits>
#include <cstddef>

namespace collectives::perf {

using sdma::detail::RequestedLibrary;

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

  RequestedLibrary library;
  Status (*get_version)(int*) = library["ncclGetVersion"];
  Status (*get_unique_id)(Id*) = library["ncclGetUniqueId"];
  Status (*init_rank)(Comm*, int ranks, Id, int rank) = library["ncclCommInitRank"];
  Status (*init_rank_config)(Comm*, int ranks, Id, int rank, Config*) = library.may("ncclCommInitRankConfig");
  const char* (*error_string)(Status) = library["ncclGetErrorString"];
  const char* (*last_error)(Comm) = library.may("ncclGetLastError");
  Status (*async_error)(Comm, Status*) = library["ncclCommGetAsyncError"];
  Status (*group_start)() = library["ncclGroupStart"];
  Status (*group_end)() = library["ncclGroupEnd"];
  const char* name{};      ///< of the collective: "ncclAllGather"
  Symmetric* symmetric{};  ///< this, the next one, or the last two
  Rooted* rooted{};
  Send* send{};
  Receive* receive{};
  Status (*allocate)(void**, std::size_t) = library.may("ncclMemAlloc");  ///< null: RCCL, older versions
  Status (*register_window)(Comm, void*, std::size_t, Window*,
                            int flags) = library.may("ncclCommWindowRegister");  ///< NCCL 2.27

  int version{};  ///< 22809: 2.28.9

  /// libnccl.so.2 or librccl.so.1.
  static sdma::Result<RequestedLibrary, sdma::Diagnostic> find(Rival r) {
    if (r == Rival::rccl)
      return RequestedLibrary::load({.option = "--against",
                                     .what = "RCCL",
                                     .variable = "SDMA_RCCL_LIBRARY",
                                     .names = {"librccl.so.1"},
                                     .hint = "add its folder to LD_LIBRARY_PATH (ROCm has it in /opt/rocm/lib)"});
    return RequestedLibrary::load(
        {.option = "--against",
         .what = "NCCL",
         .variable = "SDMA_NCCL_LIBRARY",
         .names = {"libnccl.so.2"},
         .hint = "add its folder to LD_LIBRARY_PATH (Python's package nvidia-nccl-cu13 has it in "
                 "site-packages/nvidia/nccl/lib, Debian's package libnccl2 among the libraries of the system)"});
  }
  static sdma::Result<NcclCalls, sdma::Diagnostic> load(RequestedLibrary library, Collective collective) {
    NcclCalls c{std::move(library)};
    if (!c.get_version || !c.error_string) return *c.library.lacking();
    if (const auto s = c.get_version(&c.version); s != kSuccess)
      return sdma::Diagnostic{.where = "--against", .message = fmt::format("ncclGetVersion: {}", c.error_string(s))};
    const auto take = [&](const char* symbol) { return c.library[c.name = symbol]; };
    switch (collective) {
      case Collective::all_gather: c.symmetric = take("ncclAllGather"); break;
      case Collective::all_to_all:
        c.symmetric = c.library.may(c.name = "ncclAllToAll");  // RCCL's
        if (!c.symmetric) c.symmetric = take("ncclAlltoAll");
        break;
      case Collective::alltoallv:
        c.receive = take("ncclRecv");
        c.send = take("ncclSend");
        break;
      case Collective::broadcast: c.rooted = take("ncclBroadcast"); break;
      case Collective::scatter: c.rooted = take("ncclScatter"); break;
      case Collective::gather: c.rooted = take("ncclGather"); break;
    }
    if (auto d = c.library.lacking()) {
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
