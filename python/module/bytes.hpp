// SPDX-License-Identifier: MIT
#pragma once
// Bytes that Python owns: bytes, bytearray, memoryview, NumPy arrays.
//
//   const auto dwords = dwords_of(data);           // a copy: the bytes of a buffer, or a sequence of numbers
//   const Held in = held(array, "inputs['gpu0.in']", Access::read);
//   in.bytes()                                     // no copy; valid while `in` exists
//
// Errors: TypeError if the object holds no bytes, is not contiguous, or is read-only where bytes are written.
#include <pybind11/pybind11.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace sdma::python {

enum class Access : bool { read, write };

class Held {
 public:
  explicit Held(Py_buffer b) noexcept : buffer_(b) {}
  Held(Held&& other) noexcept : buffer_(other.buffer_) { other.buffer_ = {}; }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  Held& operator=(Held&&) = delete;
  ~Held() { PyBuffer_Release(&buffer_); }
  std::span<std::byte> bytes() const noexcept {
    return {static_cast<std::byte*>(buffer_.buf), static_cast<std::size_t>(buffer_.len)};
  }
  std::size_t item_bytes() const noexcept { return static_cast<std::size_t>(buffer_.itemsize); }

 private:
  Py_buffer buffer_;
};

/// `what`: what the object is, in errors.
Held held(const pybind11::object&, const std::string& what, Access);

std::vector<std::uint32_t> dwords_of(const pybind11::object&);

}  // namespace sdma::python
