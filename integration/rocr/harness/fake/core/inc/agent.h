// SPDX-License-Identifier: MIT
#pragma once
// As much of ROCr's agents, signals and runtime as amd_blit_sdma.cpp uses, so that it can be compiled alone and driven
// without a GPU. Found before ROCr's own headers of these names. `rocr` is a macro here: the harness compiles the
// original file and the patched one into two namespaces of one program.
#include "core/util/locks.h"
#include "core/util/os.h"
#include "core/util/utils.h"
#include "hsakmt/hsakmttypes.h"
#include "inc/amd_hsa_signal.h"
#include "inc/hsa_ext_amd.h"

#include "rig.hpp"

#include <functional>
#include <memory>
#include <vector>

#ifndef HSA_MAX_DEP_SIGNALS
#define HSA_MAX_DEP_SIGNALS 5
#endif

namespace rocr {
namespace AMD {
class hsa_exception : public std::exception {
 public:
  hsa_exception(hsa_status_t error, const char*) : error_(error) {}
  hsa_status_t error_code() const noexcept { return error_; }

 private:
  hsa_status_t error_;
};
}  // namespace AMD

namespace core {

inline bool g_use_interrupt_wait = true;

struct MemoryRegion {
  enum AllocateFlags { AllocateExecutable };
};

/// A signal whose memory belongs to the rig, so that both files write the same addresses into their packets.
class Signal {
 public:
  explicit Signal(rig::SignalMemory& m) : signal_(*reinterpret_cast<amd_signal_t*>(&m)), memory_(m) {}
  virtual ~Signal() = default;
  hsa_signal_value_t LoadRelaxed() { return memory_.value; }
  void StoreRelaxed(hsa_signal_value_t v) { memory_.value = v; }
  hsa_signal_value_t WaitRelaxed(hsa_signal_condition_t, hsa_signal_value_t v, uint64_t, hsa_wait_state_t) { return v; }
  hsa_signal_value_t* ValueLocation() { return &memory_.value; }
  void GetSdmaTsAddresses(uint64_t*& start, uint64_t*& end) {
    start = &memory_.stamps[0];
    end = &memory_.stamps[4];
  }
  amd_signal_t& signal_;

 private:
  rig::SignalMemory& memory_;
};
using unique_signal_ptr = std::unique_ptr<Signal>;
struct InterruptSignal : Signal {
  explicit InterruptSignal(hsa_signal_value_t) : Signal(rig::current->internal()) {}
};
using DefaultSignal = InterruptSignal;

struct Isa {
  struct Version {
    int major, minor, stepping;
    Version(int a, int b, int c) : major(a), minor(b), stepping(c) {}
    auto key() const { return std::make_tuple(major, minor, stepping); }
    bool operator==(const Version& o) const { return key() == o.key(); }
    bool operator>=(const Version& o) const { return key() >= o.key(); }
    bool operator<=(const Version& o) const { return key() <= o.key(); }
  };
  Version version{rig::current->isa[0], rig::current->isa[1], rig::current->isa[2]};
  const Version& GetVersion() const { return version; }
  int GetMajorVersion() const { return version.major; }
  int GetMinorVersion() const { return version.minor; }
  int GetStepping() const { return version.stepping; }
};

struct Driver {
  hsa_status_t CreateQueue(uint32_t, HSA_QUEUE_TYPE, uint32_t, HSA_QUEUE_PRIORITY, uint32_t, void*, uint64_t, HsaEvent*,
                           HsaQueueResource& q) const {
    q.QueueId = 1;
    q.QueueRptrValue = reinterpret_cast<uintptr_t>(&rig::current->rptr);
    q.QueueWptrValue = reinterpret_cast<uintptr_t>(&rig::current->wptr);
    q.Queue_DoorBell = reinterpret_cast<HSAuint32*>(&rig::current->doorbell);
    return HSA_STATUS_SUCCESS;
  }
  hsa_status_t DestroyQueue(HSA_QUEUEID) const { return HSA_STATUS_SUCCESS; }
};

struct Agent {
  enum DeviceType { kAmdGpuDevice };
  DeviceType device_type() const { return kAmdGpuDevice; }
  uint32_t node_id() const { return 1; }
};

struct Flags {
  bool enable_sdma_hdp_flush() const { return true; }
  bool sdma_wait_idle() const { return false; }
};

struct Runtime {
  struct LinkInfo {
    hsa_amd_memory_pool_link_info_t info;
  };
  LinkInfo GetLinkInfo(uint32_t, uint32_t) const {
    LinkInfo l{};
    l.info.atomic_support_64bit = rig::current->atomics;
    l.info.link_type = rig::current->xgmi ? HSA_AMD_LINK_INFO_TYPE_XGMI : HSA_AMD_LINK_INFO_TYPE_PCIE;
    return l;
  }
  const std::vector<Agent*>& cpu_agents() const { return cpus_; }
  const Flags& flag() const { return flags_; }
  static Runtime* const runtime_singleton_;

 private:
  Agent cpu_;
  std::vector<Agent*> cpus_{&cpu_};
  Flags flags_;
};
inline Runtime the_runtime;
inline Runtime* const Runtime::runtime_singleton_ = &the_runtime;

}  // namespace core

namespace AMD {
class GpuAgent : public core::Agent {
 public:
  hsa_profile_t profile() const { return HSA_PROFILE_BASE; }
  const std::vector<const core::Isa*>& supported_isas() const { return isas_; }
  const core::Driver& driver() const { return driver_; }
  bool profiling_enabled() const { return rig::current->profiling; }
  const std::function<void*(size_t, size_t, core::MemoryRegion::AllocateFlags)>& system_allocator() const {
    return allocate_;
  }
  const std::function<void(void*)>& system_deallocator() const { return release_; }

 private:
  core::Isa isa_;
  std::vector<const core::Isa*> isas_{&isa_};
  core::Driver driver_;
  std::function<void*(size_t, size_t, core::MemoryRegion::AllocateFlags)> allocate_ =
      [](size_t, size_t, core::MemoryRegion::AllocateFlags) { return static_cast<void*>(rig::current->ring); };
  std::function<void(void*)> release_ = [](void*) {};
};
}  // namespace AMD
}  // namespace rocr
