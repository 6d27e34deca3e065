// SPDX-License-Identifier: MIT
#include "fiber.hpp"

#include <cstdint>
#include <cstdlib>

#if defined(__x86_64__)
// A switch is some ten instructions; swapcontext would add two system calls to each of a hundred million.
asm(R"(
.text
.p2align 4
.type sdma_model_switch, @function
sdma_model_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size sdma_model_switch, . - sdma_model_switch
.globl sdma_model_switch
)");
extern "C" void sdma_model_switch(void** save, void* load);
#else
#include <ucontext.h>
#endif

namespace model {

#if defined(__x86_64__)

namespace {
// `ret` into a function takes no argument: the one that is being started.
Fiber* starting = nullptr;
}  // namespace

struct Fiber::Machine {
  void *own{}, *caller{};
  static void entry() { starting->enter(); }
};

void Fiber::start(void (*run)(void*), void* argument) {
  run_ = run;
  argument_ = argument;
  done_ = false;
  auto top = (reinterpret_cast<std::uintptr_t>(stack_.get()) + kStack) & ~std::uintptr_t{15};
  auto* words = reinterpret_cast<std::uintptr_t*>(top);
  words[-1] = 0;                                                  // no caller
  words[-2] = reinterpret_cast<std::uintptr_t>(&Machine::entry);  // 16-byte aligned behind its return address
  machine_->own = words - 8;                                      // six registers below it
}
void Fiber::resume() {
  starting = this;
  sdma_model_switch(&machine_->caller, machine_->own);
}
void Fiber::yield() { sdma_model_switch(&machine_->own, machine_->caller); }

#else

namespace {
Fiber* starting = nullptr;
}  // namespace

struct Fiber::Machine {
  ucontext_t own{}, caller{};
  static void entry() { starting->enter(); }
};

void Fiber::start(void (*run)(void*), void* argument) {
  run_ = run;
  argument_ = argument;
  done_ = false;
  getcontext(&machine_->own);
  machine_->own.uc_stack.ss_sp = stack_.get();
  machine_->own.uc_stack.ss_size = kStack;
  machine_->own.uc_link = nullptr;
  makecontext(&machine_->own, &Machine::entry, 0);
}
void Fiber::resume() {
  starting = this;
  swapcontext(&machine_->caller, &machine_->own);
}
void Fiber::yield() { swapcontext(&machine_->own, &machine_->caller); }

#endif

Fiber::Fiber() : stack_(new std::byte[kStack]), machine_(new Machine) {}
Fiber::~Fiber() = default;

void Fiber::enter() {
  run_(argument_);
  done_ = true;
  for (;;) yield();
}

}  // namespace model
