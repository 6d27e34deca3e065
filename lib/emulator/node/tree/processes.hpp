#pragma once
// The processes on this machine that use a node, and their memory. The node keeps no list: the objects of a process are memfds
// with names (object_file.hpp), so /proc shows them as long as the process exists. Processes of other users are not seen.
//
//   bytes_in_use(0, kfd::kVram)      memory of GPU 0 in all processes; an object that several processes share counts once
//
// Any thread may call this function. It allocates.
#include <cstdint>

namespace sdma::emulator {

std::uint64_t bytes_in_use(std::uint32_t gpu, std::uint32_t flag);

}  // namespace sdma::emulator
