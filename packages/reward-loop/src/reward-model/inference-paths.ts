/**
 * The router lets these paths through: they ask a model, or read what it is. It refuses all others,
 * because vLLM and SGLang have paths on the same port that load weights, stop the server, empty its
 * caches or run any method in it, most of them without a key.
 *
 * Sources: vLLM, docs/usage/security.md (list of endpoints) and docs/serving/online_serving;
 * SGLang, sglang/srt/entrypoints/http_server.py; the OpenAI API reference. Left out on purpose:
 * /invocations (anything by another name), /metrics and /get_server_info (of one server, chosen by
 * chance; the second tells its keys), files and batches.
 */

/** Asked with POST. */
const asked: readonly string[] = [
  // OpenAI's, of both servers.
  "/v1/chat/completions",
  "/v1/chat/completions/batch",
  "/v1/completions",
  "/v1/embeddings",
  "/v1/responses",
  // Rewards, scores and ranks: vLLM under both names, SGLang under those below /v1.
  "/classify",
  "/v1/classify",
  "/pooling",
  "/v1/pooling",
  "/score",
  "/v1/score",
  "/generative_scoring",
  "/rerank",
  "/v1/rerank",
  "/v2/rerank",
  "/v2/embed",
  // Paths of the servers' own.
  "/generate",
  "/inference/v1/generate",
  "/encode",
  "/tokenize",
  "/v1/tokenize",
  "/detokenize",
  "/v1/detokenize",
];

/** Read with GET. */
const read: readonly string[] = [
  "/health",
  "/health_generate",
  "/ping",
  "/version",
  "/v1/models",
  "/get_model_info",
  "/model_info",
];

interface Route {
  readonly path: string;
  readonly methods: readonly string[];
}

/**
 * Returns the routes of a router.
 *
 * @param healthPath of its servers
 * @param more paths that the user lets through, with GET and POST; `/*` at the end of one stands
 * for all below it
 */
export function inferenceRoutes(healthPath: string, more: readonly string[]): readonly Route[] {
  return [
    ...asked.map((path) => ({ path, methods: ["POST"] })),
    ...[...read, healthPath].map((path) => ({ path, methods: ["GET", "HEAD"] })),
    ...more.map((path) => ({ path, methods: ["GET", "HEAD", "POST"] })),
  ];
}
