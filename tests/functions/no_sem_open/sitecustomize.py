"""Python loads this by itself when the folder is on its path: like Lambda, it then has no named semaphores."""

import _multiprocessing  # type: ignore[import-not-found]  # of the standard library, without types


class _Absent:
    SEM_VALUE_MAX = _multiprocessing.SemLock.SEM_VALUE_MAX

    def __init__(self, *_: object) -> None:
        raise OSError(38, "Function not implemented")


_multiprocessing.SemLock = _Absent
