"""What most teams write instead: the same score function behind FastAPI, one process of uvicorn.

Its one argument is the port. The bodies are those of `rayling serve`, declared as pydantic models.
"""

import sys
from typing import Any

import fastapi
import uvicorn
from pydantic import BaseModel

app = fastapi.FastAPI()


class Sample(BaseModel):
    response: str
    ground_truth: Any = None
    data_source: str | None = None
    extra_info: dict[str, Any] | None = None


class Batch(BaseModel):
    samples: list[Sample]


def grade(sample: Sample) -> dict[str, Any]:
    answer = sample.response[sample.response.rfind("####") + 4 :].strip()
    return {
        "score": 1 if answer == sample.ground_truth else 0,
        "valid": True,
        "error": None,
        "extra": {"answer": answer},
    }


@app.get("/readyz")
async def ready() -> dict[str, bool]:
    return {"ready": True}


@app.get("/version")
async def version() -> dict[str, str]:
    return {
        "fastapi": fastapi.__version__,
        "uvicorn": uvicorn.__version__,
        "python": sys.version.split()[0],
    }


@app.post("/score")
async def score(sample: Sample) -> dict[str, Any]:
    return grade(sample)


@app.post("/score/batch")
async def batch(batch: Batch) -> dict[str, Any]:
    return {"outcomes": [grade(sample) for sample in batch.samples]}


if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="error", access_log=False)
