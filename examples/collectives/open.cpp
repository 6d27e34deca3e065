#include "open.hpp"

#include "sdma/device/kfd.hpp"

#include <string>

namespace collectives {
namespace {

template <class D>
sdma::Result<std::unique_ptr<sdma::Device>, sdma::Diagnostic> as_device(
    sdma::Result<std::unique_ptr<D>, sdma::Diagnostic> d) {
  if (!d) return std::move(d.error());
  return std::unique_ptr<sdma::Device>(std::move(*d));
}

}  // namespace

sdma::Result<std::unique_ptr<sdma::Device>, sdma::Diagnostic> open_device(std::string_view name,
                                                                          const sdma::SoftOptions& soft) {
  if (name == "soft") return as_device(sdma::SoftDevice::open(soft));
  if (name == "kfd") return as_device(sdma::KfdDevice::open());
  return sdma::Diagnostic{.where = "device", .message = "'" + std::string(name) + "' is none", .hint = "soft or kfd"};
}

}  // namespace collectives
