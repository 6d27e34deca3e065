// SPDX-License-Identifier: MIT
#pragma once
// Bytes that Python owns: bytes, bytearray, memoryview, NumPy arrays.
//
//   const auto dwords = dwords_of(data);           // a copy: the bytes of a buffer, or a sequence of numbers
//   const Held in = held(array, "inputs['gpu0.in']", Access::read);
//   in.bytes()                                     // no copy; valid while `in` exists
//
// Errors: TypeError if the object holds no bytes, is not contiguous, or is read-only where bytes are written.
#include <fmt/format.h>
#include <pybind11/pybind11.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

namespace sdma::python {

namespace py = pybind11;

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
inline Held held(const py::object& o, const std::string& what, Access access) {
  const auto type = std::string(py::str(py::type::of(o).attr("__name__")));
  if (!PyObject_CheckBuffer(o.ptr()))
    throw py::type_error(
        fmt::format("{} is a {}, which does not hold bytes: pass bytes, a memoryview or a NumPy array", what, type));
  Py_buffer b{};
  if (PyObject_GetBuffer(o.ptr(), &b, PyBUF_FULL_RO) != 0) throw py::error_already_set();
  Held h{b};
  if (!PyBuffer_IsContiguous(&b, 'C'))
    throw py::type_error(
        fmt::format("{} is not contiguous: copy it with numpy.ascontiguousarray, or take a slice without steps", what));
  if (access == Access::write && b.readonly)
    throw py::type_error(fmt::format("{} is read-only, but is written to: pass a copy of it, such as a.copy()", what));
  return h;
}

inline std::vector<std::uint32_t> dwords_of(const py::object& o) {
  std::vector<std::uint32_t> out;
  if (py::isinstance<py::str>(o)) throw py::type_error("text does not hold dwords: sdma.as_ makes packets of it");
  if (PyObject_CheckBuffer(o.ptr())) {
    const auto in = held(o, "data", Access::read);
    if (in.item_bytes() != 1 && in.item_bytes() != 4)
      throw py::type_error(
          fmt::format("data has elements of {} bytes, but dwords have 4: use dtype=numpy.uint32", in.item_bytes()));
    const auto bytes = in.bytes();
    if (bytes.size() % 4 != 0)
      throw py::value_error(fmt::format("{} bytes are not a whole number of dwords of 4 bytes", bytes.size()));
    out.resize(bytes.size() / 4);
    if (!out.empty()) std::memcpy(out.data(), bytes.data(), bytes.size());
    return out;
  }
  if (!py::isinstance<py::iterable>(o)) throw py::type_error("data is neither bytes nor a sequence of dwords");
  for (const auto item : o) {
    if (!PyIndex_Check(item.ptr())) throw py::type_error("a dword is a number");
    const auto n = py::reinterpret_steal<py::object>(PyNumber_Index(item.ptr()));
    const auto v = n ? PyLong_AsUnsignedLongLong(n.ptr()) : 0;
    if (PyErr_Occurred() || v > ~std::uint32_t{}) {
      PyErr_Clear();
      throw py::value_error("a dword is a number from 0 to 0xffffffff");
    }
    out.push_back(static_cast<std::uint32_t>(v));
  }
  return out;
}

}  // namespace sdma::python
