#include "nccl_calls.hpp"

#include <fmt/format.h>

namespace collectives::perf {

using namespace sdma;

Result<NcclCalls, Diagnostic> NcclCalls::load(Collective collective) {
  auto library = LoadedLibrary::load(
      {.option = "--against",
       .what = "NCCL",
       .variable = "SDMA_NCCL_LIBRARY",
       .names = {"libnccl.so.2"},
       .hint = "add its folder to LD_LIBRARY_PATH (Python's package nvidia-nccl-cu13 has it in "
               "site-packages/nvidia/nccl/lib, Debian's package libnccl2 among the libraries of the system)"});
  if (!library) return std::move(library.error());
  NcclCalls c;
  library->take(c.get_version, "ncclGetVersion");
  library->take(c.error_string, "ncclGetErrorString");
  if (auto d = library->lacking()) return *d;
  if (const auto s = c.get_version(&c.version); s != kSuccess)
    return Diagnostic{.where = "--against", .message = fmt::format("ncclGetVersion: {}", c.error_string(s))};
  library->take(c.get_unique_id, "ncclGetUniqueId");
  library->take(c.init_rank, "ncclCommInitRank");
  library->take(c.init_rank_config, "ncclCommInitRankConfig", false);
  library->take(c.last_error, "ncclGetLastError", false);
  library->take(c.async_error, "ncclCommGetAsyncError");
  library->take(c.group_start, "ncclGroupStart");
  library->take(c.group_end, "ncclGroupEnd");
  library->take(c.all_gather, "ncclAllGather");
  library->take(c.all_to_all, "ncclAlltoAll", collective == Collective::all_to_all);
  library->take(c.allocate, "ncclMemAlloc");
  library->take(c.register_window, "ncclCommWindowRegister", false);
  if (auto d = library->lacking()) {
    d->message += fmt::format(" (NCCL {}.{}.{})", c.version / 10000, c.version / 100 % 100, c.version % 100);
    return *d;
  }
  return c;
}

}  // namespace collectives::perf
