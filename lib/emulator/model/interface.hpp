#pragma once
// The model interface of newer libhsakmt: a library that replaces the kernel driver, with sDMA queues.
//
//   HSA_MODEL_TOPOLOGY=DIR HSA_MODEL_LIB=/.../libsdma-model.so PROGRAM
//
//   libhsakmt -> get_hsakmt_model_functions() -> create -> set_global_aperture, set_set_event
//                    alloced_memory, register_queue ... destroy_queue, freed_memory -> destroy
//
// Public sources give the variables, the name of the function that the library exports, the version (0.4), and the
// names of the eight functions. They also say that all queues are SDMA queues, that there is no doorbell (write
// pointers are polled), and that events are set by a function that the caller passes in. They do NOT give the
// functions' arguments, the order of the table, or the form of a queue's description. The declarations below are this
// project's own. They are complete, but they are tested only against each other. For a libhsakmt with other
// declarations, only this header has to change. docs/emulator.md says so too.
//
// Plain C types: this is a binary interface.
#include <cstdint>

extern "C" {

struct hsakmt_model;

/// An SDMA queue. All addresses are those of the program, and the GPU uses the same.
struct hsakmt_model_queue_info {
  std::uint64_t ring, ring_bytes;             ///< size in bytes, a power of two
  std::uint64_t write_pointer, read_pointer;  ///< addresses of 64-bit words: bytes since the queue's first use
  std::uint32_t node, queue_id;
};

typedef void (*hsakmt_model_set_event)(void* data, std::uint32_t event_id);

struct hsakmt_model_functions {
  std::uint32_t version_major, version_minor;
  hsakmt_model* (*create)();
  void (*destroy)(hsakmt_model*);
  /// The range of the program that contains all memory that GPUs see.
  void (*set_global_aperture)(hsakmt_model*, void* base, std::uint64_t bytes);
  void (*alloced_memory)(hsakmt_model*, void* address, std::uint64_t bytes, std::uint32_t flags);
  void (*freed_memory)(hsakmt_model*, void* address, std::uint64_t bytes);
  /// Returns 0 or an errno.
  int (*register_queue)(hsakmt_model*, const hsakmt_model_queue_info*);
  void (*set_set_event)(hsakmt_model*, hsakmt_model_set_event, void* data);
  /// Returns once the engine accesses neither ring nor data any more. Does not drain.
  int (*destroy_queue)(hsakmt_model*, std::uint32_t queue_id);
};

const hsakmt_model_functions* get_hsakmt_model_functions();
}
