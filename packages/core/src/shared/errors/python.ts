/** Errors of code in Python that a session on a Ray cluster calls. */
import { RayError } from "./base.ts";

/** An error as Python raised it: `name` is its class there, and `stack` Python's traceback. */
export class PythonError extends Error {
  /** The traceback of Python, in lines. */
  readonly traceback: string;
  constructor(type: string, message: string, traceback: string) {
    super(message);
    this.name = type;
    this.traceback = traceback;
    Object.defineProperty(this, "stack", {
      value: traceback === "" ? `${type}: ${message}` : traceback,
      configurable: true,
      writable: true,
    });
  }
}

/**
 * A method or a constructor of a Python actor raised an error, which is the `cause`. Code
 * "PYTHON_TASK".
 */
export class PythonTaskError extends RayError {
  /** The class and the method, as "Counter.add". */
  readonly functionName: string;
  /** The class of the error in Python. */
  readonly pythonType: string;
  constructor(functionName: string, cause: PythonError) {
    super("PYTHON_TASK", `${functionName} raised ${cause.name}: ${cause.message}`, { cause });
    this.functionName = functionName;
    this.pythonType = cause.name;
  }
}
