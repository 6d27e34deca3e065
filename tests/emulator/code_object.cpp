// SPDX-License-Identifier: MIT
// Kernels by name: symbols and metadata of a loaded code object, and the same damaged in every way.
#include "../../lib/emulator/queues/code_object.hpp"

#include "../../lib/emulator/queues/msgpack.hpp"
#include "code_object_image.hpp"
#include "compute_rig.hpp"

#include <random>

using namespace compute;

namespace {

const std::vector<KernelText> kKernels{{"first", {{"src", 8}, {"count", 4}, {"", 8, "hidden_global_offset_x"}}},
                                       {"second", {{"a_name_that_is_longer_than_any_known_one", 8}, {"rect", 32}}}};

}  // namespace

TEST_CASE("a kernel's name, from its descriptor and from its code") {
  ComputeRig rig;
  const auto o = code_object(kKernels);
  Block image(rig.space, o.bytes.size());
  std::copy(o.bytes.begin(), o.bytes.end(), image.data);
  const AddressSpace::Reader::Section section(rig.reader);
  CHECK(kernel_at(GpuVa{image.va(o.descriptors[0])}, rig.reader).view() == "first");
  CHECK(kernel_at(GpuVa{image.va(o.descriptors[1])}, rig.reader).view() == "second");
  CHECK(kernel_at(GpuVa{image.va(o.bytes.size() - 256)}, rig.reader).view() == "second");
  CHECK_FALSE(kernel_at(GpuVa{image.va(o.descriptors[0] + 8)}, rig.reader));
  CHECK_FALSE(kernel_at(GpuVa{0}, rig.reader));
  CHECK_FALSE(kernel_at(GpuVa{rig.memory.va()}, rig.reader));
}

TEST_CASE("a kernel far after its code object's header") {
  ComputeRig rig;
  auto o = code_object(kKernels);
  Block image(rig.space, 4 << 20);
  std::copy(o.bytes.begin(), o.bytes.end(), image.data);
  std::size_t value = 0;  // of the symbol second.kd, which has no size
  while (image.at<std::uint64_t>(value) != o.descriptors[1] || image.at<std::uint64_t>(value + 8) != 0) value += 8;
  image.at<std::uint64_t>(value) = 3 << 20;
  const AddressSpace::Reader::Section section(rig.reader);
  CHECK_FALSE(kernel_at(GpuVa{image.va(3 << 20)}, rig.reader));  // outside its segments
  image.at<Elf64_Phdr>(sizeof(Elf64_Ehdr)).p_memsz = 4 << 20;
  CHECK(kernel_at(GpuVa{image.va(3 << 20)}, rig.reader).view() == "second");
}

TEST_CASE("a kernel's arguments") {
  ComputeRig rig;
  const auto o = code_object(kKernels);
  Block image(rig.space, o.bytes.size());
  std::copy(o.bytes.begin(), o.bytes.end(), image.data);
  const AddressSpace::Reader::Section section(rig.reader);
  const GpuVa object{image.va(o.descriptors[0])};
  const auto first = arguments_of(object, "first", rig.reader);
  REQUIRE(first);
  CHECK(first->count == 3);
  CHECK(first->bytes == 24);
  CHECK(first->all[1].view() == "count");
  CHECK(first->all[1].offset == 8);
  CHECK(first->all[1].bytes == 4);
  CHECK_FALSE(first->all[1].hidden);
  CHECK(first->all[2].hidden);
  CHECK(first->all[2].offset_of_grid);
  const auto second = arguments_of(object, "second", rig.reader);
  REQUIRE(second);
  CHECK(second->all[0].view().empty());
  CHECK(second->all[1].offset == 32);
  CHECK_FALSE(arguments_of(object, "third", rig.reader));
  CHECK_FALSE(arguments_of(object, "", rig.reader));
}

TEST_CASE("more arguments than a kernel here can have") {
  ComputeRig rig;
  std::vector<Argument> many(Arguments::kMost + 1, {"", 8, "hidden_none"});
  const auto o = code_object({{"many", many}, {"few", {{"src", 8}}}});
  Block image(rig.space, o.bytes.size());
  std::copy(o.bytes.begin(), o.bytes.end(), image.data);
  const AddressSpace::Reader::Section section(rig.reader);
  const GpuVa object{image.va(o.descriptors[0])};
  CHECK_FALSE(arguments_of(object, "many", rig.reader));
  CHECK(arguments_of(object, "few", rig.reader));
}

TEST_CASE("a damaged image is read within its bounds") {
  ComputeRig rig;
  const auto o = code_object(kKernels);
  Block image(rig.space, o.bytes.size());
  const AddressSpace::Reader::Section section(rig.reader);
  std::mt19937 random(7);
  std::size_t found = 0;
  const auto look = [&] {
    for (const auto at : o.descriptors) {
      const auto name = kernel_at(GpuVa{image.va(at)}, rig.reader);
      found += name ? 1 : 0;
      for (const auto& k : kKernels) found += arguments_of(GpuVa{image.va(at)}, k.name, rig.reader) ? 1 : 0;
    }
  };
  // Each byte in turn gets three values, then many bytes at once get any.
  for (std::size_t i = 0; i < o.bytes.size(); ++i)
    for (const auto v : {std::byte{0}, std::byte{0x7f}, std::byte{0xff}}) {
      std::copy(o.bytes.begin(), o.bytes.end(), image.data);
      image.data[i] = v;
      look();
    }
  for (int n = 0; n < 5000; ++n) {
    std::copy(o.bytes.begin(), o.bytes.end(), image.data);
    for (auto left = random() % 16; left > 0; --left)
      image.data[random() % o.bytes.size()] = static_cast<std::byte>(random());
    look();
  }
  CHECK(found > 0);
}

TEST_CASE("MessagePack: each kind of value is skipped, and nothing is read beyond the end") {
  using namespace std::string_view_literals;
  const std::string_view kinds[] = {"\x05"sv,
                                    "\xe0"sv,
                                    "\xc0"sv,
                                    "\xc2"sv,
                                    "\xc3"sv,
                                    "\x81\x01\x02"sv,
                                    "\x92\x01\x02"sv,
                                    "\xa3"
                                    "abc"sv,
                                    "\xc4\x02xx"sv,
                                    "\xc5\x00\x02xx"sv,
                                    "\xc6\x00\x00\x00\x02xx"sv,
                                    "\xc7\x02txx"sv,
                                    "\xc8\x00\x02txx"sv,
                                    "\xc9\x00\x00\x00\x02txx"sv,
                                    "\xca\x00\x00\x00\x00"sv,
                                    "\xcb\x00\x00\x00\x00\x00\x00\x00\x00"sv,
                                    "\xcc\x01"sv,
                                    "\xcd\x00\x01"sv,
                                    "\xce\x00\x00\x00\x01"sv,
                                    "\xcf\x00\x00\x00\x00\x00\x00\x00\x01"sv,
                                    "\xd0\x01"sv,
                                    "\xd1\x00\x01"sv,
                                    "\xd2\x00\x00\x00\x01"sv,
                                    "\xd3\x00\x00\x00\x00\x00\x00\x00\x01"sv,
                                    "\xd4tx"sv,
                                    "\xd5txx"sv,
                                    "\xd6txxxx"sv,
                                    "\xd7txxxxxxxx"sv,
                                    "\xd8txxxxxxxxxxxxxxxx"sv,
                                    "\xd9\x01x"sv,
                                    "\xda\x00\x01x"sv,
                                    "\xdb\x00\x00\x00\x01x"sv,
                                    "\xdc\x00\x01\x01"sv,
                                    "\xdd\x00\x00\x00\x01\x01"sv,
                                    "\xde\x00\x01\x01\x02"sv,
                                    "\xdf\x00\x00\x00\x01\x01\x02"sv};
  for (const auto kind : kinds) {
    INFO(static_cast<int>(static_cast<unsigned char>(kind[0])));
    std::vector<std::byte> bytes;
    for (const char c : kind) bytes.push_back(static_cast<std::byte>(c));
    bytes.push_back(std::byte{42});
    MsgPack whole(bytes);
    whole.skip();
    CHECK(whole.number() == 42);
    CHECK(whole.ok());
    for (std::size_t n = 0; n < kind.size(); ++n) {
      std::vector<std::byte> cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(n));
      MsgPack m(cut);
      m.skip();
      CHECK_FALSE(m.ok());
    }
  }
  const std::byte bomb[] = {std::byte{0xdf}, std::byte{0xff}, std::byte{0xff}, std::byte{0xff}, std::byte{0xff}};
  MsgPack m(bomb);
  m.skip();
  CHECK_FALSE(m.ok());
  const std::byte never[] = {std::byte{0xc1}};
  MsgPack unused(never);
  unused.skip();
  CHECK_FALSE(unused.ok());
}
