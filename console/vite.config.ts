import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

/** The server puts a fresh nonce in the place of this word, at every answer. */
const NONCE = "HORAI_NONCE";

export default defineConfig({
  plugins: [react()],
  html: { cspNonce: NONCE },
  resolve: { alias: { "@": new URL("./src", import.meta.url).pathname } },
  build: {
    outDir: "../src/horai/console",
    assetsDir: "static", // /assets is a page
    emptyOutDir: true,
    target: "es2023",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    chunkSizeWarningLimit: 1_000,
    // One file for all that the first page needs: many small ones compress worse, and each costs a request with its headers.
    rolldownOptions: { output: { codeSplitting: { groups: [{ name: "base", tags: ["$initial"] }] } } },
  },
  server: { proxy: { "/api": { target: process.env.HORAI_SERVER ?? "http://127.0.0.1:8470" } } },
  test: {
    projects: [
      {
        extends: true,
        test: {
          name: "parts",
          include: ["src/**/*.test.{ts,tsx}"],
          environment: "happy-dom",
          setupFiles: ["src/testing/setup.ts"],
          restoreMocks: true,
          isolate: false,
          testTimeout: 60_000,
        },
      },
      {
        extends: true,
        test: {
          name: "e2e",
          include: ["e2e/**/*.test.ts"],
          globalSetup: "e2e/chromium.ts",
          environment: "node",
          // Files share what they connected to, and a cache that is warm.
          isolate: false,
          maxWorkers: 2,
          testTimeout: 240_000,
          hookTimeout: 240_000,
        },
      },
      {
        extends: true,
        // Run by tests/faults/test_second_machine.py, in a network namespace of its own.
        test: {
          name: "network",
          include: ["network/**/*.test.ts"],
          globalSetup: "e2e/chromium.ts",
          environment: "node",
          testTimeout: 120_000,
          hookTimeout: 120_000,
        },
      },
      {
        extends: true,
        // Run by tools/pictures.py, against a server that it has filled.
        test: {
          name: "pictures",
          include: ["pictures/**/*.test.ts"],
          globalSetup: "e2e/chromium.ts",
          environment: "node",
          testTimeout: 240_000,
        },
      },
    ],
  },
});
