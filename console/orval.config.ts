import { defineConfig } from "orval";

/** `get_jobs` → `getJobs`. */
function nameOf(operationId: string): string {
  return operationId.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
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
