// SPDX-License-Identifier: MIT
#pragma once
// Lays the times of several files side by side, where two files have an event in common.
//
//   for (const auto& note : align_times(snapshot, recordings)) tell(note);
//   place_in(recordings[0], page, process);   // "..., freed in allocation 7, so it was gone when line 9 of hip.log"
//
// The clocks of a kernel's log, of the runtime's log and of a recording differ, and two runs of a program have nothing
// in common but addresses that look alike. So times of two files are compared only after an event that both have:
//
//   two recordings               memory with the same address and size, allocated or freed once in each; else copies
//                                with the same addresses and size
//   a kernel's log, a recording  a page fault that both report
//   two kernels' logs            a page fault of the same GPU that both have
//
// The events have to agree on the difference of the clocks within kAgree; how far they disagree is the error of what is
// concluded. For all other pairs, the notes say that their times are not aligned.
//
// Pure; allocates in proportion to the recordings. No errors.
#include "sdma/doctor/snapshot.hpp"
#include "sdma/schedule/copies.hpp"

#include <string>
#include <vector>

namespace sdma::tool {

/// Sets what the recordings' allocations say about faults that other recordings report. Returns a note for each pair of
/// files that is aligned, and one for those that are not.
std::vector<std::string> align_times(const doctor::Snapshot&, std::vector<RecordedCopies>&);

}  // namespace sdma::tool
