// SPDX-License-Identifier: MIT
#include "nccl_calls.hpp"

#include <fmt/format.h>

namespace collectives::perf {

using namespace sdma;

Result<LoadedLibrary, Diagnostic> NcclCalls::find(Rival r) {
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

Result<NcclCalls, Diagnostic> NcclCalls::load(LoadedLibrary library, Collective collective) {
  NcclCalls c;
  library.take(c.get_version, "ncclGetVersion");
  library.take(c.error_string, "ncclGetErrorString");
  if (auto d = library.lacking()) return *d;
  if (const auto s = c.get_version(&c.version); s != kSuccess)
    return Diagnostic{.where = "--against", .message = fmt::format("ncclGetVersion: {}", c.error_string(s))};
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

std::string NcclCalls::version_text() const {
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

}  // namespace collectives::perf
