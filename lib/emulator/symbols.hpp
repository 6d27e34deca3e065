// SPDX-License-Identifier: MIT
#pragma once
// What the program calls the bytes at an address: its variables, as the symbol tables of its files name them. Host
// memory that a program gives to the node keeps its addresses, so the packets of a recording can name it.
//
//   Symbols symbols;
//   symbols.at(GpuVa{0x55d0c0de4060})   ==  {0x55d0c0de4040, 65536, "weights"}        // -> weights[32]
//
//   the address is in                                          name, and where the range begins
//   a variable of a loaded program or library                  its symbol; where the variable begins
//   another part of a loaded program or library                "my_program"; where the file is loaded
//   a mapping of another file                                  "data.bin", or "data.bin+4K" if it begins at this offset
//   the heap (brk), the stack of the first thread              "heap", "stack"; where the kernel shows that it begins
//   memory of the node (VRAM, GTT), any anonymous mapping      none: neither the kernel nor
//                                                              the file says what it is for
//
// Nothing is guessed. A program or library counts as loaded only if /proc/self/maps shows each of its segments where
// its headers place it: a file that is mapped to be read is not loaded, and has no variables. A name that files of
// names would refuse (core/names.hpp) is left out. A stripped file has only its exported variables. What is true now
// may change later: a library can be unloaded.
//
// One thread at a time. Reads /proc/self/maps and, once each, the files that it lists; takes no lock of the loader.
// Allocates. Errors: none; what cannot be read has no name.
#include "sdma/core/names.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sdma::emulator {

class Symbols {
 public:
  std::optional<NameTable::Range> at(GpuVa);

 private:
  struct Mapping {
    std::uint64_t from{}, to{}, offset{};
    bool executable{};
    std::string path{};
  };
  struct Segment {
    std::uint64_t address{}, offset{}, file_bytes{}, bytes{};  ///< address: as in the file, before it is loaded
    bool executable{};
  };
  struct Variable {
    std::uint64_t address{}, bytes{};
    std::string name{};
  };
  struct ElfFile {
    std::string path{};
    std::vector<Segment> segments{};    ///< none: it is not a program or a library
    std::vector<Variable> variables{};  ///< by address
  };
  struct Unnamed {
    std::uint64_t from{}, to{};
  };

  static std::vector<Mapping> mappings();
  static ElfFile read(const std::string& path);
  const ElfFile& file(const std::string& path);
  std::optional<NameTable::Range> in_file(const std::vector<Mapping>&, std::size_t first, GpuVa);

  std::vector<ElfFile> files_{};
  std::vector<Unnamed> unnamed_{};  ///< mappings without a name, so that they are not searched again
};

}  // namespace sdma::emulator
