// SPDX-License-Identifier: MIT
#pragma once
// Code objects as ROCr loads them: an ELF image with symbols and metadata, built by a test. There is no code in it.
//
//   const auto image = code_object({{"kernel", {{"src", 8}, {"size", 8}, {"", 8, "hidden_none"}}}});
//   image.bytes, image.descriptors[0]          // the offset of kernel.kd
#include <elf.h>
#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace compute {

struct Argument {
  std::string name;
  std::uint32_t bytes;
  std::string kind = "by_value";
};
struct KernelText {
  std::string name;
  std::vector<Argument> arguments;
};
struct CodeObject {
  std::vector<std::byte> bytes;
  std::vector<std::size_t> descriptors;
};

/// The offsets that a compiler gives to the arguments: aligned to their size, at most to 32.
inline std::vector<std::uint32_t> offsets_of(const std::vector<Argument>& all) {
  std::vector<std::uint32_t> out;
  std::uint32_t at = 0;
  for (const auto& a : all) {
    at = (at + a.bytes - 1) / a.bytes * a.bytes;
    out.push_back(at);
    at += a.bytes;
  }
  out.push_back((at + 7) & ~7u);  // the whole segment
  return out;
}

class Packer {
 public:
  std::string out;
  void map(std::size_t n) { out += '\xdf', big(n, 4); }
  void array(std::size_t n) { n < 16 ? void(out += static_cast<char>(0x90 | n)) : (out += '\xdc', big(n, 2)); }
  void text(const std::string& s) {
    if (s.size() < 32) out += static_cast<char>(0xa0 | s.size());
    else out += '\xd9', big(s.size(), 1);
    out += s;
  }
  void number(std::uint64_t n) { n < 128 ? void(out += static_cast<char>(n)) : (out += '\xcd', big(n, 2)); }

 private:
  void big(std::uint64_t n, int bytes) {
    while (bytes-- > 0) out += static_cast<char>(n >> bytes * 8);
  }
};

inline std::string metadata_of(const std::vector<KernelText>& kernels) {
  Packer p;
  p.map(2);
  p.text("amdhsa.target");
  p.text("amdgcn-amd-amdhsa--gfx942");
  p.text("amdhsa.kernels");
  p.array(kernels.size());
  for (const auto& k : kernels) {
    const auto offsets = offsets_of(k.arguments);
    p.map(4);
    p.text(".args");
    p.array(k.arguments.size());
    for (std::size_t i = 0; i < k.arguments.size(); ++i) {
      const auto& a = k.arguments[i];
      p.map(a.name.empty() ? 3 : 4);
      if (!a.name.empty()) p.text(".name"), p.text(a.name);
      p.text(".offset"), p.number(offsets[i]);
      p.text(".size"), p.number(a.bytes);
      p.text(".value_kind"), p.text(a.kind);
    }
    p.text(".language_version");
    p.array(2), p.number(1), p.number(2);
    p.text(".kernarg_segment_size"), p.number(offsets.back());
    p.text(".name"), p.text(k.name);
  }
  return p.out;
}

inline CodeObject code_object(const std::vector<KernelText>& kernels) {
  constexpr std::size_t kDescriptorBytes = 64;
  CodeObject o;
  auto& b = o.bytes;
  const auto append = [&](const auto& v) {
    const auto at = b.size();
    b.resize(at + sizeof v);
    std::memcpy(b.data() + at, &v, sizeof v);
    return at;
  };
  const auto align = [&](std::size_t n) { b.resize((b.size() + n - 1) / n * n); };
  Elf64_Ehdr h{};
  std::memcpy(h.e_ident, ELFMAG, SELFMAG);
  h.e_ident[EI_CLASS] = ELFCLASS64;
  h.e_machine = 224;
  h.e_phoff = sizeof h;
  h.e_phentsize = sizeof(Elf64_Phdr);
  h.e_phnum = 3;
  append(h);
  Elf64_Phdr load{}, dynamic{}, note{};
  load.p_type = PT_LOAD;
  dynamic.p_type = PT_DYNAMIC;
  note.p_type = PT_NOTE;
  const auto headers = b.size();
  b.resize(b.size() + 3 * sizeof load);

  const auto text = metadata_of(kernels);
  note.p_vaddr = b.size();
  append(Elf64_Nhdr{.n_namesz = 4, .n_descsz = 2, .n_type = 1});  // another note comes first
  append(std::array<char, 8>{'G', 'N', 'U', 0, 1, 2});
  append(Elf64_Nhdr{.n_namesz = 7, .n_descsz = static_cast<Elf64_Word>(text.size()), .n_type = 32});
  append(std::array<char, 8>{'A', 'M', 'D', 'G', 'P', 'U'});
  for (const char c : text) append(c);
  align(4);
  note.p_memsz = b.size() - note.p_vaddr;
  align(8);
  const auto symbols = append(Elf64_Sym{});
  const auto count = 1 + 2 * kernels.size();
  b.resize(b.size() + (count - 1) * sizeof(Elf64_Sym));
  const auto hash = append(std::array<std::uint32_t, 2>{1, static_cast<std::uint32_t>(count)});
  b.resize(b.size() + (1 + count) * 4);
  const auto strings = append(char{0});
  std::vector<Elf64_Sym> all;
  for (const auto& k : kernels)
    for (const auto& name : {k.name, k.name + ".kd"}) {
      Elf64_Sym s{};
      s.st_name = static_cast<Elf64_Word>(b.size() - strings);
      for (const char c : name) append(c);
      append(char{0});
      all.push_back(s);
    }
  const auto bytes = b.size() - strings;
  align(64);
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    o.descriptors.push_back(b.size());
    all[2 * i + 1].st_value = b.size();
    b.resize(b.size() + kDescriptorBytes);
  }
  dynamic.p_vaddr = b.size();
  append(Elf64_Dyn{.d_tag = DT_SYMTAB, .d_un = {.d_ptr = symbols}});
  append(Elf64_Dyn{.d_tag = DT_STRTAB, .d_un = {.d_ptr = strings}});
  append(Elf64_Dyn{.d_tag = DT_STRSZ, .d_un = {.d_val = bytes}});
  append(Elf64_Dyn{.d_tag = DT_HASH, .d_un = {.d_ptr = hash}});
  append(Elf64_Dyn{});
  align(256);
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    all[2 * i].st_value = b.size();  // the code
    b.resize(b.size() + 256);
  }
  load.p_memsz = b.size();
  std::memcpy(b.data() + symbols + sizeof(Elf64_Sym), all.data(), all.size() * sizeof(Elf64_Sym));
  const Elf64_Phdr three[] = {load, dynamic, note};
  std::memcpy(b.data() + headers, three, sizeof three);
  return o;
}

}  // namespace compute
