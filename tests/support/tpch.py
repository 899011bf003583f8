"""TPC-H tables as Parquet files, generated once by tpchgen-cli and kept in `.tpch`.

The columns have field ids (the column's position, from 1) and money is decimal(15, 2); pyarrow
reads strings as string_view. At scale factor 1 `lineitem` has some 6 million rows.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

TABLES = (
    "customer",
    "lineitem",
    "nation",
    "orders",
    "part",
    "partsupp",
    "region",
    "supplier",
)
CACHE = Path(__file__).parents[2] / ".tpch"


def tpch(scale_factor: float) -> dict[str, Path]:
    """Return the Parquet file of each table by name, for a scale factor such as 0.01."""
    folder = CACHE / f"sf{scale_factor:g}"
    if not folder.exists():
        generate_tpch(scale_factor, folder)
    return {table: folder / f"{table}.parquet" for table in TABLES}


def generate_tpch(scale_factor: float, folder: Path) -> None:
    """Generate all tables beside `folder`, then rename the whole folder: runs may overlap."""
    folder.parent.mkdir(exist_ok=True)
    draft = Path(tempfile.mkdtemp(dir=folder.parent))
    generator = str(Path(sys.executable).with_name("tpchgen-cli"))
    options = ["--scale-factor", f"{scale_factor:g}", "--output-dir", str(draft), "--quiet"]
    try:
        subprocess.run([generator, "parquet", *options], check=True)
        draft.rename(folder)
    except OSError:
        if not folder.exists():  # otherwise another run was faster
            raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)
