# SPDX-License-Identifier: MIT
"""The KV pools of a GPU and of the host: where each block is, and its tensors.

  memory = Memory(torch, device, shape, gpu_blocks, host_blocks)
  memory.gpu, memory.host                      # [layer, K or V, block, token of the block, KV head, element]
  memory.of("gpu", layer, which, block)        # the address of a block's K (0) or V (1)

On CUDA, the pool of the GPU is PyTorch's own memory, which the device adopts. That of the host is the device's: pinned, so that engines
read it.
"""
import sdma_client


class Pools:
    """Addresses alone."""

    def __init__(self, shape, element, gpu_address, gpu_blocks, host_address, host_blocks):
        self.layers, self.block = shape.layers, shape.block_bytes(element)
        self.address = {"gpu": gpu_address, "host": host_address}
        self.blocks = {"gpu": gpu_blocks, "host": host_blocks}

    def of(self, where, layer, which, block):
        return self.address[where] + ((layer * 2 + which) * self.blocks[where] + block) * self.block


class Memory(Pools):
    def __init__(self, torch, device, shape, gpu_blocks, host_blocks):
        on_gpu = device.kind == "cuda"
        self.dtype, element = (torch.bfloat16, 2) if on_gpu else (torch.float32, 4)
        bytes = lambda blocks: shape.layers * 2 * blocks * shape.block_bytes(element)
        form = lambda blocks: (shape.layers, 2, blocks, shape.block, shape.kv_heads, shape.head)
        view = lambda memory, blocks: torch.frombuffer(memory.bytes(), dtype=self.dtype).view(form(blocks))
        self.host_memory = device.allocate(sdma_client.HOST, bytes(host_blocks))
        self.host = view(self.host_memory, host_blocks)
        if on_gpu:
            self.gpu = torch.zeros(form(gpu_blocks), dtype=self.dtype, device="cuda")
            torch.cuda.synchronize()
            self.gpu_memory = device.adopt(self.gpu.data_ptr(), bytes(gpu_blocks))
        else:
            self.gpu_memory = device.allocate(0, bytes(gpu_blocks))
            self.gpu = view(self.gpu_memory, gpu_blocks).zero_()
        super().__init__(shape, element, self.gpu_memory.address, gpu_blocks, self.host_memory.address, host_blocks)

    def free(self):
        self.gpu = self.host = None  # views of that memory
        self.gpu_memory.free()
        self.host_memory.free()
