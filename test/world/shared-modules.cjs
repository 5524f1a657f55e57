// Jest's transform of product and harness for tests in a world: Node loads the compiled modules once per process
// (environment.cjs), whereas Jest would evaluate them again for each test file.
module.exports = {
  process: (_source, file) => ({ code: `module.exports = globalThis.loadShared(${JSON.stringify(file)});` }),
  getCacheKey: (_source, file) => `shared:${file}`,
};
