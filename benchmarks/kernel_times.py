"""Times of kernels alone, as the profiler of PyTorch (CUPTI) tells them of the whole process."""

from torch.profiler import ProfilerActivity, profile


def seconds_of_kernels(call, takes=10):
    """Seconds that all kernels of a call take on the GPU, by their names; means. Copies and what
    lies between kernels are not in them."""
    import cupy

    call()  # compiles what is not compiled yet
    with profile(activities=[ProfilerActivity.CUDA], acc_events=True) as seen:
        for _ in range(takes):
            call()
        cupy.cuda.runtime.deviceSynchronize()
    found = {}
    for event in seen.events():
        if not event.name.startswith(("Memcpy", "Memset")):
            found[event.name] = found.get(event.name, 0.0) + 1e-6 * event.device_time / takes
    return {name: seconds for name, seconds in found.items() if seconds > 0}
