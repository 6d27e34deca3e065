// SPDX-License-Identifier: MIT
// Modules and kernels. Nothing is compiled: a module is its text,
// and its kernels are those of kernels.hpp that it declares.
#include "calls.hpp"
#include "handles.hpp"
#include "kernels.hpp"

#include <algorithm>
#include <list>
#include <mutex>
#include <string>

namespace stand_in {
namespace {

struct Modules {
  std::mutex mutex{};
  std::list<std::string> texts{};
};
Modules& modules() {
  static auto* const only = new Modules;
  return *only;
}

Status load(abi::Module* out, const void* text) {
  Context* c = nullptr;
  if (const auto code = current_context(&c)) return code;
  if (!out || !text) return kInvalidValue;
  std::string ptx = static_cast<const char*>(text);
  if (!ptx.starts_with(".version")) return kInvalidPtx;
  wait_for_all();
  const std::lock_guard lock(modules().mutex);
  *out = reinterpret_cast<abi::Module>(&modules().texts.emplace_back(std::move(ptx)));
  return kSuccess;
}

Status find(abi::Function* out, abi::Module m, const char* name) {
  Context* c = nullptr;
  if (const auto code = current_context(&c)) return code;
  if (!out || !name) return kInvalidValue;
  const std::lock_guard lock(modules().mutex);
  const auto& texts = modules().texts;
  const auto text =
      std::ranges::find_if(texts, [&](const std::string& t) { return static_cast<const void*>(&t) == m; });
  if (text == texts.end()) return kInvalidHandle;
  const auto* kernel = find_kernel(name);
  if (!kernel || text->find(".entry " + std::string(name) + "(") == text->npos) return kNotFound;
  *out = reinterpret_cast<abi::Function>(const_cast<Kernel*>(kernel));
  return kSuccess;
}

Status launch(abi::Function f, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
              unsigned block_z, unsigned shared_bytes, abi::Stream handle, void** arguments, void** extra) {
  std::shared_ptr<Stream> s;
  if (const auto code = find_own_stream(handle, &s)) return code;
  if (!f) return kInvalidHandle;
  for (const auto n : {grid_x, grid_y, grid_z, block_x, block_y, block_z})
    if (n == 0 || (n != 1 && reinterpret_cast<const Kernel*>(f)->one_thread)) return kInvalidValue;
  if (shared_bytes != 0 || !arguments || extra) return kInvalidValue;
  const auto* kernel = reinterpret_cast<const Kernel*>(f);
  KernelArguments a{};
  for (std::size_t i = 0; i < kernel->parameters; ++i) a[i] = *static_cast<const std::uint64_t*>(arguments[i]);
  return s->connection.enqueue(s, [=](Stream& here) { return kernel->execute(here.context.device(), a); });
}

}  // namespace

std::span<const Entry> module_calls() {
  static const Entry all[] = {
      {"cuModuleLoadData", function<"cuModuleLoadData", load>()},
      {"cuModuleGetFunction", function<"cuModuleGetFunction", find>()},
      {"cuLaunchKernel", function<"cuLaunchKernel", launch>()},
  };
  return all;
}

}  // namespace stand_in
