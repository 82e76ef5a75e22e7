"""The perceptron of digits_mlp.py in several processes, each with its share of every batch:

    torchrun --nproc-per-node 2 examples/pytorch/digits_distributed.py

Processes exchange gradients by NCCL where each has a GPU, else by Gloo. The loss curve is that of one process with
plain PyTorch.
"""

import os

import torch
import torch.distributed as dist
from digits_mlp import Layer, PlainLayer, data, network, train
from torch.nn.parallel import DistributedDataParallel

BATCH = 256


def train_shared(model: torch.nn.Module, x: torch.Tensor, y: torch.Tensor, steps: int) -> list[float]:
    """As digits_mlp.train; each process takes every n-th row of a batch. Losses are means over all processes."""
    optimizer, losses = torch.optim.Adam(model.parameters(), lr=3e-3), []
    rank, count = dist.get_rank(), dist.get_world_size()
    for step in range(steps):
        rows = torch.arange(step * BATCH + rank, (step + 1) * BATCH, count, device=x.device) % len(x)
        loss = torch.nn.functional.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()  # DistributedDataParallel averages the gradients
        optimizer.step()
        total = loss.detach().clone()
        dist.all_reduce(total)
        losses.append(total.item() / count)
    return losses


def main() -> None:
    local, count = int(os.environ["LOCAL_RANK"]), int(os.environ["LOCAL_WORLD_SIZE"])
    on_gpus = torch.cuda.device_count() >= count
    if on_gpus:
        torch.cuda.set_device(local)
    dist.init_process_group("nccl" if on_gpus else "gloo")
    device, steps = f"cuda:{local}" if on_gpus else "cpu", int(os.environ.get("STEPS", "60"))
    x, y = data(device)
    found = train_shared(DistributedDataParallel(network(Layer, device)), x, y, steps)
    if dist.get_rank() == 0:
        wanted = train(network(PlainLayer, device), x, y, steps)
        print(f"{dist.get_world_size()} processes, {dist.get_backend()}")
        print("step  loss with kernels  loss of plain PyTorch")
        for step in range(0, steps, max(steps // 6, 1)):
            print(f"{step:4}  {found[step]:17.5f}  {wanted[step]:21.5f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
