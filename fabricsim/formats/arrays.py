"""Arrays from NPY and NPZ files: no pickles, and no trust in what their heads say."""

from __future__ import annotations

import zlib
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

import numpy as np
from numpy.typing import NDArray

from fabricsim.errors import SpecError, TooLargeError
from fabricsim.formats.files import MOST_B, data

NPY, ZIP = b"\x93NUMPY", b"PK\x03\x04"
"""How the two kinds of file begin."""


def arrays(path: Path) -> dict[str, NDArray[Any]]:
    """Read the arrays of an NPZ file by name, or that of an NPY file by the name ``""``.

    Raises
    ------
    SpecError
        It is none of these, or an array is of other than numbers, or not all there.
    TooLargeError
        It has, or unpacks to, more bytes than are ever read.
    """
    content = data(path)
    if content.startswith(NPY):
        return {"": _array(content, path.name)}
    try:
        with ZipFile(BytesIO(content)) as archive:
            size = sum(member.file_size for member in archive.infolist())
            if size > MOST_B:
                raise TooLargeError(
                    f"{path.name}: unpacks to {size:,} bytes, and at most {MOST_B:,} are read"
                )
            return {
                name.removesuffix(".npy"): _array(archive.read(name), f"{path.name}, {name}")
                for name in archive.namelist()
            }
    except (BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError, OSError) as error:
        raise SpecError(f"{path.name}: cannot be read as numbers: {error}") from None


def _array(content: bytes, where: str) -> NDArray[Any]:
    file = BytesIO(content)
    try:
        version = np.lib.format.read_magic(file)
        head = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
        }[version]
        shape, fortran, dtype = head(file)
    except Exception as error:  # NumPy's parser of heads lets through what it meets
        raise SpecError(
            f"{where}: cannot be read as numbers: not a valid NPY file: {error}"
        ) from None
    if dtype.kind not in "biuf":
        raise SpecError(f"{where}: cannot be read as numbers: it is of {dtype}")
    need, there = dtype.itemsize, len(content) - file.tell()
    for length in shape:
        need *= length
    if need != there or min(shape, default=0) < 0:
        size = " x ".join(map(str, shape))
        raise SpecError(f"{where}: its head says {size} of {dtype}, but it has {there:,} bytes")
    flat = np.frombuffer(content, dtype, offset=file.tell())
    return flat.reshape(shape, order="F" if fortran else "C")
