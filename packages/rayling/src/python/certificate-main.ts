/**
 * A certificate that stands for itself, for the Python process that started this one
 * (`python/src/rayling/on_ray/serving.py`): one line of JSON on standard output. Arguments are the
 * addresses of the machine.
 */
import { X509Certificate } from "node:crypto";
import { selfSigned } from "@rayling/cluster";

const { cert, key } = selfSigned(process.argv.slice(2));
const fingerprint = new X509Certificate(cert).fingerprint256;
process.stdout.write(`${JSON.stringify({ cert, key, fingerprint })}\n`);
