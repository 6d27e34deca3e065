#include "override.hpp"

#include "../options.hpp"
#include "../real.hpp"

#include "sdma/device/topology.hpp"

#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace sdma::emulator {
namespace {

constexpr const char* kVariable = "HSA_OVERRIDE_GFX_VERSION";

/// The file of the loaded ROCr; "" if there is none.
std::string runtime_file() {
  std::string path;
  ::dl_iterate_phdr(
      [](dl_phdr_info* i, std::size_t, void* out) {
        if (!i->dlpi_name || !std::strstr(i->dlpi_name, "libhsa-runtime64.so")) return 0;
        *static_cast<std::string*>(out) = i->dlpi_name;
        return 1;
      },
      &path);
  return path;
}

bool contains(const std::string& file, const std::string& word) {
  const int fd = SDMA_REAL(open)(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return true;
  struct stat s {};
  bool found = true;
  if (SDMA_REAL(fstat)(fd, &s) == 0 && s.st_size > 0) {
    const auto bytes = static_cast<std::size_t>(s.st_size);
    void* p = ::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, fd, 0);
    if (p != MAP_FAILED) {
      found = ::memmem(p, bytes, word.data(), word.size()) != nullptr;
      ::munmap(p, bytes);
    }
  }
  ::close(fd);
  return found;
}

}  // namespace

void override_old_runtime() {
  if (options().gfx != 90402 || std::getenv(kVariable)) return;
  const auto file = runtime_file();
  const auto gpu = gfx_name(options().gfx);
  if (file.empty() || contains(file, gpu)) return;
  ::setenv(kVariable, "9.0.10", 0);
  std::fprintf(stderr, "sdma emulator: %s does not support %s: %s=9.0.10 is set, so it treats the GPU as gfx90a\n",
               file.c_str(), gpu.c_str(), kVariable);
}

}  // namespace sdma::emulator
