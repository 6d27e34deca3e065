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
#include "../core/descriptor.hpp"
#include "../core/maps.hpp"
#include "real.hpp"
#include "sdma/core/names.hpp"
#include "sdma/core/number.hpp"

#include <cxxabi.h>
#include <elf.h>
#include <fcntl.h>
#include <unistd.h>
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace sdma::emulator {

inline constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 28;  ///< of a table of a file
inline constexpr std::size_t kMostUnnamed = 4096;

/// `count` records of a file; none if it does not have them all.
template <class T> std::vector<T> records(int fd, std::uint64_t offset, std::uint64_t count) {
  if (count > kMostBytes / sizeof(T)) return {};
  std::vector<T> all(count);
  const auto bytes = count * sizeof(T);
  for (std::uint64_t got = 0; got < bytes;) {
    const auto n =
        ::pread(fd, reinterpret_cast<char*>(all.data()) + got, bytes - got, static_cast<off_t>(offset + got));
    if (n <= 0) return {};
    got += static_cast<std::uint64_t>(n);
  }
  return all;
}

/// As people write it, if that is a name; otherwise as the file has it.
inline std::string variable_name(const char* symbol) {
  if (std::strncmp(symbol, "_Z", 2) != 0) return symbol;
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> plain{abi::__cxa_demangle(symbol, nullptr, nullptr, &status), std::free};
  return plain && is_range_name(plain.get()) ? plain.get() : symbol;
}

inline std::string base_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }
inline bool contains(std::uint64_t from, std::uint64_t bytes, std::uint64_t at) {
  return at >= from && at - from < bytes;
}

class Symbols {
 public:
  std::optional<NameTable::Range> at(GpuVa va) {
    for (const auto& u : unnamed_)
      if (va.value >= u.from && va.value < u.to) return {};
    const auto all = mappings();
    const auto here =
        std::find_if(all.begin(), all.end(), [&](const Mapping& m) { return va.value >= m.from && va.value < m.to; });
    if (here == all.end()) return {};
    const auto is_file = [](const Mapping& m) {
      return m.path.starts_with('/') && !m.path.starts_with("/memfd:") && !m.path.starts_with("/dev/") &&
             !m.path.ends_with(" (deleted)");
    };
    // The file that is loaded here begins with the last mapping of its first bytes before the address.
    for (auto m = std::make_reverse_iterator(here + 1); m != all.rend(); ++m) {
      if (!is_file(*m) || m->offset != 0 ||
          (!here->path.starts_with('[') && !here->path.empty() && here->path != m->path))
        continue;
      if (auto range = in_file(all, static_cast<std::size_t>(&*m - all.data()), va)) return range;
      break;
    }
    std::string name;
    if (here->path == "[heap]") name = "heap";
    else if (here->path == "[stack]") name = "stack";
    else if (is_file(*here)) name = base_name(here->path) + (here->offset == 0 ? "" : "+" + size_text(here->offset));
    if (is_range_name(name)) return NameTable::Range{GpuVa{here->from}, here->to - here->from, std::move(name)};
    if (unnamed_.size() == kMostUnnamed) unnamed_.clear();
    unnamed_.push_back({here->from, here->to});
    return {};
  }

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

  static std::vector<Mapping> mappings() {
    std::vector<Mapping> all;
    const detail::Descriptor maps(SDMA_REAL(open)("/proc/self/maps", O_RDONLY | O_CLOEXEC));
    detail::each_mapping(maps.get(), [&](const detail::MapsLine& m) {
      all.push_back({m.from, m.to, m.offset, m.executable(), std::string(m.path)});
      return true;
    });
    return all;
  }
  static ElfFile read(const std::string& path) {
    ElfFile f{.path = path};
    const detail::Descriptor opened(SDMA_REAL(open)(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (!opened) return f;
    const int fd = opened.get();
    const auto header = records<Elf64_Ehdr>(fd, 0, 1);
    if (header.empty() || std::memcmp(header[0].e_ident, ELFMAG, SELFMAG) != 0 ||
        header[0].e_ident[EI_CLASS] != ELFCLASS64 || header[0].e_phentsize != sizeof(Elf64_Phdr))
      return f;
    for (const auto& p : records<Elf64_Phdr>(fd, header[0].e_phoff, header[0].e_phnum))
      if (p.p_type == PT_LOAD)
        f.segments.push_back({p.p_vaddr, p.p_offset, p.p_filesz, p.p_memsz, (p.p_flags & PF_X) != 0});
    if (header[0].e_shentsize != sizeof(Elf64_Shdr)) return f;
    const auto sections = records<Elf64_Shdr>(fd, header[0].e_shoff, header[0].e_shnum);
    // The full table has all that the dynamic one has.
    for (const auto type : {SHT_SYMTAB, SHT_DYNSYM}) {
      for (const auto& s : sections) {
        if (s.sh_type != static_cast<std::uint32_t>(type) || s.sh_link >= sections.size()) continue;
        const auto& strings = sections[s.sh_link];
        auto text = records<char>(fd, strings.sh_offset, strings.sh_size);
        text.push_back('\0');
        for (const auto& symbol : records<Elf64_Sym>(fd, s.sh_offset, s.sh_size / sizeof(Elf64_Sym))) {
          const auto kind = ELF64_ST_TYPE(symbol.st_info);
          if (kind != STT_OBJECT || symbol.st_shndx == SHN_UNDEF || symbol.st_shndx == SHN_ABS || symbol.st_size == 0 ||
              symbol.st_name >= text.size())
            continue;
          auto name = variable_name(text.data() + symbol.st_name);
          if (is_range_name(name)) f.variables.push_back({symbol.st_value, symbol.st_size, std::move(name)});
        }
      }
      if (!f.variables.empty()) break;
    }
    // If one variable has several names, the first in this order is used.
    std::sort(f.variables.begin(), f.variables.end(), [](const Variable& a, const Variable& b) {
      return std::tie(a.address, a.bytes, a.name) < std::tie(b.address, b.bytes, b.name);
    });
    return f;
  }
  const ElfFile& file(const std::string& path) {
    const auto found = std::find_if(files_.begin(), files_.end(), [&](const ElfFile& f) { return f.path == path; });
    return found != files_.end() ? *found : files_.emplace_back(read(path));
  }
  /// What the file that is loaded from mapping `first` on calls this address.
  std::optional<NameTable::Range> in_file(const std::vector<Mapping>& all, std::size_t first, GpuVa va) {
    const auto& loaded = all[first];
    const auto& f = file(loaded.path);
    if (f.segments.empty()) return {};
    const auto bias = loaded.from - (f.segments.front().address - f.segments.front().offset);
    const auto segment = std::find_if(f.segments.begin(), f.segments.end(),
                                      [&](const Segment& s) { return contains(bias + s.address, s.bytes, va.value); });
    if (segment == f.segments.end()) return {};
    const auto in_maps = [&](std::uint64_t address) -> const Mapping* {
      const auto m = std::find_if(all.begin() + static_cast<std::ptrdiff_t>(first), all.end(),
                                  [&](const Mapping& x) { return address >= x.from && address < x.to; });
      return m == all.end() ? nullptr : &*m;
    };
    const auto in_place = [&](const Segment& s) {
      const auto begin = bias + s.address;
      const auto* m = in_maps(begin);
      return s.file_bytes == 0 ||
             (m && m->path == f.path && m->offset + (begin - m->from) == s.offset && m->executable == s.executable);
    };
    if (!std::all_of(f.segments.begin(), f.segments.end(), in_place)) return {};
    // A part without bytes in the file is anonymous, or in the last page that has some.
    const auto* here = in_maps(va.value);
    const bool in_bytes = va.value - (bias + segment->address) < segment->file_bytes;
    if (!here || (here->path != f.path && (in_bytes || !(here->path.empty() || here->path == "[heap]")))) return {};

    const auto address = va.value - bias;
    constexpr int kMostNested = 64;
    auto v = std::upper_bound(f.variables.begin(), f.variables.end(), address,
                              [](std::uint64_t a, const Variable& b) { return a < b.address; });
    const Variable* best = nullptr;
    for (int i = 0; i < kMostNested && v != f.variables.begin(); ++i) {
      --v;
      if (contains(v->address, v->bytes, address) && (!best || v->address == best->address)) best = &*v;
      if (best && v->address != best->address) break;
    }
    if (best) return NameTable::Range{GpuVa{bias + best->address}, best->bytes, best->name};
    auto name = base_name(f.path);
    if (!is_range_name(name)) return {};
    std::uint64_t end = 0;
    for (const auto& s : f.segments) end = std::max(end, bias + s.address + s.bytes);
    return NameTable::Range{GpuVa{loaded.from}, end - loaded.from, std::move(name)};
  }

  std::vector<ElfFile> files_{};
  std::vector<Unnamed> unnamed_{};  ///< mappings without a name, so that they are not searched again
};

}  // namespace sdma::emulator
