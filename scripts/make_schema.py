"""Write the JSON Schema that ships with the package from the result types."""

import json
from pathlib import Path

from tracekit.report.json import json_schema

TARGET = Path(__file__).parents[1] / "tracekit" / "report" / "schema.json"

if __name__ == "__main__":
    TARGET.write_text(json.dumps(json_schema(), indent=1) + "\n")
    print(f"wrote {TARGET}")
