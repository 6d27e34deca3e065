// SPDX-License-Identifier: MIT
// What a copy costs through HIP or ROCr, whose figures are public for MI300X only.
#include "sdma/simulate/machine.hpp"

#include <string>
#include <utility>
#include <vector>

namespace sdma { inline namespace v0_3 {

void through(MachineDescription& m, Through how) {
  if (how == Through::rings) return;
  const std::string vllm = "vllm-project/vllm PR 40549", rocr = "ROCm/rocm-systems PR 6910";
  const Parameter call{
      600,
      1000,
      "HIP on MI300X: 5.47 us for each of 4,096 calls of 4 KB, less two entries and a doorbell; 8.2 us for a row of ROCr's",
      {},
      {},
      {vllm, rocr}},
      entry{2300, 400, "HIP on MI300X: 2.56 us for each of 4,096 entries of a batch, less what the engine adds",
            {},   {},  {vllm}},
      chain{5500, 700, "HIP on MI300X: 8.2 us for a copy of ROCr's, 9.9 and 12.3 us for one of 32 and 128 KB",
            {},   {},  {vllm, rocr}},
      row{300, 300, "assumed: 128 bytes and a signal, which ROCr writes for each operation of a batch"};
  std::vector<std::pair<Cost, Parameter>> known{{Cost::host_submit, call}, {Cost::host_build, entry}};
  if (how == Through::hsa) {
    known[0].second = {3000, 2600, "assumed: a call of ROCr, as one of HIP with its entry"};
    known[1].second = row;
  } else {
    known.emplace_back(Cost::engine_command, chain);
  }
  // A call has a completion of its own, which is an entry, too.
  if (how == Through::hip_calls) known[1].second.value *= 2;
  for (auto& [cost, p] : known) {
    m.parameter(cost) = std::move(p);
    m.covariance.drop(cost);
  }
  m.judged.clear();  // instead: mi300x-hip.csv and mi355x-hip.csv of share/published
  const auto gfx = m.topology.gpus.empty() ? 0 : m.topology.gpus[0].gfx;
  if (how != Through::hsa && gfx == 90402)
    m.judged = {{.pattern = CopyPattern::host, .fitted = {9, 0.104, 0.325}, .model_error = 0.17}};
  if (how != Through::hsa && gfx == 90500)
    m.judged = {{.pattern = CopyPattern::host, .predicted = {14, 0.566, 1.31}, .model_error = 1.1}};
  m.name += how == Through::hsa ? ", through ROCr's batches" : ", through HIP";
}

}}  // namespace sdma::v0_3
