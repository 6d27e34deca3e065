// SPDX-License-Identifier: MIT
#pragma once
// Core files for tests: an ELF file with notes and segments, and the notes of the kernel and of ROCr.
#include <elf.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace core_file {

using Bytes = std::vector<std::byte>;

template <class T> void add(Bytes& to, const T& value) {
  const auto b = std::as_bytes(std::span(&value, 1));
  to.insert(to.end(), b.begin(), b.end());
}
inline void append(Bytes& to, std::span<const std::byte> from) { to.insert(to.end(), from.begin(), from.end()); }
inline void pad(Bytes& to, std::size_t multiple) {
  while (to.size() % multiple != 0) to.push_back({});
}

/// One note.
inline Bytes note(std::string_view owner, std::uint32_t type, const Bytes& description) {
  Bytes out;
  add(out, static_cast<std::uint32_t>(owner.size() + 1));
  add(out, static_cast<std::uint32_t>(description.size()));
  add(out, type);
  for (const char c : owner) add(out, c);
  add(out, '\0');
  pad(out, 4);
  append(out, description);
  pad(out, 4);
  return out;
}

struct Segment {
  std::uint64_t va{}, bytes{};
  Bytes contents{};  ///< empty: the kernel left them out
};
struct MappedFile {
  std::uint64_t begin{}, end{};
  std::string name{};
};

inline Bytes core(std::uint16_t machine, const Bytes& notes, const std::vector<Segment>& segments) {
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_type = ET_CORE;
  header.e_machine = machine;
  header.e_phoff = sizeof header;
  header.e_phentsize = sizeof(Elf64_Phdr);
  header.e_phnum = static_cast<Elf64_Half>(segments.size() + 1);
  Bytes out, contents;
  add(out, header);
  auto at = sizeof header + (segments.size() + 1) * sizeof(Elf64_Phdr);
  const auto put = [&](std::uint32_t type, std::uint64_t va, std::uint64_t bytes, const Bytes& file) {
    Elf64_Phdr p{};
    p.p_type = type;
    p.p_flags = PF_R;
    p.p_offset = at;
    p.p_vaddr = va;
    p.p_memsz = bytes;
    p.p_filesz = file.size();
    add(out, p);
    append(contents, file);
    at += file.size();
  };
  put(PT_NOTE, 0, 0, notes);
  for (const auto& s : segments) put(PT_LOAD, s.va, s.bytes, s.contents);
  append(out, contents);
  return out;
}

/// The kernel's note about files.
inline Bytes files(const std::vector<MappedFile>& all) {
  Bytes d;
  add(d, static_cast<std::uint64_t>(all.size()));
  add(d, std::uint64_t{4096});
  for (const auto& f : all) {
    add(d, f.begin);
    add(d, f.end);
    add(d, std::uint64_t{0});
  }
  for (const auto& f : all) {
    for (const char c : f.name) add(d, c);
    add(d, '\0');
  }
  return note("CORE", NT_FILE, d);
}

/// A `gpucore.*` as ROCr writes it: one note, then the memory of the GPU.
struct GpuCore {
  struct Entry {
    std::uint64_t exceptions = 0, ring = 0x7e0000000000, wptr_at = 0x7e0000001000, rptr_at = 0x7e0000001008, save = 0;
    std::uint32_t id = 3, gpu = 0xabcd, bytes = 1024, type = 1, save_bytes = 0, reserved = 0;
  };
  Entry entry{};
  std::uint64_t version = 1;
  std::uint64_t rptr = 0, wptr = 0;
  std::vector<std::uint32_t> ring{};

  Bytes state() const {
    Bytes d;
    add(d, version);
    for (const std::uint32_t n : {1u, 17u}) add(d, n);
    add(d, std::uint64_t{5});                                     // bytes of the runtime's information
    for (const std::uint32_t n : {2u, 120u, 1u, 64u}) add(d, n);  // devices, queues
    for (int i = 0; i < 8; ++i) add(d, std::byte{0x55});          // 5, padded
    for (const std::uint32_t gpu : {0x1111u, 0xabcdu}) {
      Bytes device(120);
      std::memcpy(device.data() + 56, &gpu, sizeof gpu);
      append(d, device);
    }
    add(d, entry);
    return d;
  }
  Bytes bytes() const {
    Bytes memory(0x2000);
    if (!ring.empty()) std::memcpy(memory.data(), ring.data(), ring.size() * 4);
    std::memcpy(memory.data() + 0x1000, &wptr, 8);
    std::memcpy(memory.data() + 0x1008, &rptr, 8);
    return core(EM_AMDGPU, note("AMDGPU", 33, state()), {{0x7e0000000000, memory.size(), memory}});
  }
};

}  // namespace core_file
