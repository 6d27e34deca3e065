#pragma once
// A device by name, for programs that run on either.
//
//   auto d = collectives::open_device("soft", {.gpus = 8, .ordering = sdma::Ordering::rocr});
//   auto d = collectives::open_device("kfd");          // the kernel driver's: of this machine, or of `sdma emulate`
//
// Any thread. Errors: a Diagnostic, for a name that is none too.
#include "sdma/device/soft.hpp"

#include <memory>
#include <string_view>

namespace collectives {

/// `soft` counts for the software device only.
sdma::Result<std::unique_ptr<sdma::Device>, sdma::Diagnostic> open_device(std::string_view name,
                                                                          const sdma::SoftOptions& soft = {});

}  // namespace collectives
