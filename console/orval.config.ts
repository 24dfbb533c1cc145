import { defineConfig } from "orval";

/** `get_jobs_api_v1_jobs_get` → `getJobs`: the route's own function, without the path that FastAPI adds to it. */
function nameOf(operationId: string): string {
  const own = operationId.split("_api_v1_")[0] ?? operationId;
  return own.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

export default defineConfig({
  horai: {
    input: "./openapi.json",
    output: {
      target: "./src/generated/api.ts",
      schemas: "./src/generated/model",
      client: "fetch",
      mode: "single",
      clean: true,
      urlEncodeParameters: true,
      override: {
        operationName: (operation) => nameOf(operation.operationId ?? ""),
        mutator: { path: "./src/api/request.ts", name: "request" },
        fetch: { includeHttpResponseReturnType: false },
      },
    },
  },
});
