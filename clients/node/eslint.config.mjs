import js from "@eslint/js";
import { defineConfig, globalIgnores } from "eslint/config";
import tseslint from "typescript-eslint";

const globals = [
  "setTimeout",
  "clearTimeout",
  "AbortController",
  "AbortSignal",
  "Buffer",
  "console",
  "performance",
  "process",
  "setImmediate",
];

export default defineConfig(
  globalIgnores(["dist/"]),
  js.configs.recommended,
  {
    files: ["**/*.mjs"],
    languageOptions: { globals: Object.fromEntries(globals.map((name) => [name, "readonly"])) },
  },
  {
    files: ["src/**"],
    extends: [tseslint.configs.strictTypeChecked, tseslint.configs.stylisticTypeChecked],
    languageOptions: { parserOptions: { projectService: true } },
    rules: {
      // Plain enough: () => this.#flush(), and return this.#fail(error) in a function without a result.
      "@typescript-eslint/no-confusing-void-expression": [
        "error",
        { ignoreArrowShorthand: true, ignoreVoidReturningFunctions: true },
      ],
      // The reason of a signal may be anything.
      "@typescript-eslint/prefer-promise-reject-errors": ["error", { allowThrowingUnknown: true }],
      "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true }],
    },
  },
);
