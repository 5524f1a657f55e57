// Sets the timeout of a project's tests, see jest.config.mjs.
jest.setTimeout(globalThis.TEST_TIMEOUT_MS);
