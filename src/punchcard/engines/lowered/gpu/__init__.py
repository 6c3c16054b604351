"""The lowered engine on NVIDIA GPUs: the same plan of a loop, one thread for each machine of a batch."""
