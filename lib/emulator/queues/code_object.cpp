// SPDX-License-Identifier: MIT
#include "code_object.hpp"

#include "field.hpp"
#include "msgpack.hpp"

#include <elf.h>
#include <algorithm>
#include <cstring>

namespace sdma::emulator {
namespace {

constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kMostImage = std::uint64_t{64} << 20;  ///< from the header to a descriptor
constexpr std::uint64_t kMostNote = std::uint64_t{16} << 20;
constexpr std::uint32_t kMostHeaders = 64, kMostDynamic = 256, kMostSymbols = 1 << 20;
constexpr std::uint16_t kAmdGpu = 224;
constexpr std::uint32_t kMetadata = 32;
constexpr std::string_view kNoteName{"AMDGPU", 7}, kDescriptor = ".kd";

/// A loaded image. Addresses are relative to its header.
class Image {
 public:
  /// The image whose loaded segments contain `va`.
  static std::optional<Image> around(GpuVa va, AddressSpace::Reader& memory) noexcept {
    for (std::uint64_t page = va.value & ~(kPage - 1), begin = page; begin - page <= kMostImage; page -= kPage) {
      const auto* at = memory.at(GpuVa{page}, sizeof(Elf64_Ehdr), Access::read);
      if (!at) return {};
      const auto h = field<Elf64_Ehdr>(at, 0);
      if (std::memcmp(h.e_ident, ELFMAG, SELFMAG) != 0 || h.e_machine != kAmdGpu) {
        if (page == 0) return {};
        continue;
      }
      Image i(memory, GpuVa{page}, va.value - page);
      if (!i.read_headers(h)) return {};
      return i;
    }
    return {};
  }

  template <class T> std::optional<T> read(std::uint64_t offset) const noexcept {
    const auto* at = memory_.at(base_ + offset, sizeof(T), Access::read);
    return at ? std::optional(field<T>(at, 0)) : std::nullopt;
  }

  /// Calls `found` with the text, at most `most` characters, of each symbol whose value is the address of interest.
  template <class Fn> void symbols(Fn found) const noexcept {
    std::uint64_t symbols = 0, strings = 0, bytes = 0, hash = 0;
    for (std::uint32_t n = 0; n < kMostDynamic; ++n) {
      const auto d = read<Elf64_Dyn>(dynamic_ + n * sizeof(Elf64_Dyn));
      if (!d || d->d_tag == DT_NULL) break;
      if (d->d_tag == DT_SYMTAB) symbols = d->d_un.d_ptr;
      if (d->d_tag == DT_STRTAB) strings = d->d_un.d_ptr;
      if (d->d_tag == DT_STRSZ) bytes = d->d_un.d_val;
      if (d->d_tag == DT_HASH) hash = d->d_un.d_ptr;
    }
    if (symbols == 0 || strings == 0 || hash == 0) return;
    const auto count = std::min(read<std::uint32_t>(hash + 4).value_or(0), kMostSymbols);
    for (std::uint64_t n = 1; n < count; ++n) {
      const auto s = read<Elf64_Sym>(symbols + n * sizeof(Elf64_Sym));
      if (!s) return;
      if (s->st_value != target_ || s->st_name >= bytes) continue;
      const auto text = memory_.run(base_ + strings + s->st_name,
                                    std::min<std::uint64_t>(bytes - s->st_name, kSymbolBytes), Access::read);
      const auto end = std::find(text.begin(), text.end(), std::byte{0});
      if (found(std::span<const std::byte>(text.begin(), end))) return;
    }
  }

  /// The metadata; empty: none.
  std::span<const std::byte> metadata() const noexcept {
    for (std::uint64_t at = note_; note_bytes_ - (at - note_) >= sizeof(Elf64_Nhdr);) {
      const auto h = read<Elf64_Nhdr>(at);
      if (!h) return {};
      const auto pad = [](std::uint64_t n) { return (n + 3) & ~std::uint64_t{3}; };
      const auto name = at + sizeof(Elf64_Nhdr), text = name + pad(h->n_namesz), next = text + pad(h->n_descsz);
      if (next - note_ > note_bytes_) return {};
      const auto* n = memory_.at(base_ + name, kNoteName.size(), Access::read);
      if (h->n_type == kMetadata && h->n_namesz == kNoteName.size() && n &&
          std::memcmp(n, kNoteName.data(), kNoteName.size()) == 0) {
        const auto* bytes = memory_.at(base_ + text, h->n_descsz, Access::read);
        return bytes ? std::span<const std::byte>(bytes, h->n_descsz) : std::span<const std::byte>();
      }
      at = next;
    }
    return {};
  }

 private:
  Image(AddressSpace::Reader& memory, GpuVa base, std::uint64_t target) noexcept
      : memory_(memory), base_(base), target_(target) {}

  bool read_headers(const Elf64_Ehdr& h) noexcept {
    std::uint64_t end = 0;
    for (std::uint32_t n = 0; n < std::min<std::uint32_t>(h.e_phnum, kMostHeaders); ++n) {
      const auto p = read<Elf64_Phdr>(h.e_phoff + n * sizeof(Elf64_Phdr));
      if (!p) return false;
      if (p->p_type == PT_LOAD) end = std::max(end, p->p_vaddr + p->p_memsz);
      if (p->p_type == PT_DYNAMIC) dynamic_ = p->p_vaddr;
      if (p->p_type == PT_NOTE && p->p_memsz <= kMostNote) {
        note_ = p->p_vaddr;
        note_bytes_ = p->p_memsz;
      }
    }
    return target_ < end && dynamic_ != 0;
  }

  AddressSpace::Reader& memory_;
  GpuVa base_;
  std::uint64_t target_, dynamic_ = 0, note_ = 0, note_bytes_ = 0;
};

void read_argument(MsgPack& m, Arguments::Argument& a) noexcept {
  for (auto n = m.map(); n > 0 && m.ok(); --n) {
    const auto key = m.text();
    if (key == ".name") {
      const auto text = m.text();
      if (text.size() < a.name.size()) std::copy(text.begin(), text.end(), a.name.begin());
    } else if (key == ".offset") {
      a.offset = static_cast<std::uint32_t>(std::min<std::uint64_t>(m.number(), ~std::uint32_t{}));
    } else if (key == ".size") {
      a.bytes = static_cast<std::uint32_t>(std::min<std::uint64_t>(m.number(), ~std::uint32_t{}));
    } else if (key == ".value_kind") {
      const auto kind = m.text();
      a.hidden = kind.starts_with("hidden_");
      a.offset_of_grid = kind.starts_with("hidden_global_offset_");
    } else {
      m.skip();
    }
  }
}

/// Reads one kernel's map. False: it has another name, or it cannot be read.
bool read_kernel(MsgPack& m, std::string_view name, Arguments& out) noexcept {
  bool same = false, too_many = false;
  out = {};
  for (auto n = m.map(); n > 0 && m.ok(); --n) {
    const auto key = m.text();
    if (key == ".name") same = m.text() == name;
    else if (key == ".kernarg_segment_size") out.bytes = m.number();
    else if (key == ".args") {
      const auto count = m.array();
      if (count > Arguments::kMost) {
        too_many = true;
        for (auto left = count; left > 0 && m.ok(); --left) m.skip();
        continue;
      }
      out.count = count;
      for (std::size_t i = 0; i < count && m.ok(); ++i) read_argument(m, out.all[i]);
    } else {
      m.skip();
    }
  }
  return same && !too_many && m.ok();
}

}  // namespace

KernelName kernel_at(GpuVa va, AddressSpace::Reader& memory) noexcept {
  KernelName out;
  const auto image = Image::around(va, memory);
  if (!image) return out;
  image->symbols([&](std::span<const std::byte> text) {
    out.size = std::min(text.size(), out.text.size());
    std::memcpy(out.text.data(), text.data(), out.size);
    if (out.view().ends_with(kDescriptor)) out.size -= kDescriptor.size();
    return out.size != 0;
  });
  return out;
}

std::optional<Arguments> arguments_of(GpuVa kernel_object, std::string_view name,
                                      AddressSpace::Reader& memory) noexcept {
  const auto image = Image::around(kernel_object, memory);
  if (!image) return {};
  MsgPack m(image->metadata());
  Arguments out;
  for (auto pairs = m.map(); pairs > 0 && m.ok(); --pairs) {
    if (m.text() != "amdhsa.kernels") {
      m.skip();
      continue;
    }
    for (auto kernels = m.array(); kernels > 0 && m.ok(); --kernels)
      if (read_kernel(m, name, out)) return out;
  }
  return {};
}

}  // namespace sdma::emulator
