#include "sdma/core/version.hpp"

namespace sdma {
inline namespace v0 {

// The build knows the version too, for the names of the library and of the package: the two may not differ.
#ifdef SDMA_PROJECT_VERSION
static_assert(kVersion.string == SDMA_PROJECT_VERSION);
#endif

std::string_view runtime_version() noexcept { return kVersion.string; }

}  // namespace v0
}  // namespace sdma
