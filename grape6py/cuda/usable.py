"""Which CUDA devices a process may use: what GRAPE6_DEVICES says."""

from __future__ import annotations

from grape6py._lib import codes


def numbers_of(words: str, count: int) -> list[int]:
    """Numbers of the devices that GRAPE6_DEVICES names, of so many that there are."""
    try:
        all_of_them = words in ("", "all")
        numbers = list(range(count)) if all_of_them else [int(word) for word in words.split(",")]
    except ValueError:
        numbers = [-1]
    if not count or not all(0 <= number < count for number in numbers):
        text = f"GRAPE6_DEVICES={words}: the devices here are 0 to {count - 1}"
        raise codes.from_code("NO_DEVICE", text if count else "CUDA sees no device")
    return numbers


def chosen(numbers: list[int], choice: int) -> int:
    """One of some devices: number `choice` of them, modulo how many they are; or, below 0, CUDA's
    number ~choice (else the first), with 2^16 k added the k-th after that."""
    if choice < 0:
        after, number = divmod(~choice, 1 << 16)
        choice = after + (numbers.index(number) if number in numbers else 0)
    return numbers[choice % len(numbers)]
