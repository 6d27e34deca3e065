// SPDX-License-Identifier: MIT
// A libamdhip64 without a GPU: the kernels of tiles.hip are functions of the host, with a thread for each block. A
// module is a text. "tiles" has them; those of "elsewhere" read beside what engines write; those of "deaf" ring no
// doorbell.
#include "tiles.hpp"

#include <cstdlib>
#include <cstring>
#include <string_view>
#include <thread>
#include <vector>

using Ring = sdma::Ring<sdma::Producers::many>;

namespace {

constexpr int kInvalidImage = 200, kNotFound = 500, kNotInitialised = 3;
bool initialised = false;
int stream;
std::string_view module;
std::uint64_t no_doorbell;

void put(Ring* ring, const example::Tiles& tiles, unsigned blocks) {
  std::vector<std::thread> all;
  for (unsigned b = 0; b < blocks; ++b)
    all.emplace_back([&, b] {
      sdma::Wave wave;
      sdma::Puts puts{*ring};
      auto t = tiles;
      if (module == "elsewhere") t.to = t.from + 1;
      example::put_tiles(puts, wave, t, b);
    });
  for (auto& t : all) t.join();
}

}  // namespace

extern "C" {
int hipInit(unsigned) { return initialised = true, 0; }
int hipSetDevice(int gpu) { return initialised && gpu == 0 ? 0 : kNotInitialised; }
int hipStreamCreateWithPriority(void** s, unsigned, int) { return *s = &stream, 0; }
int hipStreamSynchronize(void* s) { return s == &stream ? 0 : kNotInitialised; }
int hipMalloc(void** p, std::size_t bytes) { return *p = std::aligned_alloc(256, (bytes + 255) / 256 * 256), 0; }
int hipModuleLoadData(void** m, const void* image) {
  for (const std::string_view known : {"tiles", "elsewhere", "deaf"})
    if (known == static_cast<const char*>(image)) return module = known, *m = &stream, 0;
  return kInvalidImage;
}
int hipModuleGetFunction(void** f, void*, const char* name) {
  for (const char* known : {"make_ring", "put_all_tiles"})
    if (std::strcmp(name, known) == 0) return *f = const_cast<char*>(known), 0;
  return kNotFound;
}
int hipModuleLaunchKernel(void* f, unsigned blocks, unsigned, unsigned, unsigned lanes, unsigned, unsigned, unsigned,
                          void*, void** arguments, void**) {
  if (lanes != 64) return kInvalidImage;
  auto* const ring = *static_cast<Ring**>(arguments[0]);
  if (std::string_view(static_cast<const char*>(f)) == "make_ring") {
    auto memory = *static_cast<const sdma::RingMemory*>(arguments[1]);
    if (module == "deaf") memory.doorbell = &no_doorbell;
    new (ring) Ring(memory);
  } else put(ring, *static_cast<const example::Tiles*>(arguments[1]), blocks);
  return 0;
}
}
